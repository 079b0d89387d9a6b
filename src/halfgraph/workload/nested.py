"""Queries as nested lists of names, the form of query files.

An anchored path is `[anchor, [relation, ...]]`, an intersection a list of branches, a union the same ending with
`["u"]`, a further hop `[sub-query, [relation, ...]]`; `relation^-1` walks a relation from its tail to its head. A path
whose last relation is `n` is negated, unless the graph has a relation of that name.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from halfgraph.errors import InputError, UnknownName
from halfgraph.graph.files import excerpt
from halfgraph.graph.folder import Graph
from halfgraph.graph.vocabulary import Vocabulary
from halfgraph.query.fold import fold
from halfgraph.query.tree import Anchor, Column, Intersect, Negate, Project, Query, Union

INVERSE = "^-1"
UNION = ["u"]
NEGATION = "n"  # stands among the relations of a path in the files of the field
DEEPEST = 32  # lists within lists; no structure that anybody asks comes near
FORMS = '[anchor, [relation, ...]], [branch, branch, ...], [branch, branch, ..., ["u"]] or [sub-query, [relation, ...]]'


@dataclass(frozen=True)
class Place:
    """Where something was read."""

    path: Path
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}" if self.line is not None else str(self.path)

    def error(self, problem: str, advice: str = "") -> InputError:
        """An error about this place."""
        return InputError(problem, path=self.path, line=self.line, advice=advice)


class _Ids(dict[str, int]):
    """Ids by name, looked up when first asked for; a KeyError where there is none."""

    def __init__(self, words: Vocabulary) -> None:
        super().__init__()
        self.words = words

    def __missing__(self, name: object) -> int:
        found = self.words.find(name) if isinstance(name, str) else None
        if found is None:
            raise KeyError(name)
        self[str(name)] = found
        return found


class Names:
    """The names of a graph's entities and directed relations, both ways, each looked up once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._entities = _Ids(graph.entities)
        self._relations: dict[str, int | None] = {}
        self._entity_names: dict[int, str] = {}

    def entity(self, name: object, place: Place) -> int:
        """The id of an entity."""
        return self.entities([name], place)[0]

    def entities(self, names: Any, place: Place) -> list[int]:
        """The ids of a list of entities."""
        if not isinstance(names, list):
            raise place.error(f"expected a list of entities, found {shown(names)}")
        try:
            return list(map(self._entities.__getitem__, names))
        except (KeyError, TypeError):
            unknown = next(name for name in names if not isinstance(name, str) or name not in self.graph.entities)
            raise _unknown(unknown, "entity", self.graph.entities, place) from None

    def relation(self, name: object, place: Place) -> int:
        """The id of a directed relation."""
        found = self.find_relation(name)
        if found is None:
            raise _unknown(name, "relation", self.graph.relations, place)
        return found

    def find_relation(self, name: object) -> int | None:
        """The id of a directed relation, or None."""
        if not isinstance(name, str):
            return None
        if name not in self._relations:
            self._relations[name] = self._look_up(name)
        return self._relations[name]

    def _look_up(self, name: str) -> int | None:
        """The id of a directed relation, or None; a relation may itself be called something^-1."""
        for plain, flip in ((name, 0), (name.removesuffix(INVERSE), 1)):
            found = self.graph.relations.find(plain)
            if found is not None:
                return 2 * found + flip
        return None

    def negates(self, name: object) -> bool:
        """Whether a name among the relations of a path says that it is negated."""
        return name == NEGATION and self.find_relation(name) is None

    def entity_name(self, entity: int) -> str:
        """The name of an entity."""
        if entity not in self._entity_names:
            self._entity_names[entity] = self.graph.entities.name(entity)
        return self._entity_names[entity]


