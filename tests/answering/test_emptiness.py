"""Why a query is empty: a part that fails, all smaller parts of which do not, by asking them all."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.answering.emptiness import (
    Emptiness,
    Propagation,
    connected,
    is_bound,
    smallest_failing,
)
from halfgraph.answering.store_rows import GraphStore
from halfgraph.graph.statements import TYPE
from halfgraph.query.patterns import Edge, Either, OfType, named_patterns
from halfgraph.query.tree import Anchor
from halfgraph.sparql.read import request_of
from halfgraph.sparql.rendering import Elements
from halfgraph.sparql.syntax_tree import Ask
from small_engines import engine_of, people

PLACES = "SELECT ?x { ?x <lives_in> <city0> . ?x <knows> ?y . ?y <lives_in> <city3> }"


@given(failing=st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=4))
def test_the_part_fails_and_no_smaller_one_does(failing):
    patterns = [str(number) for number in range(7)]

    def holds(some):
        return not any({str(one) for one in part} <= set(some) for part in failing)

    found = smallest_failing(patterns, holds)
    assert not holds(found)
    smaller = chain.from_iterable(combinations(found, size) for size in range(len(found)))
    assert all(holds(some) for some in smaller)


def test_the_part_and_what_the_rest_returns_are_those_of_the_store(engine):
    empty = engine.ask(PLACES).explanation.empty
    assert sorted(empty.part) == ["?x :knows ?y .", "?x :lives_in :city0 .", "?y :lives_in :city3 ."]
    assert rows_of(engine, empty.query) == []
    assert empty.without.count == len(rows_of(engine, empty.without.query)) > 0
    assert len(empty.without.some) == min(5, empty.without.count)


def rows_of(engine, text):
    return engine.store.rows(request_of(text, engine.graph).tree).bindings


def test_a_pattern_that_fails_alone_is_the_part(engine):
    text = "SELECT ?x { ?x <lives_in> <city0> . <city1> <knows> ?x }"
    empty = engine.ask(text).explanation.empty
    assert empty.part == [":city1 :knows ?x ."]
    assert empty.without.count == 5
    assert empty.without.query.endswith("SELECT DISTINCT ?x WHERE { ?x :lives_in :city0 . }")


def test_a_query_of_one_pattern_leaves_nothing_without_it(engine):
    empty = engine.ask("SELECT ?x { <city1> <knows> ?x }").explanation.empty
    assert empty.part == [":city1 :knows ?x ."]
    assert empty.without is None


def test_a_class_may_be_the_reason(engine):
    empty = engine.ask("SELECT ?x { ?x a <City> ; <lives_in> <city0> }").explanation.empty
    assert sorted(empty.part) == ["?x :lives_in :city0 .", "?x a :City ."]


def test_a_query_with_answers_needs_no_explanation(engine):
    assert engine.ask("SELECT ?x { ?x <lives_in> <city0> }").explanation.empty is None


def test_out_of_time_there_is_no_reason(engine):
    query = engine.templates.read(PLACES).query
    emptiness = Emptiness(engine.store, engine.names, engine.predictors.links.triples, seconds=0)
    assert emptiness.why(query, "x") is None


X_Y, Y_A, Z_B = Edge("x", 0, "y"), Edge(Anchor(1), 1, "y"), Edge(Anchor(2), 3, "z")
EITHER = Either("y", ((Edge(Anchor(3), 1, "y"),), (Edge("z", 1, "y"),)))


@pytest.mark.parametrize(
    ("patterns", "kept"), [([X_Y, Y_A, Z_B], 2), ([Y_A], 0), ([X_Y, EITHER, Z_B], 3), ([OfType("x", 1), Z_B], 1)]
)
def test_what_is_not_connected_to_the_target_is_left_out(patterns, kept):
    assert connected(patterns, "x") == patterns[:kept]


@pytest.mark.parametrize(
    "text",
    [
        PLACES,
        "SELECT ?x { ?x a <City> ; <lives_in> <city0> . <person3> <knows> ?y . ?y <knows> ?x }",
        "SELECT ?x { { ?x <lives_in> <city0> } UNION { ?x <knows> <person9> } ?x <knows> ?y . ?y <lives_in> <city3> }",
        "SELECT ?x { ?x <lives_in> <city0> FILTER NOT EXISTS { ?x <knows>/<lives_in> <city1> } }",
        "SELECT ?x { <person1> <knows> ?x FILTER(?x != <person2>) }",
    ],
)
def test_parts_match_in_the_graph_if_they_match_in_the_store(engine, text):
    query = engine.templates.read(text).query
    patterns, elements = named_patterns(query), Elements(engine.graph)
    propagation = Propagation(engine.predictors.links.triples)
    for part in chain.from_iterable(combinations(patterns, size) for size in range(1, len(patterns) + 1)):
        expected = engine.store.holds(Ask(elements.group(part))) if is_bound(part) else True
        assert propagation.holds(part) == expected


def test_a_cycle_without_a_match_is_found_by_the_store(engine):
    """Each of six cities has someone who knows someone of the next, but nobody is back after six steps."""
    names = "abcdef"
    lives = [f"?{name} <lives_in> <city{number}> ." for number, name in enumerate(names)]
    knows = [f"?{name} <knows> ?{names[(number + 1) % 6]} ." for number, name in enumerate(names)]
    empty = engine.ask(f"SELECT ?a {{ {' '.join(lives + knows)} }}").explanation.empty
    assert sorted(empty.part) == sorted(pattern.replace("<knows>", ":knows") for pattern in knows)
    assert empty.without.count == 5


def test_a_part_that_only_the_store_can_match_is_not_the_reason(tmp_path):
    graph = people(tmp_path)
    (graph.path / "manifest.json").unlink()  # the graph is changed by hand
    with (graph.path / "aside.nq").open("a") as file:
        iris = ["http://halfgraph.local/person0", TYPE, "http://halfgraph.local/City"]
        file.write(" ".join(f"<{iri}>" for iri in iris) + " .\n")
    engine = engine_of(graph)
    empty = engine.ask("SELECT ?x { ?x a <City> ; <lives_in> <city0> ; <knows> <person7> }").explanation.empty
    assert rows_of(engine, empty.query) == []
    assert "?x :knows :person7 ." in empty.part


@pytest.mark.parametrize("text", [PLACES, PLACES.replace("?x", "DISTINCT ?x", 1), "SELECT ?x { ?x <knows> <person3> }"])
def test_the_store_is_asked_at_most_twice_for_an_answer_and_its_explanation(engine, monkeypatch, text):
    asked = []
    answer = GraphStore._json
    monkeypatch.setattr(GraphStore, "_json", lambda *words: asked.append(words) or answer(*words))
    found = engine.ask(text)
    assert found.predicted
    assert found.explanation.nodes
    assert len(asked) <= 2
