"""Templates: a text that was never parsed is read as the parser would read it."""

import numpy as np
import pytest

from halfgraph.errors import HalfgraphError
from halfgraph.query.canonical import canonical_key
from halfgraph.sparql import templates as templates_file
from halfgraph.sparql.read import read, request_of
from halfgraph.sparql.templates import Templates
from halfgraph.sparql.writer import write
from small_runs import people

TEXTS = [
    "SELECT ?x {{ ?x <livesIn> <city{0}> }}",
    "SELECT ?x {{ ?x <livesIn> <city{0}> ; <roots> <city{1}> }}",
    "SELECT ?x {{ ?x <livesIn> <city{0}> ; <livesIn> <city{1}> }}",
    "SELECT ?x {{ <person{0}> <livesIn>/<inCountry> ?x . <person{1}> <citizenOf> ?x }} LIMIT 3",
    "SELECT DISTINCT ?x {{ ?y <speaks> <language{0}> . ?y <livesIn> ?x . ?z <roots> ?x . ?z <speaks> <language{1}> }}",
    "SELECT ?x {{ ?x a <person> ; <livesIn> <city{0}> }}",
    "PREFIX c: <http://halfgraph.local/> SELECT ?x {{ ?x c:livesIn c:city{0} ; c:roots c:city{1} }}",
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return people(tmp_path_factory.mktemp("people"))


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_a_known_template_is_read_as_by_the_parser(graph, text, monkeypatch):
    templates = Templates(graph)
    others = [text.format(first, second) for first in range(4) for second in range(4)]
    seen = {templates.template(other)[0] is None for other in others[:6]}  # both equal and different names
    assert seen == {False}
    expected = [read(other, graph) for other in others]
    monkeypatch.setattr(templates_file, "read", None)  # from now on only templates
    for other, plain in zip(others, expected, strict=True):
        found = templates.read(other)
        assert canonical_key(found.query) == canonical_key(plain.query)
        assert (found.target, found.limit) == (plain.target, plain.limit)
        assert found.variables.keys() == plain.variables.keys()
        for name, node in found.variables.items():
            assert canonical_key(node) == canonical_key(plain.variables[name])


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_for_the_store_is_what_the_writer_makes_of_the_parsed_text(graph, text):
    templates = Templates(graph)
    for first in range(3):
        for second in range(3):
            own = text.format(first, second)
            template, names = templates.template(own)
            assert template.store_text(names) == write(request_of(own, graph).tree)


def test_relations_are_names_of_a_template_too(graph):
    templates = Templates(graph)
    first, _ = templates.template("SELECT ?x { ?x <livesIn> <city1> }")
    second, names = templates.template("SELECT ?y { ?y <livesIn> <city1> }")
    assert first is not second
    third, names = templates.template("SELECT ?x { ?x <roots> <city2> }")
    assert third is first
    assert names.entities == (graph.entities.find("city2"),)
    assert names.relations == (2 * graph.relations.find("roots"),)


def test_a_batch_has_columns_in_place_of_names(graph):
    templates = Templates(graph)
    texts = [f"SELECT ?x {{ ?x <livesIn> <city{i}> }}" for i in range(5)]
    template, _ = templates.template(texts[0])
    names = [templates.template(text)[1] for text in texts]
    entities, relations = (np.array([getattr(one, what) for one in names]).T for what in ("entities", "relations"))
    query = template.filled(entities, relations).query
    assert query.source.entity.tolist() == [graph.entities.find(f"city{i}") for i in range(5)]
    assert query.relation.tolist() == [2 * graph.relations.find("livesIn") + 1] * 5


@pytest.mark.parametrize(
    "text",
    [
        "FOO BAR {0}",
        "PREFIX a: {0}",
        "{0} {0}",
        "BASE <http://b/> {0} PREFIX a: <b>",
        "PREFIX {0}",
        "SELECT {0}",
        "PREFIX PREFIX PREFIX a: <b> {0}",
    ],
)
def test_a_cached_template_does_not_make_a_broken_text_readable(graph, text):
    good = "SELECT DISTINCT ?x { ?x <livesIn> <city1> }"
    templates = Templates(graph)
    templates.read(good)
    with pytest.raises(HalfgraphError):
        templates.read(text.replace("{0}", good))


def test_declarations_are_not_part_of_a_template(graph):
    templates = Templates(graph)
    first, _ = templates.template("SELECT ?x { ?x <livesIn> <city1> }")
    text = "BASE <http://halfgraph.local/> PREFIX p: <> SELECT ?x { ?x p:roots <city2> }"
    assert templates.template(text)[0] is first


@pytest.mark.parametrize("text", ["SELECT ?x { ?x <livesIn> <nowhere> }", "SELECT ?x {", "", "x" * 200_000])
def test_what_cannot_be_read_is_refused_as_ever(graph, text):
    with pytest.raises(HalfgraphError):
        Templates(graph).read(text)
