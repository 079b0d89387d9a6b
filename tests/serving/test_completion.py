"""Completion: by any word, in any case, with a typo, or by IRI; most connected names first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.graph.folder import Graph
from halfgraph.graph.vocabulary import Vocabulary
from halfgraph.serving.completion import Completion, CompletionIndex, normalise

EX = "http://example.org/"


@pytest.fixture(scope="module")
def completion(graph_folder):
    return Completion.of(Graph.open(graph_folder), "whole")


def labels(completion, text, what="any", limit=10):
    return [item.label for item in completion.complete(text, what, limit)]


def test_a_name_is_found_by_any_word_of_its_label(completion):
    assert labels(completion, "person 12 m")[0] == "Pérson 12 Müller"
    assert labels(completion, "pérson 12 m")[0] == "Pérson 12 Müller"
    assert labels(completion, "MÜLL", "entity", 100) == labels(completion, "pérson", "entity", 100)
    assert labels(completion, "12")[0] == "Pérson 12 Müller"


def test_a_type_is_found_with_the_number_of_its_entities(completion):
    (item,) = completion.complete("pers", "type", 5)
    assert (item.iri, item.what, item.degree, item.type) == (f"{EX}Person", "type", 60, None)
    assert item in completion.complete("pers", "any", 100)


def test_the_best_known_come_first(completion):
    found = completion.complete("c", "entity", 20)
    assert [item.degree for item in found] == sorted((item.degree for item in found), reverse=True)
    assert {item.type for item in found} >= {f"{EX}City"}


def test_a_typo_does_not_matter(completion):
    assert "inCountry" in labels(completion, "inCuontry")
    assert labels(completion, "countyr1")[0] == "country1"


@pytest.mark.parametrize("text", [f"{EX}livesI", f"<{EX}livesI", f"<{EX}livesIn>"])
def test_an_iri_is_completed_and_inserted_as_sparql(completion, text):
    (item,) = [one for one in completion.complete(text, "relation", 5) if one.label == "livesIn"]
    assert item.iri == f"{EX}livesIn"
    assert item.insert in (":livesIn", f"<{EX}livesIn>", "ex:livesIn")


def test_what_is_wanted_and_how_many_is_kept_to(completion):
    assert {item.what for item in completion.complete("in", "relation", 5)} == {"relation"}
    assert len(completion.complete("", "any", 3)) == 3


WORDS = st.text("aàbÇ _-9", min_size=1, max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=20, unique=True), WORDS)
def test_names_are_those_with_a_word_that_begins_so(texts, wanted):
    index = CompletionIndex.of(
        Vocabulary.of([f"n{i}" for i in range(len(texts))], texts), "entity", np.ones(len(texts), np.int64)
    )
    found = set(index.with_word(wanted).tolist())
    for number, text in enumerate(texts):
        whole = normalise(text)
        starts = [i for i in range(len(whole)) if whole[i].isalnum() and (i == 0 or not whole[i - 1].isalnum())]
        assert (number in found) == any(whole[i:].startswith(normalise(wanted)) for i in starts)