def _unknown(name: object, what: str, words: Vocabulary, place: Place) -> Exception:
    """The error for a name that is none of the graph's."""
    if not isinstance(name, str):
        return place.error(f"expected the name of {'an' if what == 'entity' else 'a'} {what}, found {shown(name)}")
    nearest = [words.name(found) for found in words.nearest(name.removesuffix(INVERSE))]
    return UnknownName(excerpt(name), what=what, nearest=nearest, where=str(place))


def shown(value: object) -> str:
    """The beginning of a JSON value, to show in an error."""
    return excerpt(json.dumps(value, ensure_ascii=False, default=str))


class Numbers(Protocol):
    """What gives names their ids."""

    def entity(self, name: object, place: Place) -> int:
        """The id of an entity."""

    def relation(self, name: object, place: Place) -> int:
        """The id of a directed relation."""

    def negates(self, name: object) -> bool:
        """Whether a name among the relations of a path says that it is negated."""


def read_nested(value: object, names: Numbers, place: Place, depth: int = 0) -> Query:
    """The query that nested lists say."""
    if depth > DEEPEST:
        raise place.error(f"the query has more than {DEEPEST} lists within lists")
    match value:
        case [str(anchor), list(relations)] if relations:
            return _hops(Anchor(names.entity(anchor, place)), relations, names, place)
        case [list(source), [str(), *_] as relations] if all(isinstance(name, str) for name in relations):
            return _hops(read_nested(source, names, place, depth + 1), relations, names, place)
        case [list(), list(), *_]:
            type_id, parts = (Union, value[:-1]) if value[-1] == UNION else (Intersect, value)
            return type_id(tuple(read_nested(part, names, place, depth + 1) for part in parts))
    raise place.error(f"expected {FORMS}, found {shown(value)}")


def _hops(query: Query, relations: Iterable[object], names: Numbers, place: Place) -> Query:
    """The query followed by some relations."""
    for relation in relations:
        query = Negate(query) if names.negates(relation) else Project(query, names.relation(relation, place))
    return query


def form_of_lists(value: object, depth: int = 0) -> str:
    """The form of nested lists, whatever names they hold: a is an anchor, a number the relations of a path, u a union.

    A path with a negation is n and its length.
    """
    if not isinstance(value, list) or depth > DEEPEST:
        return "a"
    if value == UNION:
        return "u"
    if all(isinstance(name, str) for name in value):
        return f"{'n' if NEGATION in value else ''}{len(value)}"
    return f"[{','.join([form_of_lists(part, depth + 1) for part in value])}]"


Spelling = Callable[[Column], str]


def to_nested(query: Query, entity: Spelling, relation: Spelling) -> list[Any]:
    """The query as nested lists, its ids spelled by two functions."""
    start, relations = fold(query, _Nested(entity, relation))
    return [start, relations] if relations else list(start)


def _whole(path: tuple[Any, list[str]]) -> Any:
    """A path as a list: where it starts, and its relations if there are any."""
    start, relations = path
    return [start, relations] if relations else start


@dataclass(frozen=True)
class _Nested:
    """A meaning: where a path starts, and its relations so far."""

    entity: Spelling
    relation: Spelling

    def anchor(self, node: Anchor) -> tuple[Any, list[str]]:
        return self.entity(node.entity), []

    def project(self, node: Project, source: tuple[Any, list[str]]) -> tuple[Any, list[str]]:
        return source[0], [*source[1], self.relation(node.relation)]

    def intersect(self, node: Intersect, parts: list[tuple[Any, list[str]]]) -> tuple[Any, list[str]]:  # noqa: ARG002
        return [_whole(part) for part in parts], []

    def union(self, node: Union, parts: list[tuple[Any, list[str]]]) -> tuple[Any, list[str]]:  # noqa: ARG002
        return [*(_whole(part) for part in parts), UNION], []

    def negate(self, node: Negate, part: tuple[Any, list[str]]) -> tuple[Any, list[str]]:  # noqa: ARG002
        return part[0], [*part[1], NEGATION]
