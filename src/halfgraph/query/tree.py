"""A query: a small graph of anchors, projections, intersections, unions and negations, folded from anchors to target.

A variable used twice is the same node twice. A batch is the same tree with columns of ids in place of ids.
A negation is a part of an intersection with a part that is none; its variables are used nowhere else.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import QueryError
from halfgraph.query.canonical import Colouring, digest

Column = int | NDArray[np.int32]
T = TypeVar("T")
ALONE = "what is asked only says what something is not, and that has no end of answers"


class _Node:
    """What all nodes share: equality up to the order of parts, with shared variables told from equal ones."""

    def __post_init__(self) -> None:
        """Nothing, or an error where a negation is not a part of an intersection that has another part."""
        negated = [isinstance(child, Negate) for child in children(self)]  # type: ignore[arg-type]
        if any(negated) and (all(negated) or not isinstance(self, Intersect)):
            raise QueryError(ALONE, advice="Join it with a part that says what the variable is.")

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
    """The variable that a relation leads to from another node; `type` restricts it where the query says so."""

    source: "Query"
    relation: Column
    type_id: int | None = None


@dataclass(frozen=True, eq=False)
class Intersect(_Node):
    """The variable that all parts lead to, and no negated one."""

    parts: tuple["Query", ...]
    type_id: int | None = None


@dataclass(frozen=True, eq=False)
class Union(_Node):
    """The variable that any of the parts leads to."""

    parts: tuple["Query", ...]
    type_id: int | None = None


@dataclass(frozen=True, eq=False)
class Negate(_Node):
    """That a path does not lead to the variable of the intersection that this is a part of."""

    part: "Query"


Query = Anchor | Project | Intersect | Union | Negate


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

    def negate(self, node: Negate, part: T) -> T:
        """What a path that must not be there yields, for the intersection that it is a part of."""


def children(node: Query) -> tuple[Query, ...]:
    """The nodes that lead to a node."""
    match node:
        case Anchor():
            return ()
        case Project():
            return (node.source,)
        case Intersect() | Union():
            return node.parts
        case Negate():
            return (node.part,)


def type_of(node: Query) -> int | None:
    """The type that the query says a node is of."""
    return None if isinstance(node, Anchor | Negate) else node.type_id


def nodes(query: Query, *, negated: bool = True) -> list[Query]:
    """Every node once, each after those that lead to it; the target is the last; or but for those in negations."""
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
            if negated or not isinstance(node, Negate):
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
            case Negate():
                yields[id(node)] = meaning.negate(node, yields[id(node.part)])
    return yields[id(query)]


def disjuncts(query: Query) -> list[Query]:
    """The queries without unions that have the answers of a query between them: one part of each union chosen.

    A union inside a negation stays: what is neither of two is not what is one of them.
    """
    union = next((node for node in nodes(query, negated=False) if isinstance(node, Union)), None)
    if union is None:
        return [query]
    chosen = (fold(query, _Chosen(union, place)) for place in range(len(union.parts)))
    return [one for query in chosen for one in disjuncts(query)]


class Rebuilt:
    """A meaning: the same query made anew; what is to be other than it was overrides a method."""

    def anchor(self, node: Anchor) -> Query:
        """The same anchor."""
        return node

    def project(self, node: Project, source: Query) -> Query:
        """The same relation."""
        return Project(source, node.relation, node.type_id)

    def intersect(self, node: Intersect, parts: list[Query]) -> Query:
        """The same intersection."""
        return Intersect(tuple(parts), node.type_id)

    def union(self, node: Union, parts: list[Query]) -> Query:
        """The same union."""
        return Union(tuple(parts), node.type_id)

    def negate(self, node: Negate, part: Query) -> Query:  # noqa: ARG002
        """The same negation."""
        return Negate(part)


@dataclass(frozen=True)
class _Chosen(Rebuilt):
    """One part of a union in its place."""

    chosen: Union
    place: int

    def union(self, node: Union, parts: list[Query]) -> Query:
        return intersect([parts[self.place]], node.type_id) if node is self.chosen else super().union(node, parts)


def without_negation(query: Query) -> Query:
    """The query with its negated parts left out: for a meaning that cannot say no, as a vector cannot."""
    return fold(query, _Affirmed()) if any(isinstance(node, Negate) for node in nodes(query)) else query


class _Affirmed(Rebuilt):
    """Intersections without their negated parts."""

    def intersect(self, node: Intersect, parts: list[Query]) -> Query:
        kept = [part for part in parts if not isinstance(part, Negate)]
        return super().intersect(node, parts) if len(kept) == len(parts) else intersect(kept, node.type_id)


def check_negations(query: Query) -> None:
    """Nothing, or an error where a negation stands alone or one of its variables is used outside of it as well."""
    order = nodes(query)
    if isinstance(query, Negate):
        raise QueryError(ALONE, advice="Join it with a part that says what the variable is.")
    for negation in (node for node in order if isinstance(node, Negate)):
        inside = {id(node) for node in nodes(negation.part) if not isinstance(node, Anchor)}
        outside = [node for node in order if id(node) not in inside]
        used = [child for node in outside for child in {*map(id, children(node))} & {*inside, id(negation)}]
        if set(used) - {id(negation), id(negation.part)} or len(used) > len(set(used)):
            raise QueryError(
                "a variable inside a negation is used outside of it too",
                advice="Negate a path whose variables are its own; only the variable that it leads to is shared.",
            )


def intersect(parts: Sequence[Query], type_id: int | None = None) -> Query:
    """The intersection of the parts; one part alone is itself, and the same part twice counts once."""
    once = list({id(part): part for part in parts}.values())
    # A part that other parts start from is a variable of theirs too: it stays, and an equal copy of it goes.
    inner = {id(node) for part in once for node in nodes(part)[:-1]}
    kept: list[Query] = []
    for part in once:
        others = [other for other in once if id(other) in inner] + kept
        if id(part) in inner or not (_is_closed(part) and part in others):
            kept.append(part)
    if len(kept) == 1 and type_id is None and not isinstance(kept[0], Negate):
        return kept[0]
    return Intersect(tuple(kept), type_id)


def _is_closed(node: Query) -> bool:
    """Whether an equal node says the same: one relation from an anchor, or a negation, whose variables are its own."""
    return isinstance(node, Negate) or (isinstance(node, Project) and isinstance(node.source, Anchor))


def shared_variables(query: Query) -> list[Query]:
    """The variables that lead to more than one node, in the order of the walk; none in a tree."""
    uses = Counter(child for node in nodes(query) for child in set(map(id, children(node))))
    return [node for node in nodes(query) if uses[id(node)] > 1 and children(node) and not isinstance(node, Negate)]


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
            return digest("project", _column(node.relation), str(node.type_id))
        case Intersect() | Union():
            return digest(type(node).__name__, str(node.type_id))
        case Negate():
            return digest("negate")


def _column(ids: Column) -> str:
    """The ids as a text; a column is told from a number."""
    return f"column {np.asarray(ids, np.int64).tobytes().hex()}" if isinstance(ids, np.ndarray) else str(int(ids))
