"""Exact answers: the rows of the store, with labels and types."""

import json
import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import QueryBoolean, QueryResultsFormat, QuerySolutions, Store

from halfgraph.answering.cells import Cell, NamedEntity
from halfgraph.answering.schema import KnownAnswer
from halfgraph.answering.workers import Handler, Message, WorkerDied, WorkerProcess
from halfgraph.errors import FolderError, SettingError, SparqlError, TimeLimit, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.store import open_store, store_folder
from halfgraph.graph.types import UNTYPED
from halfgraph.graph.vocabulary import local_name
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import RDF_TYPE, Ask, Iri, Select, Triple, Variable, columns, select
from halfgraph.sparql.writer import write

MOST_CACHED = 100_000  # names


def query_json(store: Store, text: str, form: QueryResultsFormat = QueryResultsFormat.JSON) -> bytes:
    """Return the store's answer to a SELECT or ASK query as SPARQL JSON results, or in another format."""
    result: Any = None
    try:
        result = store.query(text)
        assert isinstance(result, QueryBoolean | QuerySolutions)
        return result.serialize(format=form) or b""
    except (SyntaxError, RuntimeError) as error:
        raise SparqlError(f"the store cannot answer this: {error}", feature="syntax") from error
    finally:
        result = None  # the frame of an error must not keep it: it may only be dropped in this thread


def open_worker_store(folder: Path) -> tuple[None, Handler]:
    """Open a store in a worker; return what answers its jobs: with results, or with the problem of a text."""
    try:
        store = Store.read_only(str(folder))
    except OSError as error:
        raise FolderError(folder, "cannot be opened as a store", advice="Remove it, and ask again.") from error

    def handle(text: str) -> Message:
        try:
            return Message(None, query_json(store, text))
        except SparqlError as error:
            return Message(error.problem)

    return None, handle


class TimedStore:
    """A store in a process of its own, which is killed when a query takes too long; one query at a time."""

    def __init__(self, folder: Path) -> None:
        self._load = partial(open_worker_store, folder)
        self._worker: WorkerProcess | None = None
        self._lock = threading.Lock()

    def query_json(self, text: str, seconds: float) -> bytes:
        """Return the store's answer as `query_json` does; raise TimeLimit when the time is over."""
        with self._lock:
            try:
                problem, body = self._started().ask(text, seconds)
            except (TimeoutError, WorkerDied) as error:
                self.close()
                advice = {"advice": "The store ran out of memory."} if isinstance(error, WorkerDied) else {}
                raise TimeLimit(seconds, **advice) from None
        if problem is not None:
            raise SparqlError(problem, feature="syntax")
        return body

    def _started(self) -> WorkerProcess:
        if self._worker is None or not self._worker.is_alive:
            self.close()
            self._worker = WorkerProcess(self._load)
            self._worker.start()
        return self._worker

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()


@dataclass(frozen=True)
class Rows:
    """The rows of a SELECT query as in SPARQL's JSON results."""

    variables: Sequence[str]
    bindings: Sequence[Mapping[str, Mapping[str, str]]]


@dataclass(frozen=True)
class GraphStore:
    """The store of a view of a graph; with a time limit each query is answered in another process."""

    graph: Graph
    view: str = "whole"
    time_limit: float | None = None  # seconds

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit > 0:
            raise SettingError("--time-limit", f"must be above 0, found {self.time_limit:g}")

    @cached_property
    def local(self) -> Store:
        """The store, opened in this process."""
        return open_store(self.graph, self.view)

    @cached_property
    def timed(self) -> TimedStore:
        """The store, opened in a process that can be killed."""
        return TimedStore(store_folder(self.graph, self.view))

    def _json(self, query: Select | Ask, limit: float | None) -> Any:
        text = write(query)
        return json.loads(query_json(self.local, text) if limit is None else self.timed.query_json(text, limit))

    def rows(self, query: Select) -> Rows:
        results = self._json(query, self.time_limit)
        return Rows(columns(query, results["head"].get("vars", [])), results["results"]["bindings"])

    def iris(self, text: str) -> list[str] | None:
        """Return the values of the one variable of a SELECT query, in their order; None if some are no IRIs.

        This is faster than `rows`. With a time limit it is always None.
        """
        if self.time_limit is not None:
            return None
        table = query_json(self.local, text, QueryResultsFormat.TSV).decode()
        lines = table.split("\n")[1:-1]
        is_simple = "\\" not in table and all(line[:1] == "<" and line[-1:] == ">" for line in lines)
        return [line[1:-1] for line in lines] if is_simple else None

    def members(self, type_id: int) -> NDArray[np.int64]:
        """Return the entities that the store gives a type."""
        return self.members_of(self.graph.namer.iri(self.graph.types.names[type_id]))

    def members_of(self, iri: str) -> NDArray[np.int64]:
        """Return the entities that the store gives a class."""
        rows = self.rows(select([Triple(Variable("x"), Iri(RDF_TYPE), Iri(iri))], ["x"], distinct=True))
        values = (
            f"_:{row['x']['value']}" if row["x"]["type"] == "bnode" else row["x"]["value"] for row in rows.bindings
        )
        found = (self.graph.find_entity(value, or_name=True) for value in values)
        return np.array([number for number in found if number is not None], dtype=np.int64)

    def holds(self, query: Ask, seconds: float | None = None) -> bool:
        """Return the answer to an ASK query; `seconds` is a time limit for this query."""
        return bool(self._json(query, self.time_limit if seconds is None else seconds)["boolean"])


