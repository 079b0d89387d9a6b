from dataclasses import replace

import numpy as np
from hypothesis import given

from halfgraph.query.program import compile_query
from halfgraph.query.rewriting import disjuncts, fill, map_ids, map_node_ids, pin, rewrite, without_negation
from halfgraph.query.tree import (
    Anchor,
    Intersect,
    Negate,
    Project,
    Query,
    Union,
    anchors,
    nodes,
    shared_variables,
)
from small_graphs import graphs_and_queries, made_anew


def edge(entity: int) -> Query:
    return Project(Anchor(entity), 0)


def test_without_negation_leaves_what_is_not_negated():
    assert without_negation(Intersect((edge(0), Negate(edge(1))))) == edge(0)
    assert without_negation(Intersect((edge(0), Negate(edge(1))), type_id=1)) == Intersect((edge(0),), type_id=1)
    whole = Intersect((edge(0), edge(1)))
    assert without_negation(Project(Intersect((*whole.parts, Negate(edge(2)))), 2)) == Project(whole, 2)
    assert without_negation(whole) is whole


def test_a_union_inside_a_negation_is_no_choice():
    query = Intersect((Union((edge(0), edge(1))), Negate(Union((edge(2), edge(3))))))
    ways = [Intersect((edge(place), Negate(Union((edge(2), edge(3)))))) for place in (0, 1)]
    assert disjuncts(query) == ways


def named_queries(query: Query) -> Query:
    """The query with a name and a span on every node."""
    number = iter(range(1_000))

    def name(_: Query, node: Query) -> Query:
        position = next(number)
        return replace(node, name=f"n{position}", span=(position, position + 1))

    return rewrite(query, name)


@given(graphs_and_queries())
def test_names_and_spans_are_outside_of_equality_and_kept_by_rewriting(given_):
    _, query = given_
    named = named_queries(query)
    assert named == query
    assert hash(named) == hash(query)
    rewritten = map_ids(named, lambda entity: entity, lambda relation: relation)
    assert [(node.name, node.span) for node in nodes(rewritten)] == [(node.name, node.span) for node in nodes(named)]
    program = compile_query(named).program
    assert [node.name for node in nodes(program.template)] == [node.name for node in nodes(named)]


@given(graphs_and_queries())
def test_a_rewriting_that_changes_nothing_gives_an_equal_query_of_new_nodes(given_):
    _, query = given_
    again = made_anew(query)
    assert again == query
    assert all(new is not old or isinstance(new, Anchor) for new, old in zip(nodes(again), nodes(query), strict=True))


@given(graphs_and_queries())
def test_every_node_is_replaced_by_what_the_change_returns(given_):
    _, query = given_
    moved = rewrite(query, lambda _, node: replace(node, entity=7) if isinstance(node, Anchor) else node)
    assert all(anchor.entity == 7 for anchor in anchors(moved))
    assert moved == map_ids(query, lambda _: 7, lambda relation: relation)
    assert set(map_node_ids(query, lambda _: 7, lambda relation: relation)) == {id(node) for node in nodes(query)}


def test_a_pinned_variable_is_the_same_entity_wherever_it_is_used():
    shared = Project(Anchor(0), 0)
    query = Intersect((Project(shared, 2), Project(shared, 4)))
    assert pin(query, shared, 3) == Intersect((Project(Anchor(3), 2), Project(Anchor(3), 4)))
    assert shared_variables(pin(query, shared, 3)) == []


def test_fill_takes_one_query_or_a_batch():
    template = Project(Intersect((Project(Anchor(0), 1), Project(Anchor(1), 0))), 2)
    anchors, relations = np.array([5, 6], np.int32), np.array([10, 11, 12], np.int32)
    query = Project(Intersect((Project(Anchor(5), 11), Project(Anchor(6), 10))), 12)
    assert fill(template, anchors, relations) == query
    batch = fill(template, anchors[None], relations[None])
    assert compile_query(batch).query(0) == query
