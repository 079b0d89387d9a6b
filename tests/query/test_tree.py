from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import QueryError
from halfgraph.query.canonical import canonical_key
from halfgraph.query.fold import fold
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import (
    Anchor,
    Intersect,
    Negate,
    Project,
    Query,
    Union,
    check_negations,
    children,
    edges,
    intersect,
    nodes,
    shared_variables,
)
from query_oracles import is_same
from small_graphs import graphs_and_queries, queries, reordered, smalls, unshared


class Visited:
    """A meaning that keeps the nodes it was called with, and yields how many it was."""

    def __init__(self) -> None:
        self.nodes: list[Query] = []

    def anchor(self, node: Anchor) -> int:
        self.nodes.append(node)
        return 1

    def project(self, node: Project, source: int) -> int:
        self.nodes.append(node)
        return source + 1

    def intersect(self, node: Intersect, parts: list[int]) -> int:
        assert len(parts) == len(node.parts)
        self.nodes.append(node)
        return sum(parts) + 1

    union = intersect

    def negate(self, node: Negate, part: int) -> int:
        self.nodes.append(node)
        return part + 1


@given(graphs_and_queries())
def test_fold_visits_each_node_once_and_after_those_that_lead_to_it(given_):
    _, query = given_
    visited = Visited()
    fold(query, visited)
    order = [id(node) for node in visited.nodes]
    assert len(set(order)) == len(order)
    assert order == [id(node) for node in nodes(query)]
    assert order[-1] == id(query)
    for node in nodes(query):
        assert all(order.index(id(child)) < order.index(id(node)) for child in children(node))


@given(graphs_and_queries())
def test_fold_hands_each_node_what_the_nodes_before_it_yield(given_):
    _, query = given_
    assert fold(query, Visited()) == len(nodes(unshared(query)))


def test_a_walk_of_a_thousand_steps_needs_no_deep_recursion():
    query: Query = Anchor(0)
    for _ in range(5_000):
        query = Project(query, 0)
    assert fold(query, Visited()) == 5_001


@given(st.data())
def test_the_same_query_made_anew_is_equal_whatever_the_order_of_its_parts(data):
    _, query = data.draw(graphs_and_queries(most_nodes=8))
    again = data.draw(reordered(query))
    assert query == again
    assert hash(query) == hash(again)


@given(st.data())
def test_queries_are_equal_just_if_a_renaming_of_nodes_makes_one_the_other(data):
    small = data.draw(smalls(most_entities=2))
    one, other = (data.draw(queries(small, most_nodes=4, types=False)) for _ in range(2))
    assert (one == other) == is_same(one, other)


def few_words(count: int) -> list[Query]:
    """Every query of one anchor, one relation and so many variables: what is told apart is told by form alone."""
    grown: list[list[Query]] = [[Anchor(0)]]
    for _ in range(count):
        grown = [[*pool, node] for pool in grown for node in _next_nodes(pool)]
    return [pool[-1] for pool in grown if len(nodes(pool[-1])) == count + 1]


def _next_nodes(pool: list[Query]) -> list[Query]:
    parts = chain.from_iterable(combinations(pool, size) for size in range(1, len(pool) + 1))
    return [*(Project(node, 0) for node in pool), *(Intersect(some) for some in parts)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_small_queries_are_told_apart_just_if_they_differ(count):
    found: dict[str, list[Query]] = {}
    for query in few_words(count):
        found.setdefault(canonical_key(query), []).append(query)
    firsts = [some[0] for some in found.values()]
    assert not any(is_same(one, other) for one, other in combinations(firsts, 2))
    for first, *rest in found.values():
        assert all(is_same(first, other) for other in rest)


def ring(size: int, relation: int = 0) -> list[Query]:
    """Pairs of neighbours in a ring of variables that nothing but their neighbours tells apart."""
    around: list[Query] = [Project(Anchor(0), relation) for _ in range(size)]
    pairs = zip(around, [*around[1:], around[0]], strict=True)
    return [Intersect((Project(one, 2), Project(other, 2))) for one, other in pairs]


def test_one_ring_of_six_variables_is_not_two_rings_of_three():
    six = Intersect(tuple(Project(part, 4) for part in ring(6)))
    twice_three = Intersect(tuple(Project(part, 4) for part in [*ring(3), *ring(3)]))
    assert six != twice_three  # refining colours alone leaves them the same
    assert six == Intersect(tuple(Project(part, 4) for part in reversed(ring(6))))


def test_many_shared_variables_that_look_alike_are_no_burden():
    def pairs(count: int) -> Query:
        shared = [Project(Anchor(0), 0) for _ in range(count)]
        return Intersect(tuple(Project(node, relation) for node in shared for relation in (2, 4)))

    assert pairs(10) == pairs(10)
    assert pairs(10) != pairs(9)


def test_a_shared_variable_is_not_two_equal_ones():
    shared = Project(Anchor(0), 0)
    joined = Intersect((Project(shared, 2), Project(shared, 4)))
    free = Intersect((Project(Project(Anchor(0), 0), 2), Project(Project(Anchor(0), 0), 4)))
    assert joined != free
    assert unshared(joined) == free


def test_two_nodes_of_one_entity_are_one_constant():
    anchor = Anchor(3)
    assert Intersect((Project(anchor, 0), Project(anchor, 2))) == Intersect(
        (Project(Anchor(3), 0), Project(Anchor(3), 2))
    )
    assert Intersect((Anchor(3), Anchor(3))) == Intersect((anchor, anchor)) == Intersect((anchor,))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Anchor(1), Anchor(2)),
        (Project(Anchor(1), 0), Project(Anchor(1), 1)),
        (Project(Anchor(1), 0), Project(Anchor(1), 0, type_id=0)),
        (Project(Anchor(1), 0, type_id=1), Project(Anchor(1), 0, type_id=0)),
        (Project(Anchor(1), 0), Intersect((Project(Anchor(1), 0),))),
        (Intersect((Anchor(1), Anchor(2))), Union((Anchor(1), Anchor(2)))),
        (Project(Project(Anchor(1), 0), 2), Project(Project(Anchor(1), 2), 0)),
        (Anchor(40302010), Anchor(np.array([0x10203040], np.int32))),
        (Anchor(7), 7),
    ],
)
def test_what_a_node_says_matters(one, other):
    assert one != other