class EntityNames:
    """IRIs, labels and types of entities and relations, with a cache."""

    def __init__(self, graph: Graph) -> None:
        cache = lru_cache(MOST_CACHED)
        self.graph = graph
        self.find = cache(partial(graph.find_entity, or_name=True))  # the id by IRI or name, or None
        self.described = cache(self._describe)
        self.known_iri = cache(self._known_iri)
        self._starts = graph.types.starts.tolist()
        self._types = [local_name(name) for name in graph.types.names]

    def iris_of(self, text: str) -> list[str]:
        """Return the IRIs that a text may stand for: an IRI, <IRI> or prefixed name."""
        prefix, colon, local = text.partition(":")
        namespaces = Prefixes.of(self.graph).namespaces
        return [*([namespaces[prefix] + local] if colon and prefix in namespaces else []), text.strip("<>")]

    def resolve(self, text: str) -> int:
        """Return the id of an entity by its IRI, <IRI>, prefixed name, name or label."""
        iris = [text, *self.iris_of(text)]
        entity = next((number for iri in iris if (number := self.find(iri)) is not None), None)
        if entity is None:
            near = self.graph.entities.nearest(text)
            if near and self.graph.entities.label(near[0]).casefold() == text.casefold():
                return near[0]
            raise UnknownName(text, what="entity", nearest=[self.entity(number).entity for number in near])
        return entity

    def _describe(self, number: int) -> tuple[str, str, str]:
        """The IRI and label of an entity and the short name of its type, marked if the import has guessed it."""
        name = self.graph.entities.name(number)
        iri = name if name.startswith("_:") else self.graph.namer.iri(name)
        type_name = self.type_name(bisect_right(self._starts, number) - 1)
        is_guess = type_name != UNTYPED and not self.graph.is_type_stated(number)
        return iri, self.graph.entities.label(number), f"{type_name} (guessed)" if is_guess else type_name

    def entity(self, number: int) -> NamedEntity:
        return NamedEntity(*self.described(number)[:2])

    def relation(self, number: int) -> NamedEntity:
        """Return a relation or its inverse with its IRI and label."""
        name = self.graph.relations.name(number // 2)
        return NamedEntity(self.graph.namer.iri(name), self.graph.relations.label(number // 2))

    def type_name(self, type_id: int) -> str:
        """Return the short name of a type: the last part of its name."""
        return self._types[type_id]

    def type_entity(self, type_id: int) -> NamedEntity:
        """Return a type with its IRI and short name."""
        return NamedEntity(self.graph.namer.iri(self.graph.types.names[type_id]), self.type_name(type_id))

    def of_type(self, type_id: int | None) -> slice:
        """Return the range of the entities of a type, or of all."""
        return slice(0, self._starts[-1]) if type_id is None else slice(*self._starts[type_id : type_id + 2])

    def _known_iri(self, variable: str, iri: str) -> tuple[KnownAnswer, int | None]:
        """The row of one IRI, and the number of its entity."""
        return self._known([variable], {variable: {"type": "uri", "value": iri}}), self.find(iri)

    def known(self, rows: Rows) -> list[KnownAnswer]:
        return [self._known(rows.variables, binding) for binding in rows.bindings]

    def values(self, answers: Iterable[KnownAnswer], variable: str) -> NDArray[np.int32]:
        """Return the entities that a variable stands for in some answers, each once."""
        cells = (answer.row.get(variable) for answer in answers)
        numbers = {self.find(cell.value) for cell in cells if cell is not None and cell.type != "literal"}
        return np.array(sorted(number for number in numbers if number is not None), dtype=np.int32)

    def _known(self, variables: Sequence[str], binding: Mapping[str, Mapping[str, str]]) -> KnownAnswer:
        row = {name: self._cell(binding[name]) for name in variables if name in binding}
        first = next(iter(row.values()), Cell("literal", "", ""))
        number = None if first.type == "literal" else self.find(first.value)
        return KnownAnswer(first.value, first.label, None if number is None else self.described(number)[2], row)

    def _cell(self, term: Mapping[str, Any]) -> Cell:
        if term["type"] == "literal":
            return Cell("literal", term["value"], term["value"], term.get("datatype"), term.get("xml:lang"))
        if term["type"] == "triple":  # SPARQL 1.2: a quoted triple
            return Cell("literal", json.dumps(term["value"]), "a triple")
        value = f"_:{term['value']}" if term["type"] == "bnode" else term["value"]
        number = self.find(value)
        label = local_name(value) if number is None else self.described(number)[1]
        return Cell(term["type"], value, label)
