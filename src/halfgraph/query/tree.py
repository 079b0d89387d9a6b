"""The query tree: anchors, projections, intersections, unions and negations, from the anchors to the target.

A variable used twice is the same node object twice. A batch of queries is one tree with columns of ids.
A negation stands only in an intersection, beside a part that is not negated, and its variables are used nowhere else.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import QueryError

Column = int | NDArray[np.int32]
Span = tuple[int, int]
ONLY_NEGATIONS = "the query only excludes answers"
_OTHERS = frozenset(("name", "span", "source", "part", "parts"))
_JOIN_ADVICE = "Join the negation with a part that says what the variable is."


@dataclass(frozen=True, eq=False)
class Node:
    """What all nodes share. Equality ignores the order of parts, names and spans, and respects shared variables."""

    is_choice: ClassVar[bool] = False  # whether some of the parts are enough
    symbol: ClassVar[str]  # in formulas of structures: a format of the only child, or what joins several parts
    name: str | None = field(default=None, kw_only=True, repr=False)  # of the variable in the source text
    span: Span | None = field(default=None, kw_only=True, repr=False)  # where the source text says this

    def __post_init__(self) -> None:
        parts = children(self)  # type: ignore[arg-type]
        negated = [part for part in parts if isinstance(part, Negate)]
        if negated and (len(negated) == len(parts) or not isinstance(self, Intersect)):
            raise QueryError(ONLY_NEGATIONS, advice=_JOIN_ADVICE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and _key(self) == _key(other)

    def __hash__(self) -> int:
        return hash(_key(self))


def _key(node: Node) -> str:
    from halfgraph.query.canonical import canonical_key  # here, because it walks the tree itself

    return canonical_key(node)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Anchor(Node):
    """A known entity."""

    symbol = "a"
    entity: Column


@dataclass(frozen=True, eq=False)
class Project(Node):
    """The variable that a relation leads to from another node, restricted to a type if the query says so."""

    symbol = "{}p"
    source: "Query"
    relation: Column
    type_id: int | None = None


@dataclass(frozen=True, eq=False)
class Intersect(Node):
    """The variable that all parts lead to and no negated part does."""

    symbol = "&"
    parts: tuple["Query", ...]
    type_id: int | None = None


@dataclass(frozen=True, eq=False)
class Union(Node):
    """The variable that any of the parts leads to."""

    is_choice, symbol = True, "|"
    parts: tuple["Query", ...]
    type_id: int | None = None


@dataclass(frozen=True, eq=False)
class Negate(Node):
    """A part of an intersection that must not lead to its variable."""

    symbol = "~{}"  # sorted last
    part: "Query"


Query = Anchor | Project | Intersect | Union | Negate
NODE_TYPES: tuple[type[Node], ...] = (Anchor, Project, Intersect, Union, Negate)


def children(node: Query) -> tuple[Query, ...]:
    """Return the nodes that lead to a node."""
    match node:
        case Anchor():
            return ()
        case Project():
            return (node.source,)
        case Intersect() | Union():
            return node.parts
        case Negate():
            return (node.part,)


def rebuild(node: Query, parts: Sequence[Query]) -> Query:
    """Return the node with other children; its ids, type, name and span are kept."""
    match node:
        case Anchor():
            return node
        case Project():
            return Project(parts[0], node.relation, node.type_id, name=node.name, span=node.span)
        case Intersect() | Union():
            return type(node)(tuple(parts), node.type_id, name=node.name, span=node.span)
        case Negate():
            return Negate(parts[0], name=node.name, span=node.span)


def type_of(node: Query) -> int | None:
    """Return the type that the query restricts a node to, or None."""
    type_id: int | None = getattr(node, "type_id", None)
    return type_id


def attributes(node: Query) -> dict[str, Any]:
    """Return what a node says besides its children, name and span: its class, entity, relation and type."""
    return {"node": type(node).__name__} | {key: value for key, value in vars(node).items() if key not in _OTHERS}


def is_negated(node: Query) -> bool:
    """Whether a node is a negated part."""
    return isinstance(node, Negate)


def positive_parts(node: Query) -> list[Query]:
    """Return the children of a node that are not negated."""
    return [child for child in children(node) if not isinstance(child, Negate)]


def is_variable(node: Query) -> bool:
    """Whether a node stands for a variable: it is neither an anchor nor a negation."""
    return not isinstance(node, Anchor | Negate)


def nodes(query: Query, *, negated: bool = True) -> list[Query]:
    """Return every node once, each after its children and the target last; optionally without negated parts."""
    order: list[Query] = []
    seen: set[int] = set()
    stack: list[tuple[Query, bool]] = [(query, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            if negated or not isinstance(node, Negate):
                stack.extend((child, False) for child in reversed(children(node)))
    return order


def anchors(query: Query) -> list[Anchor]:
    """Return the anchors of a query, each once, in the order of `nodes`."""
    return [node for node in nodes(query) if isinstance(node, Anchor)]


def edges(query: Query) -> list[Project]:
    """Return the projections of a query, each once, in the order of `nodes`."""
    return [node for node in nodes(query) if isinstance(node, Project)]


def node_counts(query: Query) -> dict[type[Node], int]:
    """Count the nodes of each type."""
    counts = Counter(map(type, nodes(query)))
    return {node_type: counts[node_type] for node_type in NODE_TYPES}


def depth(query: Query) -> int:
    """Return the number of relations on the longest path."""
    depths: dict[int, int] = {}
    for node in nodes(query):
        below = max((depths[id(child)] for child in children(node)), default=0)
        depths[id(node)] = below + isinstance(node, Project)
    return depths[id(query)]


def has_intersection(query: Query) -> bool:
    """Whether paths meet in a query."""
    return node_counts(query)[Intersect] > 0


def has_choice(query: Query, *, negated: bool = True) -> bool:
    """Whether a query has alternative paths; optionally only outside negations."""
    return any(node.is_choice for node in nodes(query, negated=negated))


def has_negation(query: Query) -> bool:
    """Whether a part of the query is negated."""
    return node_counts(query)[Negate] > 0


def check_negations(query: Query) -> None:
    """Raise QueryError if a negation stands alone or shares a variable with the rest of the query."""
    order = nodes(query)
    if isinstance(query, Negate):
        raise QueryError(ONLY_NEGATIONS, advice=_JOIN_ADVICE)
    for negation in (node for node in order if isinstance(node, Negate)):
        inside = {id(node) for node in nodes(negation.part) if not isinstance(node, Anchor)}
        outside = [node for node in order if id(node) not in inside]
        used = [child for node in outside for child in {*map(id, children(node))} & {*inside, id(negation)}]
        if set(used) - {id(negation), id(negation.part)} or len(used) > len(set(used)):
            raise QueryError(
                "a variable inside a negation is also used outside of it",
                advice="Only the variable that a negated path leads to may be shared with the rest of the query.",
            )


def intersect(parts: Sequence[Query], type_id: int | None = None) -> Query:
    """Return the intersection of the parts without duplicates; a single part is returned as it is."""
    once = list({id(part): part for part in parts}.values())
    # A part that other parts start from is their variable too: it is kept, and its equal copies are dropped.
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
    """Whether equal nodes are interchangeable: a negation, or one relation from an anchor."""
    return isinstance(node, Negate) or (isinstance(node, Project) and isinstance(node.source, Anchor))


def shared_variables(query: Query, *, negated: bool = True) -> list[Query]:
    """Return the variables that lead to more than one node, in the order of `nodes`; a tree has none."""
    order = nodes(query, negated=negated)
    uses = Counter(child for node in order for child in set(map(id, children(node))))
    return [node for node in order if uses[id(node)] > 1 and children(node) and is_variable(node)]