def test_columns_are_compared_by_their_ids():
    ids = np.arange(6, dtype=np.int32)
    assert Anchor(ids) == Anchor(ids.copy())
    assert Anchor(ids[::2]) == Anchor(np.array([0, 2, 4], np.int32))
    assert Anchor(ids) != Anchor(ids[::-1])
    assert Anchor(np.int32(4)) == Anchor(4)


def test_equal_queries_are_one_key():
    one, other = (Intersect((Project(Anchor(a), 0), Project(Anchor(b), 2))) for a, b in ((1, 2), (1, 2)))
    assert len({one, other, Intersect(other.parts[::-1])}) == 1


@given(graphs_and_queries())
def test_a_tree_has_no_shared_variables_and_every_projection_is_an_edge(given_):
    _, query = given_
    assert shared_variables(unshared(query)) == []
    assert len(list(edges(query))) == sum(isinstance(node, Project) for node in nodes(query))


def test_a_shared_anchor_or_a_part_said_twice_is_no_shared_variable():
    anchor = Anchor(0)
    part = Project(anchor, 0)
    assert shared_variables(Intersect((part, part, Project(anchor, 2)))) == []
    assert shared_variables(Intersect((part, Project(part, 2)))) == [part]


def test_intersect_leaves_one_part_alone_and_counts_the_same_part_once():
    part = Project(Anchor(0), 0)
    long = Project(Project(Anchor(0), 0), 2)
    assert intersect([part]) is part
    assert intersect([part, Project(Anchor(0), 0)]) is part
    assert intersect([long, long]) is long
    assert intersect([part], type_id=1) == Intersect((part,), type_id=1)
    assert len(intersect([part, Project(Anchor(0), 2)]).parts) == 2


def test_intersect_keeps_equal_paths_with_variables_of_their_own():
    first, second = (Project(Project(Anchor(0), 0), 2) for _ in range(2))
    assert len(intersect([first, second]).parts) == 2


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_intersect_keeps_of_equal_parts_the_one_that_other_parts_start_from(order):
    copy, inner = Project(Anchor(0), 0), Project(Anchor(0), 0)
    parts = (copy, inner, Project(inner, 2))
    assert intersect([parts[place] for place in order]) == Intersect((inner, Project(inner, 2)))


def edge(entity: int) -> Query:
    return Project(Anchor(entity), 0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Project(Negate(edge(0)), 0),
        lambda: Negate(Negate(edge(0))),
        lambda: Union((edge(0), Negate(edge(1)))),
        lambda: Intersect((Negate(edge(0)), Negate(edge(1)))),
        lambda: intersect([Negate(edge(0))]),
        lambda: check_negations(Negate(edge(0))),
    ],
)
def test_a_negation_is_a_part_of_an_intersection_that_has_another_part(wrong):
    with pytest.raises(QueryError, match=r"only excludes answers.*Join the negation with a part"):
        wrong()


def test_a_variable_of_a_negation_is_used_nowhere_else():
    inner, anchor = edge(0), Anchor(1)
    check_negations(Intersect((Project(anchor, 0), Negate(Project(anchor, 2)), Negate(Project(inner, 2)))))
    for other in (inner, Project(inner, 4), Negate(Project(inner, 4))):
        with pytest.raises(QueryError, match="also used outside of it"):
            check_negations(Intersect((edge(1), Negate(Project(inner, 2)), other)))
    negation = Negate(edge(2))
    shared = Intersect((Project(Intersect((edge(0), negation)), 0), negation))
    with pytest.raises(QueryError, match="also used outside of it"):
        check_negations(shared)


def test_the_same_negation_twice_counts_once():
    assert intersect([edge(0), Negate(edge(1)), Negate(edge(1))]) == Intersect((edge(0), Negate(edge(1))))
    assert Intersect((edge(0), Negate(edge(1)))) != Intersect((edge(0), edge(1)))


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
