"""A query as the patterns of the paper's Definition 1: edges between named variables and known entities."""

import re
from collections.abc import Iterator, Mapping, Sequence
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
    has_choice,
    is_variable,
    nodes,
    shared_variables,
    type_of,
)

Term = Anchor | str  # a known entity, or the name of a variable


@dataclass(frozen=True)
class Edge:
    """A relation leads from a term to a variable."""

    source: Term
    relation: int
    target: str


@dataclass(frozen=True)
class OfType:
    """A variable is of a type."""

    variable: str
    type_id: int


@dataclass(frozen=True)
class Equals:
    """A variable is a known entity."""

    variable: str
    anchor: Anchor


@dataclass(frozen=True)
class Either:
    """One of several groups of patterns holds."""

    variable: str
    groups: tuple["Group", ...]


@dataclass(frozen=True)
class Not:
    """Patterns do not hold of a variable; their other variables are used nowhere else."""

    variable: str
    group: "Group"


Pattern = Edge | OfType | Equals | Either | Not
Group = tuple[Pattern, ...]


def flatten(query: Query, target: str = "answer") -> Group:
    """Return the patterns of a query; its variables are v1, v2, ..., each after its sources.

    An intersection is the same variable as its parts. If a query with unions uses a variable twice, the unions come
    first: only then is it clear which uses belong together.
    """
    check_negations(query)
    return _flatten(query, target, 0)


def named_patterns(query: Query) -> Group:
    """Return the patterns of a query that was read from a text, by the names of its variables there."""
    return _group(query, variable_names(query), 0)


def variable_names(query: Query) -> dict[int, str]:
    """Return the variable of each node, by the node's id; the parts of an intersection, union or negation share it."""
    names: dict[int, str] = {}
    for number, node in enumerate(reversed(nodes(query))):
        if not isinstance(node, Anchor) or node is query:
            name = names.setdefault(id(node), _plain(node.name or f"/{number}"))
            if not isinstance(node, Project):
                names |= {id(part): name for part in children(node) if not isinstance(part, Anchor)}
    return names


def _plain(name: str) -> str:
    """Return a name that SPARQL allows; blank nodes and the middles of paths are _:b, [1] and /0.1 in the tree."""
    return "_" + re.sub(r"\W", "_", name.strip("_:[]/")) if re.search(r"\W", name) else name


def _flatten(query: Query, target: str, used: int) -> Group:
    """Return the patterns of a query, its variables numbered after `used`."""
    if has_choice(query, negated=False) and shared_variables(query, negated=False):
        return (Either(target, tuple(_flatten(disjunct, target, used) for disjunct in disjuncts(query))),)
    names = _names(query, target, used)
    numbers = [int(name[1:]) for name in names.values() if re.fullmatch(r"v\d+", name)]
    return _group(query, names, max([used, *numbers]))


Names = Mapping[int, str]  # the variable of each node, by the node's id


def _names(query: Query, target: str, used: int) -> dict[int, str]:
    """Name the variable of each node; a node and the parts that meet in it are one variable."""
    order = [node for node in nodes(query, negated=False) if not isinstance(node, Negate)]
    representative = {id(node): id(node) for node in order}
    for node in order:
        for part in () if isinstance(node, Project) else children(node):
            if is_variable(part):
                old, new = representative[id(part)], representative[id(node)]
                representative |= {key: new for key, value in representative.items() if value == old}
    numbered = (f"v{number}" for number in range(used + 1, used + len(order) + 2) if f"v{number}" != target)
    names = dict(zip(_sources_first(order, representative), numbered, strict=False))
    names[representative[id(query)]] = target
    return {key: names[value] for key, value in representative.items() if value in names}


def _sources_first(order: Sequence[Query], representative: Mapping[int, int]) -> list[int]:
    """Order the variables, each after its sources if possible; the target is left out."""
    sources: dict[int, set[int]] = {representative[id(node)]: set() for node in order if is_variable(node)}
    for node in order:
        if isinstance(node, Project) and is_variable(node.source):
            sources[representative[id(node)]].add(representative[id(node.source)])
    sources.pop(representative[id(order[-1])], None)
    waiting = dict.fromkeys(sources)
    ordered: list[int] = []
    while waiting:
        ready = (variable for variable in waiting if waiting.keys().isdisjoint(sources[variable]))
        ordered.append(next(ready, next(iter(waiting))))
        del waiting[ordered[-1]]
    return ordered


def _group(query: Query, names: Names, used: int) -> Group:
    """Return the patterns of a query, each once; those inside a union or a negation stay inside."""
    if isinstance(query, Anchor):
        return (Equals(names[id(query)], query),)
    order = nodes(query, negated=False)
    choices = [node for node in order if node.is_choice]
    inside = {id(node) for choice in choices for part in children(choice) for node in nodes(part)}
    outside = [node for node in order if id(node) not in inside and is_variable(node)]
    return tuple(dict.fromkeys(pattern for node in outside for pattern in _patterns(node, names, used)))


def _patterns(node: Query, names: Names, used: int) -> Iterator[Pattern]:
    name = names[id(node)]
    match node:
        case Project():
            source = node.source if isinstance(node.source, Anchor) else names[id(node.source)]
            yield Edge(source, int(node.relation), name)
        case Intersect():
            yield from (Equals(name, part) for part in node.parts if isinstance(part, Anchor))
            for part in (part.part for part in node.parts if isinstance(part, Negate)):
                named = id(part) in names  # its variables may have names already
                inner = _group(part, {**names, id(part): name}, used) if named else _flatten(part, name, used)
                yield Not(name, inner)
        case Union():
            yield Either(name, tuple(_group(part, {**names, id(part): name}, used) for part in node.parts))
    type_id = type_of(node)
    if type_id is not None:
        yield OfType(name, type_id)


def variables(group: Group) -> list[str]:
    """Return the variables of the patterns, v2 before v10, without those that only occur in negations."""
    names: set[str] = set()
    for pattern in group:
        match pattern:
            case Edge():
                names |= {term for term in (pattern.source, pattern.target) if isinstance(term, str)}
            case OfType() | Equals() | Not():
                names.add(pattern.variable)
            case Either():
                names |= {pattern.variable, *(name for part in pattern.groups for name in variables(part))}
    return sorted(names, key=by_name)


def by_name(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which numbers inside names count as numbers."""
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", name)]
