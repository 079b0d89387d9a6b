"""What is known: the rows that the store gives, named for people."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyoxigraph import Store

from halfgraph.answering.schema import Cell, Found, Known
from halfgraph.answering.worker import Worker, answered
from halfgraph.errors import SettingError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.store import open_store, store_folder
from halfgraph.graph.vocabulary import local_name
from halfgraph.sparql.prefixes import Prefixes

MOST_SEEN = 100_000  # names that are remembered


@dataclass(frozen=True)
class Rows:
    """The rows of a SELECT query as W3C's JSON has them."""

    variables: Sequence[str]
    bindings: Sequence[Mapping[str, Mapping[str, str]]]


@dataclass(frozen=True)
class Facts:
    """The statements of a view of a graph; with a time limit each query is asked in a process of its own."""

    graph: Graph
    view: str = "whole"
    time_limit: float | None = None  # seconds

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit > 0:
            raise SettingError("--time-limit", f"must be above 0, found {self.time_limit:g}")

    @cached_property
    def store(self) -> Store:
        """The store, opened in this process."""
        return open_store(self.graph, self.view)

    @cached_property
    def worker(self) -> Worker:
        """The store, opened in a process that can be stopped."""
        return Worker(store_folder(self.graph, self.view))

    @cached_property
    def _options(self) -> dict[str, Any]:
        return {"base_iri": self.graph.namer.base, "prefixes": dict(Prefixes.of(self.graph).namespaces)}

    def _json(self, text: str, seconds: float | None) -> Any:
        """What the store answers, as JSON."""
        limit = self.time_limit if seconds is None else seconds
        if limit is None:
            return json.loads(answered(self.store, text, **self._options))
        return json.loads(self.worker.query(text, seconds=limit, **self._options))

    def rows(self, text: str, seconds: float | None = None) -> Rows:
        """The rows of a SELECT query; `seconds` is a time limit for this one."""
        found = self._json(text, seconds)
        return Rows(found["head"].get("vars", []), found["results"]["bindings"])

    def holds(self, text: str, seconds: float | None = None) -> bool:
        """The answer of an ASK query."""
        return bool(self._json(text, seconds)["boolean"])


@dataclass(frozen=True)
class Names:
    """What entities, types and relations are called; what was named before is remembered."""

    graph: Graph
    _found: dict[str, int | None] = field(default_factory=dict, repr=False)
    _entities: dict[int, Found] = field(default_factory=dict, repr=False)
    _answers: dict[tuple[str, int], Known] = field(default_factory=dict, repr=False)

    def find(self, iri: str) -> int | None:
        """The number of an entity by its IRI or its name, or None."""
        if iri not in self._found:
            _make_room(self._found)
            ids = (self.graph.entities.find(name) for name in self.graph.namer.names(iri))
            self._found[iri] = next((found for found in ids if found is not None), None)
        return self._found[iri]

    def resolve(self, text: str) -> int:
        """The number of an entity that people write as its IRI, <IRI>, prefixed name, name or label."""
        prefix, colon, local = text.partition(":")
        namespaces = Prefixes.of(self.graph).namespaces
        iris = [text, text.strip("<>"), *([namespaces[prefix] + local] if colon and prefix in namespaces else [])]
        found = next((number for iri in iris if (number := self.find(iri)) is not None), None)
        if found is None:
            near = self.graph.entities.nearest(text)
            if near and self.graph.entities.label(near[0]).casefold() == text.casefold():
                return near[0]
            raise UnknownName(text, what="entity", nearest=[self.entity(number).entity for number in near])
        return found

    def entity(self, number: int) -> Found:
        """An entity by its IRI and label."""
        if number not in self._entities:
            _make_room(self._entities)
            name = self.graph.entities.name(number)
            iri = name if name.startswith("_:") else self.graph.namer.iri(name)
            self._entities[number] = Found(iri, self.graph.entities.label(number))
        return self._entities[number]

    def relation(self, number: int) -> Found:
        """A relation by its IRI and label, whichever way it is walked."""
        name = self.graph.relations.name(number // 2)
        return Found(self.graph.namer.iri(name), self.graph.relations.label(number // 2))

    @cached_property
    def _types(self) -> tuple[list[int], list[str]]:
        """Where each type begins, and what it is called."""
        return self.graph.types.starts.tolist(), [local_name(name) for name in self.graph.types.names]

    def type_of(self, number: int) -> str:
        """What the type of an entity is called."""
        starts, names = self._types
        return names[bisect_right(starts, number) - 1]

    def type_id(self, number: int) -> str:
        """What a type is called: the last part of its name."""
        return self._types[1][number]

    def known(self, rows: Rows) -> list[Known]:
        """The rows as answers."""
        return [self._known(rows.variables, binding) for binding in rows.bindings]

    def known_entity(self, variable: str, number: int) -> Known:
        """An entity as an answer."""
        key = (variable, number)
        if key not in self._answers:
            _make_room(self._answers)
            found = self.entity(number)
            cell = Cell("bnode" if found.entity.startswith("_:") else "uri", found.entity, found.label)
            self._answers[key] = Known(found.entity, found.label, self.type_of(number), {variable: cell})
        return self._answers[key]

    def _known(self, variables: Sequence[str], binding: Mapping[str, Mapping[str, str]]) -> Known:
        row = {name: self._cell(binding[name]) for name in variables if name in binding}
        first = next(iter(row.values()), Cell("literal", "", ""))
        number = None if first.type == "literal" else self.find(first.value)
        return Known(first.value, first.label, None if number is None else self.type_of(number), row)

    def _cell(self, term: Mapping[str, Any]) -> Cell:
        """A value of a row with its label."""
        if term["type"] == "literal":
            return Cell("literal", term["value"], term["value"], term.get("datatype"), term.get("xml:lang"))
        if term["type"] == "triple":  # SPARQL 1.2: a quoted triple
            return Cell("literal", json.dumps(term["value"]), "a triple")
        value = f"_:{term['value']}" if term["type"] == "bnode" else term["value"]
        number = self.find(value)
        label = local_name(value) if number is None else self.entity(number).label
        return Cell(term["type"], value, label)


def _make_room(remembered: dict[Any, Any]) -> None:
    """Nothing; what is remembered does not grow without end."""
    if len(remembered) > MOST_SEEN:
        remembered.clear()
