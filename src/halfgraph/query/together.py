"""The walk of several queries at once: all nodes of a type that are ready are taken together."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from halfgraph.query.tree import Anchor, Intersect, Project, Query, children, nodes

T = TypeVar("T")


class MeaningTogether(Protocol[T]):
    """A meaning that takes many nodes of a type at once, of one query or of several."""

    def anchors(self, nodes: list[Anchor]) -> list[T]:
        """What known entities yield."""

    def projects(self, nodes: list[Project], sources: list[T]) -> list[T]:
        """What following relations yields."""

    def intersects(self, nodes: list[Intersect], parts: list[list[T]]) -> list[T]:
        """What joining paths yields."""


def fold_together(queries: Sequence[Query], meaning: MeaningTogether[T]) -> list[T]:
    """What each query means; the same walk as `fold`, with all nodes that are ready taken at once.

    Queries with a union or a negation are refused: they have no one vector (see `disjuncts`, `without_negation`).
    """
    yields: dict[int, T] = {}
    waiting = {id(node): node for query in queries for node in nodes(query)}

    def settle(some: list[Any], found: list[T]) -> None:
        for node, value in zip(some, found, strict=True):
            yields[id(node)] = value
            del waiting[id(node)]

    anchors = [node for node in waiting.values() if isinstance(node, Anchor)]
    settle(anchors, meaning.anchors(anchors))
    while waiting:
        ready = [node for node in waiting.values() if all(id(child) in yields for child in children(node))]
        paths = [node for node in ready if isinstance(node, Project)]
        joints = [node for node in ready if isinstance(node, Intersect)]
        if not paths and not joints:
            raise TypeError("a query with a union or a negation has no one vector: take its disjuncts without negation")
        if paths:
            settle(paths, meaning.projects(paths, [yields[id(node.source)] for node in paths]))
        if joints:
            parts = [[yields[id(part)] for part in node.parts] for node in joints]
            settle(joints, meaning.intersects(joints, parts))
    return [yields[id(query)] for query in queries]
