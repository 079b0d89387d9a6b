"""Exact answers: the rows of the store, with labels and types."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Quad, QueryBoolean, QueryResultsFormat, QuerySolutions, QueryTriples, RdfFormat, Store, parse

from halfgraph.answering.workers import Handler, Message, WorkerDied, WorkerProcess
from halfgraph.errors import FolderError, SettingError, SparqlError, TimeLimit
from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import RDFS
from halfgraph.graph.store import open_store, store_errors, store_folder, store_path
from halfgraph.sparql.results import Binding, Term, store_term
from halfgraph.sparql.syntax_tree import (
    RDF_TYPE,
    Ask,
    Construct,
    Describe,
    Iri,
    PathOperation,
    Query,
    Select,
    Triple,
    Variable,
    columns,
    select,
)
from halfgraph.sparql.writer import write

IS_A_SUBCLASS = PathOperation("/", (Iri(RDF_TYPE), PathOperation("*", (Iri(RDFS + "subClassOf"),))))


def query_json(store: Store, text: str, form: QueryResultsFormat = QueryResultsFormat.JSON) -> bytes:
    """Return the store's answer to a query: SPARQL JSON results, or another format; triples as N-Triples."""
    result: Any = None
    try:
        result = store.query(text)
        if isinstance(result, QueryTriples):
            return result.serialize(format=RdfFormat.N_TRIPLES) or b""
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
    bindings: Sequence[Binding]


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

    def _bytes(self, query: Query, limit: float | None) -> bytes:
        text = write(query)
        with store_errors(store_path(self.graph, self.view)):
            return query_json(self.local, text) if limit is None else self.timed.query_json(text, limit)

    def _json(self, query: Select | Ask, limit: float | None) -> Any:
        return json.loads(self._bytes(query, limit))

    def triples(self, query: Construct | Describe) -> list[tuple[Term, Term, Term]]:
        """Return the triples of a query, each once, their terms as in SPARQL's JSON results."""
        quads = self.quads(query)
        return [(store_term(quad.subject), store_term(quad.predicate), store_term(quad.object)) for quad in quads]

    def quads(self, query: Construct | Describe) -> list[Quad]:
        """Return the triples of a query, each once, in the order of the store."""
        return list(dict.fromkeys(parse(self._bytes(query, self.time_limit), format=RdfFormat.N_TRIPLES)))

    def rows(self, query: Select) -> Rows:
        results = self._json(query, self.time_limit)
        return Rows(columns(query, results["head"].get("vars", [])), results["results"]["bindings"])

    def iris(self, text: str) -> list[str] | None:
        """Return the values of the one variable of a SELECT query, in their order; None if some are no IRIs.

        This is faster than `rows`. With a time limit it is always None.
        """
        if self.time_limit is not None:
            return None
        with store_errors(store_path(self.graph, self.view)):
            table = query_json(self.local, text, QueryResultsFormat.TSV).decode()
        lines = table.split("\n")[1:-1]
        is_simple = "\\" not in table and all(line[:1] == "<" and line[-1:] == ">" for line in lines)
        return [line[1:-1] for line in lines] if is_simple else None

    def members(self, type_id: int) -> NDArray[np.int64]:
        """Return the entities that the store gives a type."""
        return self.members_of(self.graph.namer.iri(self.graph.types.names[type_id]))

    def members_of(self, iri: str, *, subclasses: bool = False) -> NDArray[np.int64]:
        """Return the entities that the store gives a class, or optionally one of its subclasses."""
        path = IS_A_SUBCLASS if subclasses else Iri(RDF_TYPE)
        rows = self.rows(select([Triple(Variable("x"), path, Iri(iri))], ["x"], distinct=True))
        values = (
            f"_:{row['x']['value']}" if row["x"]["type"] == "bnode" else row["x"]["value"] for row in rows.bindings
        )
        found = (self.graph.find_entity(value, or_name=True) for value in values)
        return np.array([number for number in found if number is not None], dtype=np.int64)

    @cached_property
    def classes(self) -> list[str]:
        """The IRIs of all classes that something has."""
        rows = self.rows(select([Triple(Variable("x"), Iri(RDF_TYPE), Variable("c"))], ["c"], distinct=True))
        return sorted(row["c"]["value"] for row in rows.bindings if row["c"]["type"] == "uri")

    def holds(self, query: Ask, seconds: float | None = None) -> bool:
        """Return the answer to an ASK query; `seconds` is a time limit for this query."""
        return bool(self._json(query, self.time_limit if seconds is None else seconds)["boolean"])
