"""The engine: a SPARQL text to its answers, first all exact ones from the store, then predicted ones from the model."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.batch import BatchRanking, TextTemplate
from halfgraph.answering.emptiness import Emptiness
from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.explanation import EncodedVariables, Explainer
from halfgraph.answering.explanation_schema import ExplainedAnswer, Explanation, Witness
from halfgraph.answering.known_rows import KnownAnswers, KnownRows
from halfgraph.answering.predicted_rows import PredictedRows
from halfgraph.answering.row_answers import RowAnswers
from halfgraph.answering.row_engine import RowEngine
from halfgraph.answering.schema import Answers, PredictedAnswer
from halfgraph.answering.store_rows import GraphStore
from halfgraph.errors import HalfgraphError, InputError, QueryError, SettingError, SparqlError, TimeLimit, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.modes import EMBEDDING, ENSEMBLE, LINKS
from halfgraph.prediction.predictors import LinkModels, Predictors, missing_share
from halfgraph.prediction.row_executor import RowExecutor
from halfgraph.query.tree import type_of
from halfgraph.sparql.read import Reading, request_of, undrawn
from halfgraph.sparql.syntax_tree import Select
from halfgraph.sparql.templates import Template, Templates, TextNames
from halfgraph.training.run import load_encoder

# Errors of texts that are not asked of the store either: invalid, an update, a call of another server, too long.
NEVER_ASKED = frozenset({"syntax", "update", "SERVICE", "function", "length", "nesting"})
OF_ONE_TEXT = (InputError, QueryError, UnknownName, TimeLimit)  # errors that concern one query of a batch
NONE = np.empty(0, np.int32)
MOST_CLASSES = 256  # whose probabilities are kept
LARGE = 200_000  # entities from which on several torch threads are faster than one


@dataclass(frozen=True)
class Engine:
    """Answers queries with a graph and models of it; `view` names the triples that count as known."""

    graph: Graph
    index: EmbeddingIndex
    view: str = "whole"
    time_limit: float | None = None  # seconds for a query of the store
    models: LinkModels | None = field(default=None, repr=False)
    missing: float | None = None  # share of all triples that the known ones are taken to lack; default: as held out

    @classmethod
    def load(
        cls,
        run: Path,
        graph: Graph,
        architecture: Architecture,
        view: str = "whole",
        *,
        time_limit: float | None = None,
        missing: float | None = None,
    ) -> "Engine":
        """Load the engine of a trained run."""
        if missing is not None and not 0 < missing < 1:
            raise SettingError("--missing", f"must be a share between 0 and 1, found {missing:g}")
        index = EmbeddingIndex.of(load_encoder(run, graph, architecture))
        return cls(graph, index, view, time_limit, LinkModels.load(run, graph), missing)

    def __repr__(self) -> str:
        modes = ", ".join(self.predictors.available)
        return f"Engine({self.graph!r}, view {self.view}: {self.known.triple_count:,} known triples; modes {modes})"

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
        missing = missing_share(self.graph, self.view) if self.missing is None else self.missing
        return Predictors(self.index, self.known, self.models, missing, self.store.members, self.graph.untyped())

    @cached_property
    def predicted_rows(self) -> PredictedRows:
        return PredictedRows(self.index, self.predictors, self.store, self.names)

    @cached_property
    def known_answers(self) -> KnownAnswers:
        return KnownAnswers(self.store, self.names)

    @cached_property
    def row_answers(self) -> RowAnswers:
        """Predicts rows of queries that are no query tree."""
        scores = lru_cache(MOST_CLASSES)(self._class_scores)
        executor = RowExecutor(self.predictors.executor, scores, lambda: self.store.classes)
        return RowAnswers(executor, self.store, self.names)

    def _class_scores(self, iri: str, subclasses: bool) -> NDArray[np.float32]:
        return self.predictors.types.of_members(self.store.members_of(iri, subclasses=subclasses))

    @cached_property
    def explainer(self) -> Explainer:
        return Explainer(self.index, self.names, self.predictors)

    @cached_property
    def batches(self) -> BatchRanking:
        return BatchRanking(self.index, lambda: self.predictors.executor)

    def ask(
        self,
        text: str,
        top: int = 10,
        *,
        mode: str | None = None,
        min_confidence: float | None = None,
        explain: bool = True,
        fill: bool = False,
    ) -> Answers:
        """Return the answers to a SPARQL query; a note says why if nothing can be predicted.

        `fill` gives empty cells of OPTIONAL parts their most likely value, with its confidence.
        """
        start = time.perf_counter()
        mode = self.predictors.choose(mode)
        self._check(mode, top, min_confidence)
        reading = self._read(text)
        if reading is None:
            with self._threads():
                answers = RowEngine(self.row_answers, mode, fill).answer(request_of(text, self.graph), top)
            predicted = _likely(answers.predicted, min_confidence or 0.0)
            return replace(answers, predicted=predicted, seconds=_since(start))
        known = self.known_answers.of(self._select(text), reading)
        with self._threads():
            predicted = self.predicted_rows.predict(mode, reading, known.entities, top)
            explanation = Explanation()
            if explain:
                is_empty = not known.answers and not len(known.entities)
                explanation = self._explanation(text, reading, is_empty=is_empty)
        predicted = _likely(predicted, min_confidence or 0.0)
        return Answers(known.variables, known.answers, predicted, explanation, [], mode, _since(start), reading.target)

    def explain(self, text: str, entity: str | Mapping[str, str], *, mode: str | None = None) -> Witness:
        """Explain why an entity is an answer: its best witness, with the triples that the graph lacks.

        For a query with several variables pass the entity of any of them, or a row with the entity of each.
        """
        mode = self.predictors.choose(mode)
        reading = self._read(text)
        if reading is None:
            with self._threads():
                return RowEngine(self.row_answers, mode).explain(request_of(text, self.graph), entity)
        number = self.names.resolve(entity if isinstance(entity, str) else _only_value(entity, reading.target))
        known = number in self.known_answers.entities(self._select(text), reading.target)
        exact_score = float(self.predicted_rows.scores(mode, reading.query)[number])
        score, confidence = self.predicted_rows.shown(mode, exact_score)
        against = None if known else self.predicted_rows.violated(reading, number)
        excluded = exact_score == (0.0 if mode == LINKS else -np.inf)
        if excluded and not known:
            against = against or ("it has another type" if mode == EMBEDDING else "its probability is 0")
        shown = (None if score == -np.inf else score), (None if known else confidence)
        answer = ExplainedAnswer(*self.names.described(number), known, *shown, against)
        return self.explainer.witness(reading.query, answer, self.predictors.witness(reading.query, number))

    def ask_batch(
        self,
        texts: Sequence[str],
        top: int = 10,
        *,
        mode: str | None = None,
        min_confidence: float | None = None,
    ) -> list[Answers | HalfgraphError]:
        """Return the answers to many queries, without explanations; in the place of a query that fails, its error."""
        start = time.perf_counter()
        mode = self.predictors.choose(mode)
        self._check(mode, top, min_confidence)
        with self._threads():
            answers = {} if mode == ENSEMBLE else self._ask_together(texts, top, mode, min_confidence or 0.0)
        for index, text in enumerate(texts):
            if index not in answers:
                try:
                    answers[index] = self.ask(text, top, mode=mode, min_confidence=min_confidence, explain=False)
                except OF_ONE_TEXT as error:
                    answers[index] = error
        seconds = round(_since(start) / max(len(texts), 1), 6)
        found = (answers[index] for index in range(len(texts)))
        return [replace(one, seconds=seconds) if isinstance(one, Answers) else one for one in found]

    def _ask_together(
        self, texts: Sequence[str], top: int, mode: str, least: float
    ) -> dict[int, Answers | HalfgraphError]:
        """The answers, by the index of the text, of those queries that can be answered together."""
        read: list[TextTemplate] = []
        for index, text in enumerate(texts):
            with suppress(*OF_ONE_TEXT):  # `ask` answers it exactly, or raises the error
                template, names = self.templates.template(text)
                is_typed = mode == EMBEDDING and type_of(template.reading.query) is not None
                if template.reading.is_single and not template.reading.conditions.elements and not is_typed:
                    read.append((index, template, names))
        answers: dict[int, Answers | HalfgraphError] = {}
        for chunk, rank in self.batches.chunks(mode, read, top):
            known = {item[0]: self._known_or_error(texts[item[0]], item[1], item[2]) for item in chunk}
            entities = [NONE if isinstance(rows, HalfgraphError) else rows.entities for rows in known.values()]
            for (index, template, _), ranked in zip(chunk, rank(entities), strict=True):
                rows, target = known[index], template.reading.target
                predicted = self.predicted_rows.answers(mode, target, ranked)
                answers[index] = (
                    rows
                    if isinstance(rows, HalfgraphError)
                    else Answers(rows.variables, rows.answers, _likely(predicted, least), mode=mode, target=target)
                )
        return answers

    def _known_or_error(self, text: str, template: Template, names: TextNames) -> KnownRows | HalfgraphError:
        """The store's rows for a text of a template, which need not be parsed if it asks for IRIs only."""
        try:
            known = self.known_answers.iris(template.select, template.store_text(names))
            return known or self.known_answers.of(self._select(text), template.reading)
        except OF_ONE_TEXT as error:
            return error

    def _threads(self) -> AbstractContextManager[None]:
        """One torch thread, unless the graph is large: threads wait for each other at every small product."""
        return torch_threads(1) if len(self.graph.entities) < LARGE else nullcontext()

    def _read(self, text: str) -> Reading | None:
        """Read a text as a query tree with one target; None if it is none and rows are predicted instead.

        Raises the error of a text that may not be asked.
        """
        try:
            reading = self.templates.read(text)
        except (SparqlError, UnknownName) as error:
            if isinstance(error, SparqlError) and error.feature in NEVER_ASKED:
                raise
            return None
        return reading if reading.is_single else None

    def _select(self, text: str) -> Select:
        tree = request_of(text, self.graph).tree
        assert isinstance(tree, Select), "only a SELECT has a reading"
        return tree

    def _check(self, mode: str, top: int, min_confidence: float | None) -> None:
        if top < 1:
            raise SettingError("--top", f"must be at least 1, found {top}")
        if min_confidence is None:
            return
        if not 0 <= min_confidence <= 1:
            raise SettingError("--min-confidence", f"must be between 0 and 1, found {min_confidence:g}")
        if mode != LINKS:
            advice = "Leave out --mode." if self.models else "Fit it with: halfgraph calibrate RUN"
            raise SettingError("--min-confidence", f"the mode {mode} has scores, but no confidence", advice=advice)

    def _explanation(self, text: str, reading: Reading, *, is_empty: bool) -> Explanation:
        encoded = EncodedVariables.of(self.index.encoder, reading.query)
        nodes, edges = self.explainer.graph(encoded)
        empty = None
        if is_empty:
            emptiness = Emptiness(self.store, self.names, self.predictors.links.triples)
            empty = emptiness.why(encoded.query, encoded.names[id(encoded.query)])
        return Explanation(nodes, edges, empty, undrawn(request_of(text, self.graph), reading))


def _only_value(row: Mapping[str, str], target: str) -> str:
    if set(row) != {target}:
        raise QueryError(f"the query has the variable ?{target} only", advice=f"Pass a row of ?{target}.")
    return row[target]


def _likely(predicted: Sequence[PredictedAnswer], least: float) -> list[PredictedAnswer]:
    """The answers of at least this confidence."""
    return [answer for answer in predicted if (answer.confidence or 0.0) >= least]


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 6)
