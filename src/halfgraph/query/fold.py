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
        match node:
            case Anchor():
                values[id(node)] = interpretation.anchor(node)
            case Project():
                values[id(node)] = interpretation.project(node, values[id(node.source)])
            case Intersect():
                values[id(node)] = interpretation.intersect(node, [values[id(part)] for part in node.parts])
            case Union():
                values[id(node)] = interpretation.union(node, [values[id(part)] for part in node.parts])
            case Negate():
                values[id(node)] = interpretation.negate(node, values[id(node.part)])
    return values[id(query)]


class BatchInterpretation(Protocol[T]):
    """An interpretation that takes many nodes of a type at once, of one query or of several.

    It may have `unions` and `negates` too.
    """

    def anchors(self, nodes: list[Anchor]) -> list[T]: ...
    def projects(self, nodes: list[Project], sources: list[T]) -> list[T]: ...
    def intersects(self, nodes: list[Intersect], parts: list[list[T]]) -> list[T]: ...


def fold_batch(queries: Sequence[Query], interpretation: BatchInterpretation[T]) -> list[T]:
    """Return the value of each query; all nodes whose children have values are interpreted at once.

    A union or a negation has no single embedding. An interpretation by embeddings has no method for them, and refuses
    them (see `disjuncts` and `without_negation`).
    """
    values: dict[int, T] = {}
    waiting = {id(node): node for query in queries for node in nodes(query)}

    def settle(method: str, settled: list[Any], *parts: list[Any]) -> None:
        interpret = getattr(interpretation, method, None)
        if interpret is None:
            raise TypeError("a union or a negation has no single embedding: use disjuncts and without_negation first")
        for node, value in zip(settled, interpret(settled, *parts), strict=True):
            values[id(node)] = value
            del waiting[id(node)]

    settle("anchors", [node for node in waiting.values() if isinstance(node, Anchor)])
    while waiting:
        ready = [node for node in waiting.values() if all(id(child) in values for child in children(node))]
        for kind, method in _METHODS.items():
            some = [node for node in ready if isinstance(node, kind)]
            if some:
                parts = [[values[id(child)] for child in children(node)] for node in some]
                settle(method, some, [own[0] for own in parts] if kind in (Project, Negate) else parts)
    return [values[id(query)] for query in queries]


_METHODS: dict[type[Query], str] = {
    Project: "projects",
    Intersect: "intersects",
    Union: "unions",
    Negate: "negates",
}
