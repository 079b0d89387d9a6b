"""Likely duplicates: nearly the same label and links, and no other numeral."""

import pytest

from halfgraph.answering.duplicates import likely_duplicates, normalise, numerals
from halfgraph.prediction.neighbours import Neighbours
from small_runs import typed

LINKED = [f"thing{number}" for number in range(8)]


def pairs(folder, names):
    """The duplicates among entities with the same eight links, beside others with other ones."""
    triples = [(name, "has", thing) for name in names for thing in LINKED]
    triples += [(f"other{number}", "has", f"else{number % 5}") for number in range(30)]
    triples += [("Paris city", "has", "else1")]  # labels alone are not enough
    types = {name: "thing" for head, _, tail in triples for name in (head, tail)}
    graph = typed(folder, triples, types, None)
    found = likely_duplicates(graph, Neighbours.of(graph.whole))
    return {frozenset(map(graph.entities.name, pair[:2])) for pair in found}


@pytest.mark.parametrize("other", ["paris  City", "Päris city", "city, Paris", "Paris cty"])
def test_labels_that_differ_in_spelling_are_the_same(tmp_path, other):
    assert frozenset({"Paris City", other}) in pairs(tmp_path, ["Paris City", other])


@pytest.mark.parametrize(
    ("one", "other"), [("Louis XIV", "Louis XV"), ("Games 2008", "Games 2012"), ("Rome", "Berlin")]
)
def test_labels_with_other_numerals_or_words_are_not(tmp_path, one, other):
    assert frozenset({one, other}) not in pairs(tmp_path, [one, other])


def test_the_same_label_without_shared_links_is_no_duplicate(tmp_path):
    assert not any("Paris city" in pair for pair in pairs(tmp_path, ["Paris City", "Berlin"]))


def test_normal_form_and_numerals():
    assert normalise("  Élan,_Vital! ") == "elan vital"
    assert numerals(normalise("Henry VIII, part 2")) == ["viii", "2"]
