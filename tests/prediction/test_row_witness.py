"""Witnesses of rows: their facts suffice, and none is better."""

from math import prod

import pytest
from hypothesis import given, settings

from halfgraph.prediction.row_witness import LinkStep
from halfgraph.query.rows import Exclusion, LinkPattern, PathRepeat, Relation, RowQuery, TypePattern
from possible_worlds import SmallWorld, exact_rows
from small_rows import worlds_and_queries

EVERY = 1_000


def fact(step):
    """A step as a fact of a world."""
    return (step.head, step.relation, step.tail) if isinstance(step, LinkStep) else (step.entity, step.iri)


@settings(max_examples=100)
@given(worlds_and_queries())
def test_the_facts_of_a_witness_make_its_row_and_no_way_is_better(given_):
    world, query = given_
    executor = world.executor()
    result = executor.rows(query, EVERY)
    for row in result.rows[:5]:
        witness = executor.witness(query, row.values)
        assert witness is not None
        needed = {fact(step): step.probability for step in witness.steps if not step.negated}
        missing = {own: likely for own, likely in needed.items() if own not in world.known}
        assert row.values in exact_rows(world, world.known | set(missing), query)
        best = max(map(result.lineage.way_probability, row.ways))
        assert witness.probability == pytest.approx(best, abs=1e-6)
        assert witness.probability <= prod(missing.values()) + 1e-6
        for step in witness.steps:
            assert step.known == (fact(step) in world.known)


def test_a_witness_binds_all_variables_and_shows_a_path_step_by_step():
    known = {(0, 0, 1), (2, 0, 3)}
    world = SmallWorld(
        5, 2, ("http://c/A",), frozenset(known), {(1, 0, 2): 0.5, (4, "http://c/A"): 0.5, (3, 0, 4): 0.25}
    )
    path = LinkPattern(0, PathRepeat(Relation(0), 1, None), "x")
    query = RowQuery(((path, LinkPattern("x", Relation(0), "y"), TypePattern("y", "http://c/A")),), ("x",))
    witness = world.executor().witness(query, (3,))
    assert witness is not None
    assert witness.values == {"x": 3, "y": 4}
    assert [fact(step) for step in witness.steps] == [
        *((0, 0, 1), (1, 0, 2), (2, 0, 3)),
        (3, 0, 4),
        (4, "http://c/A"),
    ]
    assert witness.probability == pytest.approx(0.5 * 0.5 * 0.25)


def test_excluded_facts_are_negated_steps():
    world = SmallWorld(3, 2, (), frozenset(), {(0, 0, 1): 0.5, (1, 0, 2): 0.25})
    query = RowQuery(((LinkPattern(0, Relation(0), "x"), Exclusion(((LinkPattern("x", Relation(0), "w"),),))),), ("x",))
    witness = world.executor().witness(query, (1,))
    assert witness is not None
    assert [(fact(step), step.negated) for step in witness.steps] == [((0, 0, 1), False), ((1, 0, 2), True)]
    assert witness.probability == pytest.approx(0.5 * 0.75)


def test_a_row_that_cannot_hold_has_no_witness():
    world = SmallWorld(3, 2, (), frozenset(), {(0, 0, 1): 0.5})
    assert world.executor().witness(RowQuery(((LinkPattern(0, Relation(0), "x"),),), ("x",)), (2,)) is None
