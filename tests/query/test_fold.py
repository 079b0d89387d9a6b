import numpy as np
import pytest
from hypothesis import given

from halfgraph.query.fold import fold, fold_batch, fold_projecting
from halfgraph.query.structures import (
    NEIGHBOURHOODS,
    STRUCTURES,
    structure_named,
)
from halfgraph.query.tree import (
    Anchor,
    Intersect,
    Negate,
    Project,
    Query,
    children,
    nodes,
)
from small_graphs import graphs_and_queries, unshared


class Visited:
    """An interpretation that keeps the nodes it was called with, and counts them."""

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


class Projecting(Visited):
    """Visited that takes many projections at once."""

    calls = 0

    def projects(self, nodes: list[Project], sources: list[int]) -> list[int]:
        self.calls += bool(nodes)
        return list(map(self.project, nodes, sources))


@given(graphs_and_queries(), graphs_and_queries())
def test_projections_of_many_queries_are_done_at_once_with_the_same_results(first, second):
    queries = [first[1], second[1]]
    together = Projecting()
    assert fold_projecting(queries, together) == [fold(query, Visited()) for query in queries]
    assert len(together.nodes) == sum(len(nodes(query)) for query in queries)
    assert together.calls <= max(sum(isinstance(node, Project) for node in nodes(query)) for query in queries)


def test_a_walk_of_a_thousand_steps_needs_no_deep_recursion():
    query: Query = Anchor(0)
    for _ in range(5_000):
        query = Project(query, 0)
    assert fold(query, Visited()) == 5_001


class Sums:
    """A batch interpretation: the sum of the ids of a query, and how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def anchors(self, nodes: list[Anchor]) -> list[int]:
        self.calls += 1
        return [int(node.entity) for node in nodes]

    def projects(self, nodes: list[Project], sources: list[int]) -> list[int]:
        self.calls += 1
        return [source + int(node.relation) for node, source in zip(nodes, sources, strict=True)]

    def intersects(self, nodes: list[Intersect], parts: list[list[int]]) -> list[int]:
        assert [len(some) for some in parts] == [len(node.parts) for node in nodes]
        self.calls += 1
        return list(map(sum, parts))


def test_many_queries_are_folded_at_once_as_one_by_one():
    queries = [structure.fill(np.arange(9), np.arange(9) + 20) for structure in (*STRUCTURES, *NEIGHBOURHOODS)]
    together = Sums()
    assert fold_batch(queries, together) == [fold_batch([query], Sums())[0] for query in queries]
    assert together.calls == 1 + 3 + 2  # anchors; edges at three distances; intersections at two


def test_a_batch_of_queries_with_a_union_or_a_negation_is_refused():
    for short in ("2u", "up", "2in", "pni"):
        with pytest.raises(TypeError, match="use disjuncts and without_negation first"):
            fold_batch([structure_named(short).query], Sums())
