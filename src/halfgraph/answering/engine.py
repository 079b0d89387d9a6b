"""A question in SPARQL to its answers: every exact one from the store, then predicted ones from the model."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.batch import Batches, gather
from halfgraph.answering.cutting import Cut
from halfgraph.answering.emptiness import Emptiness
from halfgraph.answering.explanation import Laid, Looked, drawn_edges, drawn_nodes, look
from halfgraph.answering.predicting import Predicting
from halfgraph.answering.reasons import Reasons
from halfgraph.answering.schema import Answers, ExplainedAnswer, Explanation, KnownAnswer, PredictedAnswer, Witness
from halfgraph.answering.store_rows import Facts, Names
from halfgraph.errors import HalfgraphError, SettingError, SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.model.architecture import Architecture
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.prediction.predictors import FittedWeights, Predictors
from halfgraph.query.exact import Exact
from halfgraph.query.program import compile_query
from halfgraph.sparql.queries import unlimited
from halfgraph.sparql.read import Reading, request_of
from halfgraph.sparql.syntax_tree import Select
from halfgraph.sparql.templates import Templates
from halfgraph.training.run import load_encoder

# Not SPARQL, or what the store must not be asked either: it would write, call other machines, or give no rows.
NEVER_ASKED = frozenset({"syntax", "update", "SERVICE", "function", "length", "nesting", "form"})
LARGE = 200_000  # entities from which on several threads are quicker than one


@dataclass(frozen=True)
class Engine:
    """A graph and a model of it, ready to be asked; `view` says which triples count as known."""

    graph: Graph
    index: EmbeddingIndex
    view: str = "whole"
    time_limit: float | None = None  # seconds that the store may take for a query
    calibration: Calibration = field(default_factory=lambda: Calibration({}), repr=False)
    fitted: FittedWeights | None = field(default=None, repr=False)
    templates: Templates = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "templates", Templates(self.graph))

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
        """The engine of a trained run."""
        index = EmbeddingIndex.of(load_encoder(run, graph, architecture))
        return cls(graph, index, view, time_limit, Calibration.load(run), FittedWeights.load(run))

    @cached_property
    def facts(self) -> Facts:
        """The statements that are known."""
        return Facts(self.graph, self.view, self.time_limit)

    @cached_property
    def names(self) -> Names:
        """What entities, types and relations are called."""
        return Names(self.graph)

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
        """The answers to a SPARQL query; what cannot be predicted is answered exactly, and a note says why."""
        with self._threads():
            return self._ask(text, top, mode, min_confidence, any_type, explain)

    def _ask(
        self, text: str, top: int, mode: str | None, min_confidence: float | None, any_type: bool, explain: bool
    ) -> Answers:
        """The same, on the threads that torch has now."""
        begun = time.perf_counter()
        mode = self.modes.choose(mode)
        self._check(mode, top, min_confidence)
        reading, reason = self._read(text)
        variables, known = self._known(text, reading)
        if reading is None:
            assert reason is not None
            if isinstance(reason, UnknownName) and not known:
                raise reason
            notes = [f"No predictions: {reason}"]
            return Answers(variables, known, [], Explanation(), notes, mode, _since(begun))
        laid = Laid.of(reading)
        looked = look(self.index.encoder, laid)
        all_known, cut = self._all_known(text, reading, known, top)
        predicted = self.predicting.predicted(mode, reading, laid, looked, all_known, cut, any_type)
        predicted = surer(self.predicting.sure(mode, reading.query, predicted), min_confidence)
        explanation = self._explanation(laid, looked, not len(all_known)) if explain else Explanation()
        return Answers(variables, known, predicted, explanation, [], mode, _since(begun), reading.target)

    def explain(self, text: str, entity: str, *, mode: str | None = None) -> Witness:
        """Why an entity is an answer: its best witness, and which of the triples that this takes are missing."""
        mode = self.modes.choose(mode)
        reading, reason = self._read(text)
        if reading is None:
            assert reason is not None
            raise reason
        laid, number = Laid.of(reading), self.names.resolve(entity)
        rows = self.facts.rows(unlimited(self._select(text))).bindings
        known = any(self.names.find(row[laid.target]["value"]) == number for row in rows if laid.target in row)
        vectors = look(self.index.encoder, laid).vectors[laid.target]
        scores = self.predicting.scores(mode, reading.query, vectors)
        score = round(float(scores[number]), 4)
        sure = None if known else self.calibration.confidence(mode, reading.query, np.array([score]))
        confidence = None if sure is None else round(float(sure[0]), 4)
        found = self.names.entity(number)
        answer = ExplainedAnswer(found.entity, found.label, self.names.type_of(number), known, score, confidence)
        bound = self.modes.witness(mode, reading.query, number, self.calibration)
        return self.reasons.witness(laid, answer, bound, mode)

    def ask_batch(self, texts: Sequence[str], top: int = 10, *, any_type: bool = False) -> list[Answers]:
        """The answers to each of many queries, without explanations; those that differ in names alone go together."""
        with self._threads():
            return self._ask_batch(texts, top, any_type)

    def _ask_batch(self, texts: Sequence[str], top: int, any_type: bool) -> list[Answers]:
        """The same, on the threads that torch has now."""
        begun = time.perf_counter()
        self._check(EMBEDDING, top, None)
        found: dict[int, Answers] = {}
        read = []
        for place, text in enumerate(texts):
            try:
                template, names = self.templates.template(text)
                if template.reading.restriction or template.reading.witnesses:
                    found[place] = self.ask(text, top, mode=EMBEDDING, any_type=any_type, explain=False)
                else:
                    read.append((place, template, names))
            except (SparqlError, UnknownName):
                found[place] = self.ask(text, top, mode=EMBEDDING, any_type=any_type, explain=False)
        for group in gather(read):
            known = self.batches.known(group.batch)
            if known is None:
                found |= {
                    place: self.ask(texts[place], top, mode=EMBEDDING, any_type=any_type, explain=False)
                    for place in group.places
                }
            else:
                given = self.batches.answers(group, known, top, any_type)
                query = group.reading.query
                sure = (replace(one, predicted=self.predicting.sure(EMBEDDING, query, one.predicted)) for one in given)
                found |= zip(group.places, sure, strict=True)
        each = round((time.perf_counter() - begun) / max(len(texts), 1), 6)
        return [replace(found[place], seconds=each) for place in range(len(texts))]

    def _threads(self) -> AbstractContextManager[None]:
        """A time with one thread of torch, unless the graph is large: several wait for one another at each product."""
        return torch_threads(1) if len(self.graph.entities) < LARGE else nullcontext()

    @cached_property
    def batches(self) -> Batches:
        """What answers many questions at once."""
        exact = Exact(getattr(self.graph, self.view))
        return Batches(self.index, self.facts, self.names, exact)

    @cached_property
    def reasons(self) -> Reasons:
        """What gives reasons for answers."""
        return Reasons(self.names, self.calibration)

    @cached_property
    def predicting(self) -> Predicting:
        """What predicts answers."""
        return Predicting(self.index, self.modes, self.facts, self.names, self.calibration)

    @cached_property
    def modes(self) -> Predictors:
        """The ways of predicting."""
        return Predictors(self.index, getattr(self.graph, self.view), self.fitted)

    def _read(self, text: str) -> tuple[Reading | None, HalfgraphError | None]:
        """What a text asks, or why nothing can be predicted for it; what is not to be asked at all is refused."""
        try:
            return self.templates.read(text), None
        except (SparqlError, UnknownName) as error:
            if isinstance(error, SparqlError) and error.feature in NEVER_ASKED:
                raise
            return None, error

    def _select(self, text: str) -> Select:
        """The syntax tree of a text that was read."""
        tree = request_of(text, self.graph).tree
        assert isinstance(tree, Select), "other forms are refused"
        return tree

    def _known(self, text: str, reading: Reading | None) -> tuple[Sequence[str], list[KnownAnswer]]:
        """The variables and the exact answers: from the store, or by compiled walks where those give the same."""
        if reading is not None and _is_plain(reading):
            found = self.batches.known(compile_query(reading.query))
            if found is not None:
                return [reading.target], [self.names.known_entity(reading.target, one) for one in found[0].tolist()]
        rows = self.facts.rows(self._select(text))
        return rows.variables, self.names.known(rows)

    def _all_known(
        self, text: str, reading: Reading, known: Sequence[KnownAnswer], top: int
    ) -> tuple[NDArray[np.int32], Cut]:
        """The entities that are known to be answers, also those that OFFSET leaves out, and how many to predict."""
        rows, count = known, len(known)
        if reading.offset and (reading.limit is None or len(known) < reading.limit):
            rows = self.names.known(self.facts.rows(unlimited(self._select(text))))
            count = len(rows) - reading.offset
        cells = (answer.row.get(reading.target) for answer in rows)
        found = (None if cell is None else self.names.find(cell.value) for cell in cells)
        entities = np.array([entity for entity in found if entity is not None], dtype=np.int32)
        return entities, Cut.of(count, reading.limit, top)

    def _check(self, mode: str, top: int, min_confidence: float | None) -> None:
        """Nothing, or an error for a number out of its range."""
        if top < 1:
            raise SettingError("--top", f"must be at least 1, found {top}")
        if min_confidence is None:
            return
        if not 0 <= min_confidence <= 1:
            raise SettingError("--min-confidence", f"must be between 0 and 1, found {min_confidence:g}")
        if mode not in self.calibration.curves:
            problem = f"cannot be told: this run has no confidence for the mode {mode}"
            raise SettingError("--min-confidence", problem, advice="Measure it with: halfgraph calibrate RUN")

    def _explanation(self, laid: Laid, looked: Looked, is_empty: bool) -> Explanation:
        """The query as it was understood, and why it has no exact answer if it has none."""
        nodes, ids = drawn_nodes(laid, looked, self.names, self.index)
        empty = Emptiness(self.facts, self.names).why(laid) if is_empty else None
        return Explanation(nodes, drawn_edges(laid, looked, self.names, ids), empty)


def _is_plain(reading: Reading) -> bool:
    """Whether each answer is asked for once, all of them, by itself, and without tests that only the store can do."""
    plain = reading.distinct and reading.limit is None and not reading.offset
    return plain and not reading.restriction and not reading.witnesses


def surer(predicted: list[PredictedAnswer], least: float | None) -> list[PredictedAnswer]:
    """The answers of at least this confidence."""
    return predicted if least is None else [one for one in predicted if (one.confidence or 0.0) >= least]


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 6)
