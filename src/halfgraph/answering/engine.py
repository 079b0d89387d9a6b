"""A question in SPARQL to its answers: every exact one from the store, then predicted ones from the model."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import QuerySolutions

from halfgraph.answering.index import Index
from halfgraph.errors import InputError, SettingError, SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.store import open_store
from halfgraph.model.encoder import Architecture
from halfgraph.query.prefixes import Prefixes
from halfgraph.query.tree import Intersect, Project, Query, Union, disjuncts, without_negation
from halfgraph.sparql.reading import Reading, read
from halfgraph.sparql.refusals import refuse_service
from halfgraph.sparql.tokens import Source
from halfgraph.training.run import load_encoder

# Not SPARQL, or what the store must not be asked either: it would write, or call other machines.
NEVER_ASKED = frozenset({"syntax", "update", "SERVICE", "length", "nesting"})


@dataclass(frozen=True)
class Known:
    """An exact answer: the row that the store gives, and its label where it is an entity."""

    entity: str
    label: str


@dataclass(frozen=True)
class Predicted:
    """A predicted answer."""

    entity: str
    label: str
    kind: str
    score: float  # the cosine of the query's vector and the entity's


@dataclass(frozen=True)
class Answers:
    """All exact answers, then the likely ones, and what is to be said about them."""

    known: list[Known]
    predicted: list[Predicted]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The answers, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Engine:
    """A graph and a model of it, ready to be asked; `view` says which triples count as known."""

    graph: Graph
    index: Index
    view: str = "whole"

    @classmethod
    def load(cls, run: Path, graph: Graph, architecture: Architecture, view: str = "whole") -> "Engine":
        """The engine of a trained run."""
        return cls(graph, Index.of(load_encoder(run, graph, architecture)), view)

    @cached_property
    def store(self) -> Any:
        """The store of what is known."""
        return open_store(self.graph, self.view)

    def ask(self, text: str, top: int = 10, *, any_kind: bool = False) -> Answers:
        """The answers to a SPARQL query; what cannot be predicted is answered exactly, and a note says why."""
        if top < 1:
            raise SettingError("--top", f"must be at least 1, found {top}")
        try:
            reading, notes = read(text, self.graph), []
        except (SparqlError, UnknownName) as error:
            if isinstance(error, SparqlError) and error.feature in NEVER_ASKED:
                raise
            reading, notes = None, [f"Nothing is predicted: {error}"]
            refuse_service(Source(text, Prefixes.of(self.graph)))
        known = self._known(text)
        if reading is None:
            return Answers(known, [], notes)
        return Answers(known, list(self._predicted(reading, known, top, any_kind)), notes)

    def _known(self, text: str) -> list[Known]:
        """What the store answers, row by row; used and dropped here, as pyoxigraph asks."""
        prefixes = dict(Prefixes.of(self.graph).namespaces)
        try:
            rows = self.store.query(text, base_iri=self.graph.namer.base, prefixes=prefixes)
        except SyntaxError as error:
            raise InputError(str(error.msg), line=error.lineno, column=error.offset) from error
        if not isinstance(rows, QuerySolutions):
            raise SettingError("query", "is no SELECT query", advice="Ask with SELECT.")
        return [self._row([term for term in row if term is not None]) for row in rows]

    def _row(self, terms: list[Any]) -> Known:
        """A row of the store as an answer."""
        name = " ".join(term.value for term in terms)
        found = self._find(name)
        return Known(name, name if found is None else self.graph.entities.label(found))

    def _find(self, iri: str) -> int | None:
        """The id of an entity by its IRI, or None."""
        ids = (self.graph.entities.find(name) for name in self.graph.namer.names(iri))
        return next((found for found in ids if found is not None), None)

    def _predicted(self, reading: Reading, known: list[Known], top: int, any_kind: bool) -> Iterator[Predicted]:
        """The likeliest entities that are not known to be answers."""
        entities, kinds = self.graph.entities, self.graph.kinds
        found = (self._find(answer.entity) for answer in known)
        without = np.array([entity for entity in found if entity is not None], dtype=np.int32)
        among = slice(0, len(entities)) if any_kind else self._kind(reading.query, without)
        ways = disjuncts(without_negation(reading.query))
        for entity, score in self.index.nearest(ways, top, among=among, without=without):
            kind = kinds.names[int(kinds.of(entity))]
            yield Predicted(self.graph.namer.iri(entities.name(entity)), entities.label(entity), kind, round(score, 4))

    def _kind(self, query: Query, known: NDArray[np.int32]) -> slice:
        """The range of the answer's kind: as the query says, as known answers are, or as its relations usually end."""
        kinds = self.graph.kinds
        if not isinstance(query, Project | Intersect | Union):
            return slice(0, len(self.graph.entities))
        if query.kind is not None:
            kind = query.kind
        elif len(known):
            kind = int(np.bincount(kinds.of(known)).argmax())
        else:
            kind = int(self.index.encoder.kinds_of(query, 1)[0])
        return slice(int(kinds.starts[kind]), int(kinds.starts[kind + 1]))
