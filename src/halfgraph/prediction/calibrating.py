"""Confidence measured: the first answers to held-out questions, and how many of them the whole graph says are right."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.batch import types_of_answers
from halfgraph.evaluation.ranking import in_order
from halfgraph.graph.folder import Graph
from halfgraph.model.encoder import Encoder
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.answerers import Answerer
from halfgraph.prediction.calibration import Calibration, Curve, Reliability, fit
from halfgraph.prediction.ensemble import FusedAnswerer
from halfgraph.prediction.predictors import BOTH, SCORED, VECTOR, Modes, affordable, weigh
from halfgraph.prediction.predictors import EACH as WEIGHED
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.structures import STRUCTURES, Structure
from halfgraph.workload.folder import Counts, Plan, draw
from halfgraph.workload.negatives import NegativeCounts
from halfgraph.workload.sampling import Questions

TOP = 10  # answers of each question that are counted
AT_ONCE, SCORES = 64, 1 << 22  # questions and scores at a time, for each thread
EACH = 1_000  # validation questions of each structure
ONE_IN, NEGATIVES = 5, 40  # which of them have so many wrong answers, to weigh the ways by
FEW = 400  # of them for the ways that walk edge by edge, which take longer


@dataclass(frozen=True)
class First:
    """The first answers to questions that the training graph does not have: scores, and whether they are right."""

    scores: NDArray[np.float64]
    right: NDArray[np.bool_]


def validation_questions(
    graph: Graph, seed: int, each: int = EACH, structures: Sequence[Structure] = STRUCTURES
) -> list[Questions]:
    """Fresh validation questions; none where the graph has no split."""
    if not graph.has_split:
        return []
    plan = Plan(
        Counts(0, 0, each, 0, 0), seed + 7, structures=tuple(structures), negatives=NegativeCounts(NEGATIVES, ONE_IN)
    )
    return [drawn.questions for split, drawn in draw(graph, plan) if split == "valid" and len(drawn.questions)]


def first_answers(answerer: Answerer, encoder: Encoder, questions: Questions, graph: Graph, top: int = TOP) -> First:
    """The first answers as `ask` would give them on the training triples, judged by the whole graph."""
    batch = questions.batch()
    known, true = (Exact(view).answer_sets(batch) for view in (graph.train, graph.whole))
    query = questions.structure.fill(questions.anchors, questions.relations)
    types = types_of_answers(encoder, graph.types, query, known)
    size = min(AT_ONCE, max(1, SCORES // graph.train.entity_count))
    scores, right = [np.empty(0)], [np.empty(0, dtype=bool)]

    def some_scores(rows: slice) -> NDArray[np.float32]:
        return answerer.scores(questions.structure, questions.anchors[rows], questions.relations[rows])

    for rows, found in in_order(some_scores, len(questions), size):
        for row, of_row in zip(range(rows.start, rows.stop), found, strict=True):
            first, last = graph.types.starts[types[row] : types[row] + 2].tolist()
            some = _first(of_row, known, row, first, last, top)
            scores.append(of_row[some].astype(np.float64))
            right.append(np.isin(some, true[row]))
    return First(np.concatenate(scores), np.concatenate(right))


def _first(scores: Any, known: Ragged, row: int, first: int, last: int, top: int) -> NDArray[np.int64]:
    """The best entities of a range that are not known."""
    own = scores[first:last].astype(np.float64)
    inside = known[row][(known[row] >= first) & (known[row] < last)] - first
    own[inside] = -np.inf
    top = min(top, len(own) - len(inside))
    best: NDArray[np.int64] = np.argpartition(-own, max(top - 1, 0))[:top] if top else np.empty(0, np.int64)
    return best + first


def calibrated(answerer: Answerer, encoder: Encoder, questions: Iterable[Questions], graph: Graph) -> dict[str, Curve]:
    """The curve of each structure that there are questions of."""
    found = {some.structure.short: first_answers(answerer, encoder, some, graph) for some in questions}
    return {name: fit(first.scores, first.right) for name, first in found.items() if len(first.scores)}


def reliability(
    calibration: Calibration, mode: str, answerer: Answerer, encoder: Encoder, sets: Iterable[Questions], graph: Graph
) -> dict[str, dict[str, Any]]:
    """How well the confidences of a mode hold on some questions, structure by structure."""
    found: dict[str, dict[str, Any]] = {}
    for questions in sets:
        first = first_answers(answerer, encoder, questions, graph)
        confidences = calibration.confidence(mode, questions.structure.query, first.scores)
        if confidences is not None and len(confidences):
            kept = Reliability.of(confidences, first.right)
            found[questions.structure.short] = {
                "ece": round(kept.error(), 4),
                "confidence": list(kept.confidence),
                "right": list(kept.right),
                "answers": list(kept.answers),
            }
    return found


@dataclass
class Remembered:
    """An answerer that remembers what it was asked of a structure, until it is asked of another."""

    way: Answerer
    structure: str = ""
    found: dict[tuple[bytes, bytes], NDArray[np.float32]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name."""
        return self.way.name

    def scores(
        self, structure: Structure, anchors: NDArray[np.int32], relations: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """The score of every entity for each query."""
        if structure.name != self.structure:
            self.structure, self.found = structure.name, {}
        asked = (anchors.tobytes(), relations.tobytes())
        if asked not in self.found:
            self.found[asked] = self.way.scores(structure, anchors, relations)
        return self.found[asked]


def calibrate(
    run: Path, graph: Graph, encoder: Encoder, seed: int, told: Callable[[str, int, int], None] = lambda *_: None
) -> Calibration:
    """The calibration of a run, measured on fresh validation questions and kept; none where there is no split.

    What the evidence of edges weighs, and each way of predicting, is fitted first and kept too. `told` hears of what is
    done, how many questions it takes in all, and how many more are done.
    """
    questions = validation_questions(graph, seed)
    if not questions:
        return Calibration({})
    most = sum(min(-(-len(some) // ONE_IN), affordable(WEIGHED, graph)) for some in questions)
    with torch_threads(1):  # so that the weights do not depend on how many there are
        weighing = weigh(encoder, graph, questions, seed, lambda more: told("Weighing the evidence", most, more))
    if weighing is not None:
        weighing.save(run)
    modes = Modes(encoder, graph.train, weighing)
    answerers = {mode: modes.answerer(mode, likely=True) for mode in modes.names}
    both = answerers.get(BOTH)
    if isinstance(both, FusedAnswerer):  # one walk along the edges serves both ways that need it
        answerers[SCORED] = Remembered(both.by_edges)
        answerers[BOTH] = replace(both, by_edges=answerers[SCORED])
    curves: dict[str, dict[str, Curve]] = {mode: {} for mode in answerers}
    for some in questions:
        for mode, answerer in answerers.items():
            few = some if mode == VECTOR else some.take(np.arange(min(len(some), affordable(FEW, graph))))
            curves[mode] |= calibrated(answerer, encoder, [few], graph)
        told("Measuring confidence", len(questions), 1)
    found = Calibration({mode: some for mode, some in curves.items() if some})
    if found.curves:
        found.save(run)
    return found
