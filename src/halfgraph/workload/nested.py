"""Queries as nested lists, the form of query files, read into query trees and written from them.

An anchored path is `[anchor, [relation, ...]]`, an intersection a list of branches, a union the same ending with
`["u"]`, a further hop `[sub-query, [relation, ...]]`; `relation^-1` walks a relation from its tail to its head. A path
whose last relation is `n` is negated, unless the graph has a relation of that name.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

from halfgraph.errors import InputError, UnknownName
from halfgraph.graph.files import excerpt
from halfgraph.graph.folder import Graph
from halfgraph.graph.vocabulary import Vocabulary
from halfgraph.query.fold import fold
from halfgraph.query.tree import Anchor, Column, Intersect, Negate, Project, Query, Union

INVERSE = "^-1"
UNION = ["u"]
NEGATION = "n"
DEEPEST = 32  # lists within lists; far more than any structure in use has
EXPECTED = (
    '[anchor, [relation, ...]], [branch, branch, ...], [branch, branch, ..., ["u"]] or [sub-query, [relation, ...]]'
)


@dataclass(frozen=True)
class FilePosition:
    """A file, and a line of it if it has lines."""

    path: Path
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}" if self.line is not None else str(self.path)

    def error(self, problem: str, advice: str = "", column: int | None = None) -> InputError:
        return InputError(problem, path=self.path, line=self.line, column=column, advice=advice)


class Leaves(Protocol):
    """How the leaves of nested lists are read: names in our files, numbers in pickles."""

    leaf: ClassVar[type]
    union: ClassVar[Sequence[Any]]  # the last member of a union
    expected: ClassVar[str]  # the forms of a query, for errors

    def entity(self, leaf: Any, position: FilePosition) -> int: ...
    def entities(self, leaves: Any, position: FilePosition) -> list[int]: ...
    def relation(self, leaf: Any, position: FilePosition) -> int: ...  # the id of a directed relation
    def negates(self, leaf: Any) -> bool: ...  # whether it marks the path it ends as negated


def read_nested(value: Any, leaves: Leaves, position: FilePosition, depth: int = 0) -> Query:
    """Read nested lists or tuples into a query."""
    if depth > DEEPEST:
        raise position.error(f"the query has more than {DEEPEST} lists within lists")
    match value:
        case [anchor, [_, *_] as relations] if isinstance(anchor, leaves.leaf):
            return _follow(Anchor(leaves.entity(anchor, position)), relations, leaves, position)
        case [[*_] as source, [_, *_] as relations] if all(isinstance(leaf, leaves.leaf) for leaf in relations):
            return _follow(read_nested(source, leaves, position, depth + 1), relations, leaves, position)
        case [[*_], [*_], *_]:
            is_union = value[-1] == leaves.union
            parts = [read_nested(part, leaves, position, depth + 1) for part in (value[:-1] if is_union else value)]
            return Union(tuple(parts)) if is_union else Intersect(tuple(parts))
    raise position.error(f"expected {leaves.expected}, found {shown(value)}")


def _follow(query: Query, relations: Sequence[Any], leaves: Leaves, position: FilePosition) -> Query:
    for relation in relations:
        query = Negate(query) if leaves.negates(relation) else Project(query, leaves.relation(relation, position))
    return query


class GraphNames:
    """The names of a graph's entities and directed relations and their ids, each looked up once."""

    leaf: ClassVar[type] = str
    union: ClassVar[Sequence[Any]] = UNION
    expected: ClassVar[str] = EXPECTED

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.entity_name = cache(graph.entities.name)
        self.find_relation = cache(self._find_relation)
        self._find_entity = cache(graph.entities.find)

    def entity(self, leaf: Any, position: FilePosition) -> int:
        return self.entities([leaf], position)[0]

    def entities(self, leaves: Any, position: FilePosition) -> list[int]:
        if not isinstance(leaves, list):
            raise position.error(f"expected a list of entities, found {shown(leaves)}")
        ids = [self._find_entity(name) if isinstance(name, str) else None for name in leaves]
        if None in ids:
            raise _unknown(leaves[ids.index(None)], "entity", self.graph.entities, position)
        return ids  # type: ignore[return-value]

    def relation(self, leaf: Any, position: FilePosition) -> int:
        number = self.find_relation(leaf) if isinstance(leaf, str) else None
        if number is None:
            raise _unknown(leaf, "relation", self.graph.relations, position)
        return number

    def _find_relation(self, name: str) -> int | None:
        # A relation may itself be called something^-1.
        for forward, direction in ((name, 0), (name.removesuffix(INVERSE), 1)):
            number = self.graph.relations.find(forward)
            if number is not None:
                return 2 * number + direction
        return None

    def negates(self, leaf: Any) -> bool:
        return leaf == NEGATION and self.find_relation(leaf) is None


def _unknown(name: object, what: str, vocabulary: Vocabulary, position: FilePosition) -> Exception:
    if not isinstance(name, str):
        return position.error(f"expected the name of {'an' if what == 'entity' else 'a'} {what}, found {shown(name)}")
    nearest = [vocabulary.name(number) for number in vocabulary.nearest(name.removesuffix(INVERSE))]
    return UnknownName(excerpt(name), what=what, nearest=nearest, where=str(position))


def shown(value: object) -> str:
    """Return the beginning of a JSON value, for an error."""
    return excerpt(json.dumps(value, ensure_ascii=False, default=str))


Naming = Callable[[Column], str]
Branch = tuple[Any, list[str]]  # where a path starts, and its relations so far


def to_nested(query: Query, entity: Naming, relation: Naming) -> list[Any]:
    """Write a query as nested lists, its ids named by two functions."""
    start, relations = fold(query, _Nested(entity, relation))
    return [start, relations] if relations else list(start)


@dataclass(frozen=True)
class _Nested:
    """The interpretation behind `to_nested`."""

    entity: Naming
    relation: Naming

    def anchor(self, node: Anchor) -> Branch:
        return self.entity(node.entity), []

    def project(self, node: Project, source: Branch) -> Branch:
        return source[0], [*source[1], self.relation(node.relation)]

    def intersect(self, node: Intersect, parts: list[Branch]) -> Branch:  # noqa: ARG002
        return [list(part) if part[1] else part[0] for part in parts], []

    def union(self, node: Union, parts: list[Branch]) -> Branch:  # noqa: ARG002
        return [*(list(part) if part[1] else part[0] for part in parts), UNION], []

    def negate(self, node: Negate, part: Branch) -> Branch:  # noqa: ARG002
        return part[0], [*part[1], NEGATION]
