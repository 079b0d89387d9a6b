"""A query: a small graph of anchors, projections, intersections and unions, folded from its anchors to its target.

A variable used twice is the same node twice. A batch is the same tree with columns of ids in place of ids.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

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


def intersect(parts: Sequence[Query], kind: int | None = None) -> Query:
    """The intersection of the parts; one part alone is itself, and the same part twice counts once."""
    kept: list[Query] = []
    for part in parts:
        if not any(part is other or (_is_edge(part) and part == other) for other in kept):
            kept.append(part)
    if len(kept) == 1 and kind is None:
        return kept[0]
    return Intersect(tuple(kept), kind)


def _is_edge(node: Query) -> bool:
    """Whether a node is one relation from an anchor, so that an equal node says the same."""
    return isinstance(node, Project) and isinstance(node.source, Anchor)


def shared_variables(query: Query) -> list[Query]:
    """The variables that lead to more than one node, in the order of the walk; none in a tree."""
    uses = Counter(id(child) for node in nodes(query) for child in children(node))
    return [node for node in nodes(query) if uses[id(node)] > 1 and not isinstance(node, Anchor)]


def edges(query: Query) -> Iterator[Project]:
    """The projections of a query, each once."""
    return (node for node in nodes(query) if isinstance(node, Project))


def signature(query: Query) -> str:
    """A text that two queries share just if they ask the same: colours of the nodes, refined by their neighbours."""
    order = nodes(query)
    number = {id(node): place for place, node in enumerate(order)}
    # An anchor is a constant: two nodes of the same entity are one, so it is told by its name and not by its users.
    below = [sorted({number[id(child)] for child in children(node)}) for node in order]
    above: list[list[int]] = [[] for _ in order]
    for upper, lowers in enumerate(below):
        for lower in lowers:
            above[lower].append(upper)
    colours = [_told(node) for node in order]
    for _ in order:
        colours = [
            colour
            if isinstance(order[place], Anchor)
            else _digest(
                colour,
                *sorted(colours[lower] for lower in below[place]),
                "|",
                *sorted(colours[upper] for upper in above[place]),
            )
            for place, colour in enumerate(colours)
        ]
    variables = sorted(colour for place, colour in enumerate(colours) if not isinstance(order[place], Anchor))
    return _digest(colours[-1], *variables)


def _told(node: Query) -> str:
    """What a node says by itself."""
    match node:
        case Anchor():
            return _digest("anchor", _column(node.entity))
        case Project():
            return _digest("project", _column(node.relation), str(node.kind))
        case Intersect() | Union():
            return _digest(type(node).__name__, str(len(set(map(id, node.parts)))), str(node.kind))


def _column(ids: Column) -> str:
    return ids.tobytes().hex() if isinstance(ids, np.ndarray) else str(int(ids))


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\x00".join(texts).encode(), digest_size=12).hexdigest()
