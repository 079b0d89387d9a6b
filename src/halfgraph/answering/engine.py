"""A question in SPARQL to its answers: every exact one from the store, then predicted ones from the model."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.answers import Answers, Explanation, Known, Predicted, Witness
from halfgraph.answering.batch import Batches, gather
from halfgraph.answering.confidence import Calibration
from halfgraph.answering.cutting import Cut, uncut
from halfgraph.answering.emptiness import Emptiness
from halfgraph.answering.explanation import Laid, Looked, drawn_edges, drawn_nodes, kind_range, look
from halfgraph.answering.facts import Facts, Names
from halfgraph.answering.index import Index
from halfgraph.answering.reasons import Reasons
from halfgraph.answering.witness import Seeker
from halfgraph.errors import HalfgraphError, SettingError, SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.model.encoder import Architecture
from halfgraph.query.exact import Exact
from halfgraph.query.prefixes import Prefixes
from halfgraph.query.program import compile_query
from halfgraph.query.shapes import path
from halfgraph.query.tree import Anchor, Query, kind_of
from halfgraph.sparql.allowing import AT_ONCE, allowed
from halfgraph.sparql.reading import Reading
from halfgraph.sparql.refusals import refuse_service
from halfgraph.sparql.templates import Templates
from halfgraph.sparql.tokens import Source
from halfgraph.training.run import load_encoder

# Not SPARQL, or what the store must not be asked either: it would write, call other machines, or give no rows.
NEVER_ASKED = frozenset({"syntax", "update", "SERVICE", "length", "nesting", "form"})
MODES = ("vector",)
ONE_EDGE = path(0, 0)


@dataclass(frozen=True)
class Engine:
    """A graph and a model of it, ready to be asked; `view` says which triples count as known."""

    graph: Graph
    index: Index
    view: str = "whole"
    time_limit: float | None = None  # seconds that the store may take for a query
    calibration: Calibration = field(default_factory=lambda: Calibration({}), repr=False)
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
        index = Index.of(load_encoder(run, graph, architecture))
        return cls(graph, index, view, time_limit, Calibration.load(run))

    @cached_property
    def facts(self) -> Facts:
        """The statements that are known."""
        return Facts(self.graph, self.view, self.time_limit)

    @cached_property
    def names(self) -> Names:
        """What entities, kinds and relations are called."""
        return Names(self.graph)

    def ask(
        self,
        text: str,
        top: int = 10,
        *,
        mode: str | None = None,
        min_confidence: float | None = None,
        any_kind: bool = False,
        explain: bool = True,
    ) -> Answers:
        """The answers to a SPARQL query; what cannot be predicted is answered exactly, and a note says why."""
        begun = time.perf_counter()
        mode = self._mode(mode)
        self._check(mode, top, min_confidence)
        reading, reason = self._read(text)
        variables, known = self._known(text, reading)
        if reading is None:
            assert reason is not None
            if isinstance(reason, UnknownName) and not known:
                raise reason
            notes = [f"Nothing is predicted: {reason}"]
            return Answers(variables, known, [], Explanation(), notes, mode, _since(begun))
        laid = Laid.of(reading)
        looked = look(self.index.encoder, laid)
        all_known, cut = self._all_known(text, reading, known, top)
        predicted = self._predicted(reading, laid, looked, all_known, cut, any_kind)
        predicted = surer(self._sure(mode, reading.query, predicted), min_confidence)
        explanation = self._explanation(laid, looked, not len(all_known)) if explain else Explanation()
        return Answers(variables, known, predicted, explanation, [], mode, _since(begun), reading.target)

    def explain(self, text: str, entity: str, *, mode: str | None = None) -> Witness:
        """Why an entity is an answer: its best witness, and which of the triples that this takes are missing."""
        mode = self._mode(mode)
        reading, reason = self._read(text)
        if reading is None:
            assert reason is not None
            raise reason
        laid, number = Laid.of(reading), self.names.resolve(entity)
        rows = self.facts.rows(uncut(text, self.graph)).bindings
        known = any(self.names.find(row[laid.target]["value"]) == number for row in rows if laid.target in row)
        found = self.reasons.witness(laid, look(self.index.encoder, laid), number, known)
        if known or found.answer.score is None:
            return found
        sure = self.calibration.confidence(mode, reading.query, np.array([found.answer.score]))
        return found if sure is None else replace(found, answer=replace(found.answer, confidence=round(sure[0], 4)))

    def ask_batch(self, texts: Sequence[str], top: int = 10, *, any_kind: bool = False) -> list[Answers]:
        """The answers to each of many queries, without explanations; those that differ in names alone go together."""
        begun = time.perf_counter()
        self._check("vector", top, None)
        found: dict[int, Answers] = {}
        read = []
        for place, text in enumerate(texts):
            try:
                template, names = self.templates.template(text)
                if template.reading.restriction or template.reading.witnesses:
                    found[place] = self.ask(text, top, any_kind=any_kind, explain=False)
                else:
                    read.append((place, template, names))
            except (SparqlError, UnknownName):
                found[place] = self.ask(text, top, any_kind=any_kind, explain=False)
        for group in gather(read):
            known = self.batches.known(group.batch)
            if known is None:
                found |= {
                    place: self.ask(texts[place], top, any_kind=any_kind, explain=False) for place in group.places
                }
            else:
                given = self.batches.answers(group, known, top, any_kind)
                query = group.reading.query
                sure = (replace(one, predicted=self._sure("vector", query, one.predicted)) for one in given)
                found |= zip(group.places, sure, strict=True)
        each = round((time.perf_counter() - begun) / max(len(texts), 1), 6)
        return [replace(found[place], seconds=each) for place in range(len(texts))]

    @cached_property
    def batches(self) -> Batches:
        """What answers many questions at once."""
        exact = Exact(getattr(self.graph, self.view))
        return Batches(self.index, self.facts, self.names, exact)

    @cached_property
    def reasons(self) -> Reasons:
        """What gives reasons for answers."""
        seeker = Seeker(self.index, getattr(self.graph, self.view), self._chance)
        return Reasons(self.facts, self.names, seeker, bool(self.calibration.curves.get("vector")))

    def _chance(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """How likely triples are by their cosines: as measured for single edges, or else half of what is above 0."""
        sure = self.calibration.confidence("vector", ONE_EDGE, cosines)
        return np.clip(cosines, 0.0, 1.0) / 2 if sure is None else sure

    def _mode(self, mode: str | None) -> str:
        """The way of predicting, or an error where there is none of that name."""
        if mode is None:
            return MODES[0]
        if mode not in MODES:
            raise SettingError("--mode", f'there is none named "{mode}"', advice=f"Known: {', '.join(MODES)}.")
        return mode

    def _read(self, text: str) -> tuple[Reading | None, HalfgraphError | None]:
        """What a text asks, or why nothing can be predicted for it; what is not to be asked at all is refused."""
        try:
            return self.templates.read(text), None
        except (SparqlError, UnknownName) as error:
            if isinstance(error, SparqlError) and error.feature in NEVER_ASKED:
                raise
            refuse_service(Source(text, Prefixes.of(self.graph)))
            return None, error

    def _known(self, text: str, reading: Reading | None) -> tuple[Sequence[str], list[Known]]:
        """The variables and the exact answers: from the store, or by compiled walks where those give the same."""
        if reading is not None and _is_plain(reading):
            found = self.batches.known(compile_query(reading.query))
            if found is not None:
                return [reading.target], [self.names.known_entity(reading.target, one) for one in found[0].tolist()]
        rows = self.facts.rows(text)
        return rows.variables, self.names.known(rows)

    def _all_known(
        self, text: str, reading: Reading, known: Sequence[Known], top: int
    ) -> tuple[NDArray[np.int32], Cut]:
        """The entities that are known to be answers, also those that OFFSET leaves out, and how many to predict."""
        rows, count = known, len(known)
        if reading.offset and (reading.limit is None or len(known) < reading.limit):
            rows = self.names.known(self.facts.rows(uncut(text, self.graph)))
            count = len(rows) - reading.offset
        cells = (answer.row.get(reading.target) for answer in rows)
        found = (None if cell is None else self.names.find(cell.value) for cell in cells)
        entities = np.array([entity for entity in found if entity is not None], dtype=np.int32)
        return entities, Cut.of(count, reading.limit, top)

    def _predicted(
        self, reading: Reading, laid: Laid, looked: Looked, known: NDArray[np.int32], cut: Cut, any_kind: bool
    ) -> list[Predicted]:
        """The likeliest entities that are not known to be answers, and that the store lets pass."""
        among = slice(0, len(self.graph.entities)) if any_kind else self._among(laid, known)
        wanted = cut.skip + cut.take
        count = len(self.graph.entities) if reading.restriction else wanted
        ranked = self.index.nearest(looked.vectors[laid.target], count, among=among, without=known)
        ranked = self._let_pass(reading, ranked, wanted)
        found = []
        for number, score in ranked[cut.skip :]:
            entity = self.names.entity(number)
            found.append(Predicted(entity.entity, entity.label, self.names.kind_of(number), round(score, 4)))
        return found

    def _let_pass(self, reading: Reading, ranked: list[tuple[int, float]], wanted: int) -> list[tuple[int, float]]:
        """The first so many that the query's tests of literals are true of."""
        if not reading.restriction:
            return ranked
        found: list[tuple[int, float]] = []

        def asked(text: str) -> list[str]:
            return [row[reading.target]["value"] for row in self.facts.rows(text).bindings]

        for first in range(0, len(ranked), AT_ONCE):
            some = ranked[first : first + AT_ONCE]
            passes = allowed(asked, reading, self.graph, [number for number, _ in some])
            found += [one for one, passing in zip(some, passes.tolist(), strict=True) if passing]
            if len(found) >= wanted:
                break
        return found[:wanted]

    def _sure(self, mode: str, query: Query, predicted: Sequence[Predicted]) -> list[Predicted]:
        """The answers with their confidence, where it was measured."""
        scores = np.array([one.score for one in predicted])
        sure = self.calibration.confidence(mode, query, scores)
        if sure is None:
            return list(predicted)
        return [replace(one, confidence=round(rate, 4)) for one, rate in zip(predicted, sure.tolist(), strict=True)]

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

    def _among(self, laid: Laid, known: NDArray[np.int32]) -> slice:
        """The range of the answer's kind: as the query says, as known answers are, or as its relations usually end."""
        query, starts = laid.variables[laid.target], self.graph.kinds.starts.tolist()
        if len(known) and not isinstance(query, Anchor) and kind_of(query) is None:
            kind = int(np.bincount(self.graph.kinds.of(known)).argmax())
            return slice(starts[kind], starts[kind + 1])
        return kind_range(self.index, query, starts)[1]

    def _explanation(self, laid: Laid, looked: Looked, is_empty: bool) -> Explanation:
        """The query as it was understood, and why it has no exact answer if it has none."""
        nodes, ids = drawn_nodes(laid, looked, self.names, self.index)
        empty = Emptiness(self.facts, self.names).why(laid) if is_empty else None
        return Explanation(nodes, drawn_edges(laid, looked, self.names, ids), empty)


def _is_plain(reading: Reading) -> bool:
    """Whether each answer is asked for once, all of them, by itself, and without tests that only the store can do."""
    plain = reading.distinct and reading.limit is None and not reading.offset
    return plain and not reading.restriction and not reading.witnesses


def surer(predicted: list[Predicted], least: float | None) -> list[Predicted]:
    """The answers of at least this confidence."""
    return predicted if least is None else [one for one in predicted if (one.confidence or 0.0) >= least]


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 6)
