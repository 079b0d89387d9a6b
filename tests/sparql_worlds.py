"""Possible worlds of an imported graph: the store answers a text in each of them, and the engine predicts its rows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import prod
from unittest.mock import patch

import pyoxigraph as ox

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.row_answers import RowAnswers, key_of
from halfgraph.answering.row_engine import RowEngine
from halfgraph.answering.schema import Answers
from halfgraph.answering.store_rows import GraphStore
from halfgraph.graph.folder import Graph
from halfgraph.graph.statements import TYPE
from halfgraph.graph.store import quads
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.row_executor import RowExecutor
from halfgraph.sparql.parse import Request
from halfgraph.sparql.results import Binding, store_rows
from possible_worlds import Fact, SmallWorld, TableLinks

Row = tuple[object, ...]
ROUNDED = ["row_answers", "forms"]  # modules that round confidences


@contextmanager
def unrounded() -> Iterator[None]:
    """Confidences in full."""
    with ExitStack() as stack:
        for module in ROUNDED:
            stack.enter_context(patch(f"halfgraph.answering.{module}.rounded", lambda probability: probability))
        yield


def iri_triple(head: str, relation: str, tail: str) -> ox.Triple:
    return ox.Triple(*map(ox.NamedNode, (head, relation, tail)))


@dataclass(frozen=True)
class Worlds:
    """A graph, and the probabilities of the links and types that it may lack."""

    graph: Graph
    uncertain: Mapping[ox.Triple, float]
    source: Sequence[ox.Quad] = ()  # of the graph; those of its store by default

    def engine(self) -> RowEngine:
        """The engine that predicts with these probabilities."""
        graph = self.graph
        known = frozenset(map(tuple, graph.whole.triples().tolist()))
        uncertain = {self._fact(triple): likely for triple, likely in self.uncertain.items()}
        links = TableLinks(SmallWorld(len(graph.entities), 2 * len(graph.relations), (), known, uncertain))  # type: ignore[arg-type]
        store = GraphStore(graph)

        def members(iri: str, subclasses: bool):
            scores = links.members(iri, subclasses)
            scores[store.members_of(iri, subclasses=subclasses)] = 1.0
            return scores

        executor = RowExecutor(LinkExecutor(links, None), members, lambda: store.classes)  # type: ignore[arg-type]
        return RowEngine(RowAnswers(executor, store, EntityNames(graph)))

    def _fact(self, triple: ox.Triple) -> Fact:
        head, relation, tail = (term.value for term in triple)
        if relation == TYPE:
            return self.graph.find_entity(head), tail  # type: ignore[return-value]
        return self.graph.find_entity(head), self.graph.find_relation(relation), self.graph.find_entity(tail)  # type: ignore[return-value]

    @cached_property
    def known(self) -> list[ox.Quad]:
        return list(self.source or quads(self.graph))

    @cached_property
    def stores(self) -> list[tuple[ox.Store, float]]:
        """Every possible world as a store, with its probability; the first is the known one."""
        return list(self._stores())

    def _stores(self) -> Iterator[tuple[ox.Store, float]]:
        facts = list(self.uncertain)
        for chosen in chain.from_iterable(combinations(facts, size) for size in range(len(facts) + 1)):
            store = ox.Store()
            store.extend([*self.known, *(ox.Quad(*triple) for triple in chosen)])
            yield store, prod(p if triple in chosen else 1 - p for triple, p in self.uncertain.items())

    def expected(self, text: str, wanted: Sequence[str] = ()) -> tuple[list[str], dict[Row, float], set[Row]]:
        """The columns of a text (in the order that is wanted), the probability of each row, and the known rows."""
        columns: list[str] = []
        likely: dict[Row, float] = {}
        known: set[Row] | None = None
        for store, share in self.stores:
            own, bindings = solutions(store, text)
            columns = list(wanted) or own
            rows = {key_of(row, columns) for row in bindings}
            known = rows if known is None else known
            for row in rows:
                likely[row] = likely.get(row, 0.0) + share
        return columns, likely, known or set()


def solutions(store: ox.Store, text: str) -> tuple[list[str], list[Binding]]:
    """The columns and rows of a SELECT."""
    result = store.query(text)
    assert isinstance(result, ox.QuerySolutions)
    return [variable.value for variable in result.variables], list(store_rows(result))


def answer_key(row: Mapping[str, object], columns: list[str]) -> Row:
    """The cells of an answer in the form of those of the store."""
    binding: Binding = {name: cell.term() for name, cell in row.items()}  # type: ignore[attr-defined]
    return key_of(binding, columns)


def predicted_rows(answers: Answers) -> dict[Row, float]:
    """The predicted rows of answers with their probabilities."""
    columns = list(answers.variables)
    return {answer_key(one.row, columns): one.score for one in answers.predicted}


def ask(worlds: Worlds, request: Request, top: int = 10_000) -> Answers:
    """The answers of the engine."""
    return worlds.engine().answer(request, top)
