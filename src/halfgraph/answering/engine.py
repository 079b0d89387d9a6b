"""The engine: a SPARQL text to its answers, first all exact ones from the store, then predicted ones from the model."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.batch import BatchRanking, KnownRows, TextTemplate
from halfgraph.answering.emptiness import Emptiness
from halfgraph.answering.explanation import EncodedVariables, Explainer
from halfgraph.answering.explanation_schema import ExplainedAnswer, Explanation, Witness
from halfgraph.answering.predicted_rows import PredictedRows
from halfgraph.answering.reasons import why_not_predicted
from halfgraph.answering.schema import Answers, PredictedAnswer
from halfgraph.answering.store_rows import EntityNames, GraphStore
from halfgraph.errors import HalfgraphError, InputError, QueryError, SettingError, SparqlError, TimeLimit, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.modes import EMBEDDING, ENSEMBLE, LINKS
from halfgraph.prediction.predictors import LinkModels, Predictors, missing_share
from halfgraph.query.tree import type_of
from halfgraph.sparql.read import Reading, request_of, undrawn
from halfgraph.sparql.syntax_tree import Select, Variable, every_value
from halfgraph.sparql.templates import Template, Templates, TextNames
from halfgraph.sparql.writer import write
from halfgraph.training.run import load_encoder

# Errors of texts that are not asked of the store either: invalid, an update, a call of another server, too long.
NEVER_ASKED = frozenset({"syntax", "update", "SERVICE", "function", "length", "nesting", "form"})
OF_ONE_TEXT = (InputError, QueryError, UnknownName, TimeLimit)  # errors that concern one query of a batch
NONE = np.empty(0, np.int32)
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
    ) -> Answers:
        """Return the answers to a SPARQL query; a note says why if nothing can be predicted."""
        start = time.perf_counter()
        mode = self.predictors.choose(mode)
        self._check(mode, top, min_confidence)
        reading = self._read(text)
        known = self._known(text, reading)
        if not isinstance(reading, Reading):
            reason = why_not_predicted(reading, self.store, has_rows=bool(known.answers))
            notes = [f"No predictions: {reason}"]
            return Answers(known.variables, known.answers, [], Explanation(), notes, mode, _since(start))
        with self._threads():
            predicted = self.predicted_rows.predict(mode, reading, known.entities, top)
            explanation = Explanation()
            if explain:
                is_empty = not known.answers and not len(known.entities)
                explanation = self._explanation(text, reading, is_empty=is_empty)
        predicted = _likely(predicted, min_confidence or 0.0)
        return Answers(known.variables, known.answers, predicted, explanation, [], mode, _since(start), reading.target)

    def explain(self, text: str, entity: str, *, mode: str | None = None) -> Witness:
        """Explain why an entity is an answer: its best witness, with the triples that the graph lacks."""
        mode = self.predictors.choose(mode)
        reading = self._read(text)
        if not isinstance(reading, Reading):
            raise reading
        number = self.names.resolve(entity)
        known = self._is_known(text, reading, number)
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
                if not template.reading.conditions.elements and not is_typed:
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
            known = self._known_iris(template.select, template.store_text(names))
            return known or self._known(text, template.reading)
        except OF_ONE_TEXT as error:
            return error

    def _known_iris(self, select: Select, text: str) -> KnownRows | None:
        """The store's rows, if one variable is selected without LIMIT and OFFSET, and all are IRIs."""
        chosen, modifiers = select.projection, select.modifiers
        if len(chosen) != 1 or not isinstance(chosen[0], Variable) or modifiers.limit is not None or modifiers.offset:
            return None
        iris, variable = self.store.iris(text), chosen[0].name
        if iris is None:
            return None
        rows = [self.names.known_iri(variable, iri) for iri in iris]
        entities = sorted({number for _, number in rows if number is not None})
        return KnownRows([variable], [answer for answer, _ in rows], np.array(entities, np.int32))

    def _threads(self) -> AbstractContextManager[None]:
        """One torch thread, unless the graph is large: threads wait for each other at every small product."""
        return torch_threads(1) if len(self.graph.entities) < LARGE else nullcontext()

    def _read(self, text: str) -> Reading | SparqlError | UnknownName:
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

    def _known(self, text: str, reading: Reading | HalfgraphError) -> KnownRows:
        """The store's rows, and the entities of all exact answers, those that LIMIT and OFFSET leave out too."""
        select = self._select(text)
        if isinstance(reading, Reading) and (known := self._known_iris(select, write(select))):
            return known
        rows = self.store.rows(select)
        answers = self.names.known(rows)
        if not isinstance(reading, Reading):
            return KnownRows(rows.variables, answers, NONE)
        is_cut = reading.offset or len(answers) == reading.limit
        entities = self._entities(select, reading.target) if is_cut else self.names.values(answers, reading.target)
        return KnownRows(rows.variables, answers, entities)

    def _entities(self, select: Select, target: str) -> NDArray[np.int32]:
        """The entities of all exact answers."""
        return self.names.values(self.names.known(self.store.rows(every_value(select, target))), target)

    def _is_known(self, text: str, reading: Reading, entity: int) -> bool:
        return entity in self._entities(self._select(text), reading.target)

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


def _likely(predicted: list[PredictedAnswer], least: float) -> list[PredictedAnswer]:
    """The answers of at least this confidence."""
    return [answer for answer in predicted if (answer.confidence or 0.0) >= least]


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 6)
