"""What is known: the rows that the store gives, named for people."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyoxigraph import Store

from halfgraph.answering.answers import Cell, Found, Known
from halfgraph.answering.worker import Worker, answered
from halfgraph.errors import SettingError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.store import open_store, store_folder
from halfgraph.graph.vocabulary import local_name
from halfgraph.query.prefixes import Prefixes

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
    """What entities, kinds and relations are called."""

    graph: Graph
    _seen: dict[int, Found] = field(default_factory=dict, repr=False)

    def find(self, iri: str) -> int | None:
        """The number of an entity by its IRI or its name, or None."""
        ids = (self.graph.entities.find(name) for name in self.graph.namer.names(iri))
        return next((found for found in ids if found is not None), None)

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
        if number in self._seen:
            return self._seen[number]
        if len(self._seen) > MOST_SEEN:
            self._seen.clear()
        found = self._seen[number] = self._entity(number)
        return found

    def _entity(self, number: int) -> Found:
        name = self.graph.entities.name(number)
        iri = name if name.startswith("_:") else self.graph.namer.iri(name)
        return Found(iri, self.graph.entities.label(number))

    def relation(self, number: int) -> Found:
        """A relation by its IRI and label, whichever way it is walked."""
        name = self.graph.relations.name(number // 2)
        return Found(self.graph.namer.iri(name), self.graph.relations.label(number // 2))

    def kind_of(self, number: int) -> str:
        """What the kind of an entity is called."""
        return self.kind(int(self.graph.kinds.of(number)))

    def kind(self, number: int) -> str:
        """What a kind is called: the last part of its name."""
        return local_name(self.graph.kinds.names[number])

    def known(self, rows: Rows) -> list[Known]:
        """The rows as answers."""
        return [self._known(rows.variables, binding) for binding in rows.bindings]

    def _known(self, variables: Sequence[str], binding: Mapping[str, Mapping[str, str]]) -> Known:
        row = {name: self._cell(binding[name]) for name in variables if name in binding}
        first = next(iter(row.values()), Cell("literal", "", ""))
        number = None if first.type == "literal" else self.find(first.value)
        return Known(first.value, first.label, None if number is None else self.kind_of(number), row)

    def _cell(self, term: Mapping[str, Any]) -> Cell:
        """A value of a row with its label."""
        if term["type"] == "literal":
            return Cell("literal", term["value"], term["value"], term.get("datatype"), term.get("xml:lang"))
        if term["type"] == "triple":  # SPARQL 1.2: a quoted triple
            return Cell("literal", json.dumps(term["value"]), "a triple")
        value = f"_:{term['value']}" if term["type"] == "bnode" else term["value"]
        number = self.find(value)
        label = local_name(value) if number is None else self.graph.entities.label(number)
        return Cell(term["type"], value, label)
