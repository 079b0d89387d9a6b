"""Why a query is empty: a part that fails, all smaller parts of which do not, by asking them all."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.answering.emptiness import Emptiness, connected, smallest_failing
from halfgraph.answering.explanation import Laid
from halfgraph.sparql.read import request_of

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
    return engine.facts.rows(request_of(text, engine.graph).tree).bindings


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


def test_with_answers_there_is_nothing_to_explain(engine):
    assert engine.ask("SELECT ?x { ?x <lives_in> <city0> }").explanation.empty is None


def test_out_of_time_nothing_is_said(engine):
    laid = Laid.of(engine.templates.read(PLACES))
    assert Emptiness(engine.facts, engine.names, seconds=0).why(laid) is None


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        ("?x :p ?y . ?y :q :a . ?z :r :b .", 2),
        ("?y :q :a .", 0),
        ("?xy :p ?z .", 0),
        ("?x :p ?y . { ?z :q :a } UNION { ?y :q :b }", 2),
    ],
)
def test_what_is_not_connected_to_the_target_is_left_out(graph, patterns, kept):
    elements = request_of(f"SELECT * {{ {patterns} }}", graph).tree.where.elements
    assert connected(elements, "x") == list(elements[:kept])
