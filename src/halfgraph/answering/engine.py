"""The engine: a SPARQL text to its answers, first all exact ones from the store, then predicted ones from the model."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.batch import BatchAnswers, group_queries
from halfgraph.answering.emptiness import Emptiness
from halfgraph.answering.explanation import EncodedVariables, Explainer
from halfgraph.answering.predicted_rows import PredictedRows, predicted_page
from halfgraph.answering.schema import Answers, ExplainedAnswer, Explanation, KnownAnswer, Witness
from halfgraph.answering.store_rows import EntityNames, GraphStore
from halfgraph.errors import HalfgraphError, SettingError, SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.prediction.predictors import FittedWeights, Predictors
from halfgraph.query.exact import Exact
from halfgraph.query.program import compile_query
from halfgraph.sparql.read import Reading, request_of
from halfgraph.sparql.syntax_tree import Select, unlimited
from halfgraph.sparql.templates import Templates
from halfgraph.training.run import load_encoder

# Errors of texts that are not asked of the store either: invalid, an update, a call of another server, too long.
NEVER_ASKED = frozenset({"syntax", "update", "SERVICE", "function", "length", "nesting", "form"})
LARGE = 200_000  # entities from which on several torch threads are faster than one


@dataclass(frozen=True)
class Engine:
    """Answers queries with a graph and a model of it; `view` names the triples that count as known."""

    graph: Graph
    index: EmbeddingIndex
    view: str = "whole"
    time_limit: float | None = None  # seconds for a query of the store
    calibration: Calibration = field(default_factory=lambda: Calibration({}), repr=False)
    fitted: FittedWeights | None = field(default=None, repr=False)

    @classmethod
    def load(
        cls,
        run: Path,
        graph: Graph,
        architecture: Architecture,
        view: str = "whole",
        *,
        time_limit: float | None = None,
    ) -> "Engine":
        """Load the engine of a trained run."""
        index = EmbeddingIndex.of(load_encoder(run, graph, architecture))
        return cls(graph, index, view, time_limit, Calibration.load(run), FittedWeights.load(run))

    @cached_property
    def templates(self) -> Templates:
        return Templates(self.graph)

    @cached_property
    def known(self) -> KnowledgeGraph:
        """The triples that count as known."""
        return self.graph.view(self.view)

    @cached_property
    def store(self) -> GraphStore:
        return GraphStore(self.graph, self.view, self.time_limit)

    @cached_property
    def names(self) -> EntityNames:
        return EntityNames(self.graph)

    @cached_property
    def predictors(self) -> Predictors:
        return Predictors(self.index, self.known, self.fitted)

    @cached_property
    def predicted_rows(self) -> PredictedRows:
        return PredictedRows(self.index, self.predictors, self.store, self.names, self.calibration)

    @cached_property
    def explainer(self) -> Explainer:
        return Explainer(self.index, self.names, self.calibration)

    @cached_property
    def batches(self) -> BatchAnswers:
        return BatchAnswers(self.index, self.store, self.names, Exact(self.known), self.predicted_rows)

    def ask(
        self,
        text: str,
        top: int = 10,
        *,
        mode: str | None = None,
        min_confidence: float | None = None,
        any_type: bool = False,
        explain: bool = True,
    ) -> Answers:
        """Return the answers to a SPARQL query; a note says why if nothing can be predicted."""
        start = time.perf_counter()
        mode = self.predictors.choose(mode)
        self._check(mode, top, min_confidence)
        reading = self._read(text)
        variables, known = self._known(text, reading)
        if isinstance(reading, HalfgraphError):
            if isinstance(reading, UnknownName) and not known:
                raise reading
            return Answers(variables, known, [], Explanation(), [f"No predictions: {reading}"], mode, _since(start))
        with self._threads():
            encoded = EncodedVariables.of(self.index.encoder, reading.query)
            every, page = self._page(text, reading, known, top)
            predicted = self.predicted_rows.predict(mode, reading, encoded.target, every, page, any_type=any_type)
            explanation = self._explanation(encoded, is_empty=not len(every)) if explain else Explanation()
        if min_confidence is not None:
            predicted = [answer for answer in predicted if (answer.confidence or 0.0) >= min_confidence]
        return Answers(variables, known, predicted, explanation, [], mode, _since(start), reading.target)

    def explain(self, text: str, entity: str, *, mode: str | None = None) -> Witness:
        """Explain why an entity is an answer: its best witness, with the triples that the graph lacks."""
        mode = self.predictors.choose(mode)
        reading = self._read(text)
        if isinstance(reading, HalfgraphError):
            raise reading
        number = self.names.resolve(entity)
        known = self._is_known(text, reading, number)
        embeddings = EncodedVariables.of(self.index.encoder, reading.query).target
        score = round(float(self.predicted_rows.scores(mode, reading.query, embeddings)[number]), 4)
        rates = None if known else self.calibration.confidence(mode, reading.query, np.array([score]))
        confidence = None if rates is None else round(float(rates[0]), 4)
        answer = ExplainedAnswer(*self.names.described(number), known, score, confidence)
        bound = self.predictors.witness(mode, reading.query, number, self.calibration)
        return self.explainer.witness(reading.query, answer, bound, mode)

    def ask_batch(self, texts: Sequence[str], top: int = 10, *, any_type: bool = False) -> list[Answers]:
        """Return the answers to many queries, by embedding and without explanations."""
        start = time.perf_counter()
        self._check(EMBEDDING, top, None)
        with self._threads():
            answers = self._ask_together(texts, top, any_type)
        for index, text in enumerate(texts):
            if index not in answers:
                answers[index] = self.ask(text, top, mode=EMBEDDING, any_type=any_type, explain=False)
        seconds = round(_since(start) / max(len(texts), 1), 6)
        return [replace(answers[index], seconds=seconds) for index in range(len(texts))]

    def _ask_together(self, texts: Sequence[str], top: int, any_type: bool) -> dict[int, Answers]:
        """The answers, by the index of the text, of those queries that can be answered in groups."""
        read = []
        for index, text in enumerate(texts):
            try:
                template, names = self.templates.template(text)
            except (SparqlError, UnknownName):
                continue  # `ask` answers it exactly, or raises the error
            if not template.reading.tests.elements and not template.reading.witnesses:
                read.append((index, template, names))
        answers: dict[int, Answers] = {}
        for group in group_queries(read):
            known = self.batches.known(group.batch)
            if known is not None:
                answers |= zip(group.indexes, self.batches.answers(group, known, top, any_type), strict=True)
        return answers

    def _threads(self) -> AbstractContextManager[None]:
        """One torch thread, unless the graph is large: threads wait for each other at every small product."""
        return torch_threads(1) if len(self.graph.entities) < LARGE else nullcontext()

    def _read(self, text: str) -> Reading | HalfgraphError:
        """Read a text; return the error if nothing can be predicted, raise it if nothing may be asked."""
        try:
            return self.templates.read(text)
        except (SparqlError, UnknownName) as error:
            if isinstance(error, SparqlError) and error.feature in NEVER_ASKED:
                raise
            return error

    def _select(self, text: str) -> Select:
        tree = request_of(text, self.graph).tree
        assert isinstance(tree, Select), "other forms are refused"
        return tree

    def _known(self, text: str, reading: Reading | HalfgraphError) -> tuple[Sequence[str], list[KnownAnswer]]:
        """Variables and exact answers: from the store, or by a compiled query if that gives the same."""
        if isinstance(reading, Reading) and _is_plain(reading):
            sets = self.batches.known(compile_query(reading.query))
            if sets is not None:
                target = reading.target
                return [target], [self.names.known_entity(target, number) for number in sets[0].tolist()]
        rows = self.store.rows(self._select(text))
        return rows.variables, self.names.known(rows)

    def _is_known(self, text: str, reading: Reading, entity: int) -> bool:
        rows = self.store.rows(unlimited(self._select(text))).bindings
        terms = (row[reading.target]["value"] for row in rows if reading.target in row)
        return any(self.names.find(term) == entity for term in terms)

    def _page(
        self, text: str, reading: Reading, known: Sequence[KnownAnswer], top: int
    ) -> tuple[NDArray[np.int32], slice]:
        """The entities of all exact answers, those that OFFSET skips too, and the page of predicted ones."""
        rows, count = known, len(known)
        if reading.offset and (reading.limit is None or len(known) < reading.limit):
            rows = self.names.known(self.store.rows(unlimited(self._select(text))))
            count = len(rows) - reading.offset
        cells = (answer.row.get(reading.target) for answer in rows)
        numbers = (cell and self.names.find(cell.value) for cell in cells)
        entities = np.array([number for number in numbers if number is not None], dtype=np.int32)
        return entities, predicted_page(count, reading.limit, top)

    def _check(self, mode: str, top: int, min_confidence: float | None) -> None:
        if top < 1:
            raise SettingError("--top", f"must be at least 1, found {top}")
        if min_confidence is None:
            return
        if not 0 <= min_confidence <= 1:
            raise SettingError("--min-confidence", f"must be between 0 and 1, found {min_confidence:g}")
        if mode not in self.calibration.curves:
            problem = f"this run has no calibration for the mode {mode}"
            raise SettingError("--min-confidence", problem, advice="Calibrate it with: halfgraph calibrate RUN")

    def _explanation(self, encoded: EncodedVariables, *, is_empty: bool) -> Explanation:
        nodes, edges = self.explainer.graph(encoded)
        if not is_empty:
            return Explanation(nodes, edges)
        emptiness = Emptiness(self.store, self.names, self.predictors.triples)
        return Explanation(nodes, edges, emptiness.why(encoded.query, encoded.names[id(encoded.query)]))


def _is_plain(reading: Reading) -> bool:
    """Whether the query selects each answer once, all of them, and without filters of the store."""
    every = reading.distinct and reading.limit is None and not reading.offset
    return every and not reading.tests.elements and not reading.witnesses


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 6)
