"""A query as the patterns of the paper's Definition 1, and back: edges between named variables and known entities."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from halfgraph.query.rewriting import disjuncts
from halfgraph.query.tree import (
    Anchor,
    Intersect,
    Negate,
    Project,
    Query,
    Union,
    check_negations,
    children,
    nodes,
    shared_variables,
)

Term = Anchor | str  # a known entity, or the name of a variable


@dataclass(frozen=True)
class Edge:
    """That a relation leads from a term to a variable."""

    source: Term
    relation: int
    target: str


@dataclass(frozen=True)
class OfType:
    """That a variable is of a type."""

    variable: str
    type_id: int


@dataclass(frozen=True)
class Equals:
    """That a variable is a known entity."""

    variable: str
    anchor: Anchor


@dataclass(frozen=True)
class Either:
    """That one of several groups of patterns holds."""

    variable: str
    groups: tuple["Group", ...]


@dataclass(frozen=True)
class Not:
    """That patterns do not hold of a variable; their other variables are their own."""

    variable: str
    group: "Group"


Pattern = Edge | OfType | Equals | Either | Not
Group = tuple[Pattern, ...]


def flatten(query: Query, target: str = "answer") -> Group:
    """The patterns of a query; its variables are v1, v2, ... in an order in which each comes after its sources.

    An intersection is the same variable as its parts. Where a variable is used twice in a query with unions, the
    unions are drawn to the front: only so is it plain which uses go together.
    """
    check_negations(query)
    return _flat(query, target, 0)


def _flat(query: Query, target: str, used: int) -> Group:
    """The patterns of a query, its variables named from a number on."""
    if any(isinstance(node, Union) for node in nodes(query, negated=False)) and _shares(query):
        return (Either(target, tuple(_flat(one, target, used) for one in disjuncts(query))),)
    names = _names(query, target, used)
    numbers = [int(name[1:]) for name in names.values() if re.fullmatch(r"v\d+", name)]
    return _group(query, _Named(names, max([used, *numbers])))


def _shares(query: Query) -> bool:
    """Whether a variable outside of negations is used twice."""
    outside = {id(node) for node in nodes(query, negated=False)}
    return any(id(node) in outside for node in shared_variables(query))


@dataclass(frozen=True)
class _Named:
    """The variable of each node (by its id), and a number that no name goes beyond."""

    names: Mapping[int, str]
    used: int


def _names(query: Query, target: str, used: int) -> dict[int, str]:
    """The variable of each node (by its id): nodes that meet in an intersection or a union are one variable."""
    order = [node for node in nodes(query, negated=False) if not isinstance(node, Negate)]
    meeting = {id(node): id(node) for node in order}  # one node for all that meet
    for node in order:
        for part in children(node) if isinstance(node, Intersect | Union) else ():
            if not isinstance(part, Anchor | Negate):
                old, new = meeting[id(part)], meeting[id(node)]
                meeting |= {one: new for one, met in meeting.items() if met == old}
    numbered = (f"v{number}" for number in range(used + 1, used + len(order) + 2) if f"v{number}" != target)
    names = dict(zip(_sources_first(order, meeting), numbered, strict=False)) | {meeting[id(query)]: target}
    return {one: names[met] for one, met in meeting.items() if met in names}


def _sources_first(order: Sequence[Query], meeting: Mapping[int, int]) -> list[int]:
    """The variables, each after those that lead to it where that can be; the target is left out."""
    sources: dict[int, set[int]] = {meeting[id(node)]: set() for node in order if not isinstance(node, Anchor)}
    for node in order:
        if isinstance(node, Project) and not isinstance(node.source, Anchor):
            sources[meeting[id(node)]].add(meeting[id(node.source)])
    sources.pop(meeting[id(order[-1])], None)
    waiting = dict.fromkeys(sources)
    found: list[int] = []
    while waiting:
        ready = (one for one in waiting if waiting.keys().isdisjoint(sources[one]))
        found.append(next(ready, next(iter(waiting))))
        del waiting[found[-1]]
    return found


def _group(query: Query, named: _Named) -> Group:
    """The patterns of a query, each once; those inside a union or a negation stay inside."""
    if isinstance(query, Anchor):
        return (Equals(named.names[id(query)], query),)
    order = nodes(query, negated=False)
    unions = [node for node in order if isinstance(node, Union)]
    inside = {id(node) for union in unions for part in union.parts for node in nodes(part)}
    own = [node for node in order if id(node) not in inside and not isinstance(node, Anchor | Negate)]
    return tuple(dict.fromkeys(pattern for node in own for pattern in _patterns(node, named)))


def _patterns(node: Project | Intersect | Union, named: _Named) -> Iterable[Pattern]:
    """What a node says by itself."""
    name = named.names[id(node)]
    match node:
        case Project():
            source = node.source if isinstance(node.source, Anchor) else named.names[id(node.source)]
            yield Edge(source, int(node.relation), name)
        case Intersect():
            yield from (Equals(name, part) for part in node.parts if isinstance(part, Anchor))
            negated = (part.part for part in node.parts if isinstance(part, Negate))
            yield from (Not(name, _flat(part, name, named.used)) for part in negated)
        case Union():
            inner = (_Named({**named.names, id(part): name}, named.used) for part in node.parts)
            yield Either(name, tuple(_group(part, one) for part, one in zip(node.parts, inner, strict=True)))
    if node.type_id is not None:
        yield OfType(name, node.type_id)


def variables(group: Group) -> list[str]:
    """The variables of some patterns, v2 before v10; those of a negation are its own."""
    found: set[str] = set()
    for pattern in group:
        match pattern:
            case Edge():
                found |= {term for term in (pattern.source, pattern.target) if isinstance(term, str)}
            case OfType() | Equals() | Not():
                found.add(pattern.variable)
            case Either():
                found |= {pattern.variable, *(name for some in pattern.groups for name in variables(some))}
    return sorted(found, key=by_name)


def by_name(name: str) -> list[tuple[int, str]]:
    """What to sort names by: numbers in them count as numbers."""
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def build(
    edges: Sequence[Edge], types: Mapping[str, int], order: Sequence[str], others: Mapping[str, Sequence[Query]]
) -> dict[str, Query]:
    """The node of each variable; the edges differ, and the order has each variable after its sources.

    `others` are further parts of a variable: entities, unions and negations.
    """
    found: dict[str, Query] = {}
    for variable in order:
        parts = [Project(_node(edge.source, found), edge.relation) for edge in edges if edge.target == variable]
        found[variable] = _variable([*parts, *others.get(variable, ())], types.get(variable))
    return found


def _variable(parts: Sequence[Query], type_id: int | None) -> Query:
    """The node of a variable in its plainest form."""
    match parts:
        case [Project() as only]:
            return Project(only.source, only.relation, type_id)
        case [Union(type_id=None) as only]:
            return Union(only.parts, type_id)
        case [Anchor() as only] if type_id is None:
            return only
    return Intersect(tuple(parts), type_id)


def _node(term: Term, found: Mapping[str, Query]) -> Query:
    return Anchor(term.entity) if isinstance(term, Anchor) else found[term]
