"""A query: a small graph of anchors, projections, intersections and unions, folded from its anchors to its target.

A variable used twice is the same node twice. A batch is the same tree with columns of ids in place of ids.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfgraph.query.colouring import Colouring, digest

Column = int | NDArray[np.int32]
T = TypeVar("T")


class _Node:
    """What all nodes share: equality up to the order of parts, with shared variables told from equal ones."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Node) and signature(self) == signature(other)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(signature(self))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Anchor(_Node):
    """A known entity."""

    entity: Column


@dataclass(frozen=True, eq=False)
class Project(_Node):
    """The variable that a relation leads to from another node; `kind` restricts it where the query says so."""

    source: "Query"
    relation: Column
    kind: int | None = None


@dataclass(frozen=True, eq=False)
class Intersect(_Node):
    """The variable that all parts lead to."""

    parts: tuple["Query", ...]
    kind: int | None = None


@dataclass(frozen=True, eq=False)
class Union(_Node):
    """The variable that any of the parts leads to."""

    parts: tuple["Query", ...]
    kind: int | None = None


Query = Anchor | Project | Intersect | Union


class Meaning(Protocol[T]):
    """What each kind of node yields; `fold` calls it once for each node."""

    def anchor(self, node: Anchor) -> T:
        """What a known entity yields."""

    def project(self, node: Project, source: T) -> T:
        """What following a relation yields."""

    def intersect(self, node: Intersect, parts: list[T]) -> T:
        """What joining paths yields."""

    def union(self, node: Union, parts: list[T]) -> T:
        """What alternative paths yield."""


def children(node: Query) -> tuple[Query, ...]:
    """The nodes that lead to a node."""
    match node:
        case Anchor():
            return ()
        case Project():
            return (node.source,)
        case Intersect() | Union():
            return node.parts


def nodes(query: Query) -> list[Query]:
    """Every node once, each after those that lead to it; the target is the last."""
    order: list[Query] = []
    seen: set[int] = set()
    todo: list[tuple[Query, bool]] = [(query, False)]
    while todo:
        node, ready = todo.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo.extend((child, False) for child in reversed(children(node)))
    return order


def fold(query: Query, meaning: Meaning[T]) -> T:
    """What the query means: each node's yield from those of the nodes that lead to it."""
    yields: dict[int, T] = {}
    for node in nodes(query):
        match node:
            case Anchor():
                yields[id(node)] = meaning.anchor(node)
            case Project():
                yields[id(node)] = meaning.project(node, yields[id(node.source)])
            case Intersect():
                yields[id(node)] = meaning.intersect(node, [yields[id(part)] for part in node.parts])
            case Union():
                yields[id(node)] = meaning.union(node, [yields[id(part)] for part in node.parts])
    return yields[id(query)]


class MeaningTogether(Protocol[T]):
    """A meaning that takes many nodes of a kind at once, of one query or of several."""

    def anchors(self, nodes: list[Anchor]) -> list[T]:
        """What known entities yield."""

    def projects(self, nodes: list[Project], sources: list[T]) -> list[T]:
        """What following relations yields."""

    def intersects(self, nodes: list[Intersect], parts: list[list[T]]) -> list[T]:
        """What joining paths yields."""


def fold_together(queries: Sequence[Query], meaning: MeaningTogether[T]) -> list[T]:
    """What each query means; the same walk as `fold`, with all nodes that are ready taken at once.

    Queries with a union are refused: a union of paths has no one vector (see `disjuncts`).
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
            raise TypeError("a query with a union has no one vector: take its disjuncts")
        if paths:
            settle(paths, meaning.projects(paths, [yields[id(node.source)] for node in paths]))
        if joints:
            parts = [[yields[id(part)] for part in node.parts] for node in joints]
            settle(joints, meaning.intersects(joints, parts))
    return [yields[id(query)] for query in queries]


def disjuncts(query: Query) -> list[Query]:
    """The queries without unions that have the answers of a query between them: one part of each union chosen."""
    union = next((node for node in nodes(query) if isinstance(node, Union)), None)
    if union is None:
        return [query]
    chosen = (fold(query, _Chosen(union, place)) for place in range(len(union.parts)))
    return [one for query in chosen for one in disjuncts(query)]


@dataclass(frozen=True)
class _Chosen:
    """A meaning: the same query with one part of a union in its place."""

    chosen: Union
    place: int

    def anchor(self, node: Anchor) -> Query:
        return node

    def project(self, node: Project, source: Query) -> Query:
        return Project(source, node.relation, node.kind)

    def intersect(self, node: Intersect, parts: list[Query]) -> Query:
        return Intersect(tuple(parts), node.kind)

    def union(self, node: Union, parts: list[Query]) -> Query:
        if node is self.chosen:
            return intersect([parts[self.place]], node.kind)
        return Union(tuple(parts), node.kind)


def intersect(parts: Sequence[Query], kind: int | None = None) -> Query:
    """The intersection of the parts; one part alone is itself, and the same part twice counts once."""
    once = list({id(part): part for part in parts}.values())
    # A part that other parts start from is a variable of theirs too: it stays, and an equal copy of it goes.
    inner = {id(node) for part in once for node in nodes(part)[:-1]}
    kept: list[Query] = []
    for part in once:
        others = [other for other in once if id(other) in inner] + kept
        if id(part) in inner or not (_is_edge(part) and part in others):
            kept.append(part)
    if len(kept) == 1 and kind is None:
        return kept[0]
    return Intersect(tuple(kept), kind)


def _is_edge(node: Query) -> bool:
    """Whether a node is one relation from an anchor, so that an equal node says the same."""
    return isinstance(node, Project) and isinstance(node.source, Anchor)


def shared_variables(query: Query) -> list[Query]:
    """The variables that lead to more than one node, in the order of the walk; none in a tree."""
    uses = Counter(child for node in nodes(query) for child in set(map(id, children(node))))
    return [node for node in nodes(query) if uses[id(node)] > 1 and children(node)]


def edges(query: Query) -> Iterator[Project]:
    """The projections of a query, each once."""
    return (node for node in nodes(query) if isinstance(node, Project))


def signature(query: Query) -> str:
    """A text that two queries share just if they are the same but for the order of parts and copies of anchors."""
    # An anchor is a constant: all nodes of an entity are one, told by its name and not by its users.
    order = {identity(node): node for node in nodes(query)}
    place = {name: number for number, name in enumerate(order)}
    below = [sorted({place[identity(child)] for child in children(node)}) for node in order.values()]
    above: list[list[int]] = [[] for _ in order]
    for upper, lowers in enumerate(below):
        for lower in lowers:
            above[lower].append(upper)
    variables = [number for number, node in enumerate(order.values()) if not isinstance(node, Anchor)]
    return Colouring(below, above, variables).text([_told(node) for node in order.values()])


def identity(node: Query) -> str | int:
    """What tells a node from the others of its query."""
    return _column(node.entity) if isinstance(node, Anchor) else id(node)


def _told(node: Query) -> str:
    """What a node says by itself."""
    match node:
        case Anchor():
            return digest("anchor", _column(node.entity))
        case Project():
            return digest("project", _column(node.relation), str(node.kind))
        case Intersect() | Union():
            return digest(type(node).__name__, str(node.kind))


def _column(ids: Column) -> str:
    """The ids as a text; a column is told from a number."""
    return f"column {np.asarray(ids, np.int64).tobytes().hex()}" if isinstance(ids, np.ndarray) else str(int(ids))
