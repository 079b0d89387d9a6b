"""The one walk over a query: `fold` for one query, `fold_batch` for many, from the anchors to the target."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, children, nodes

T = TypeVar("T")


class Interpretation(Protocol[T]):
    """The value of each type of node, from the values of its children."""

    def anchor(self, node: Anchor) -> T: ...
    def project(self, node: Project, source: T) -> T: ...
    def intersect(self, node: Intersect, parts: list[T]) -> T: ...
    def union(self, node: Union, parts: list[T]) -> T: ...
    def negate(self, node: Negate, part: T) -> T: ...  # for the intersection that it is a part of


def fold(query: Query, interpretation: Interpretation[T]) -> T:
    """Return the value of the query; every node is interpreted once, after its children."""
    values: dict[int, T] = {}
    for node in nodes(query):
        values[id(node)] = _value(node, values, interpretation)
    return values[id(query)]


def _value(node: Query, values: dict[int, T], interpretation: Interpretation[T]) -> T:
    match node:
        case Anchor():
            return interpretation.anchor(node)
        case Project():
            return interpretation.project(node, values[id(node.source)])
        case Intersect():
            return interpretation.intersect(node, [values[id(part)] for part in node.parts])
        case Union():
            return interpretation.union(node, [values[id(part)] for part in node.parts])
        case Negate():
            return interpretation.negate(node, values[id(node.part)])
    raise TypeError(f"{type(node).__name__} has no interpretation")


class ProjectingInterpretation(Interpretation[T], Protocol):
    """An interpretation that takes many projections at once."""

    def projects(self, nodes: list[Project], sources: list[T]) -> list[T]: ...


def fold_projecting(queries: Sequence[Query], interpretation: ProjectingInterpretation[T]) -> list[T]:
    """Return the value of each query as `fold` does; all projections whose sources have values are done at once."""
    values: dict[int, T] = {}
    waiting = list({id(node): node for query in queries for node in nodes(query)}.values())
    while waiting:
        projects: list[Project] = []
        later: list[Query] = []
        for node in waiting:
            if any(id(child) not in values for child in children(node)):
                later.append(node)
            elif isinstance(node, Project):
                projects.append(node)
            else:
                values[id(node)] = _value(node, values, interpretation)
        results = interpretation.projects(projects, [values[id(node.source)] for node in projects])
        values |= zip(map(id, projects), results, strict=True)
        waiting = later
    return [values[id(query)] for query in queries]


class BatchInterpretation(Protocol[T]):
    """An interpretation that takes many nodes of a type at once, of one query or of several."""

    def anchors(self, nodes: list[Anchor]) -> list[T]: ...
    def projects(self, nodes: list[Project], sources: list[T]) -> list[T]: ...
    def intersects(self, nodes: list[Intersect], parts: list[list[T]]) -> list[T]: ...


def fold_batch(queries: Sequence[Query], interpretation: BatchInterpretation[T]) -> list[T]:
    """Return the value of each query; all nodes whose children have values are interpreted at once.

    A union or a negation has no single embedding and is refused (see `disjuncts` and `without_negation`).
    """
    values: dict[int, T] = {}
    waiting = {id(node): node for query in queries for node in nodes(query)}

    def settle(settled: list[Any], results: list[T]) -> None:
        for node, value in zip(settled, results, strict=True):
            values[id(node)] = value
            del waiting[id(node)]

    anchors = [node for node in waiting.values() if isinstance(node, Anchor)]
    settle(anchors, interpretation.anchors(anchors))
    while waiting:
        ready = [node for node in waiting.values() if all(id(child) in values for child in children(node))]
        projects = [node for node in ready if isinstance(node, Project)]
        intersects = [node for node in ready if isinstance(node, Intersect)]
        if not projects and not intersects:
            raise TypeError("a union or a negation has no single embedding: use disjuncts and without_negation first")
        if projects:
            settle(projects, interpretation.projects(projects, [values[id(node.source)] for node in projects]))
        if intersects:
            parts = [[values[id(part)] for part in node.parts] for node in intersects]
            settle(intersects, interpretation.intersects(intersects, parts))
    return [values[id(query)] for query in queries]
