"""Fitting of a run's weights and calibration on fresh validation questions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from halfgraph.graph.folder import Graph
from halfgraph.model.encoder import Encoder
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.base import Ids, Predictor, Scores, map_chunks
from halfgraph.prediction.calibration import Calibration, Curve, fit_curve
from halfgraph.prediction.embedding import EmbeddingIndex, answer_types, top_entities
from halfgraph.prediction.ensemble import EnsemblePredictor
from halfgraph.prediction.modes import EMBEDDING, ENSEMBLE, LINKS
from halfgraph.prediction.predictors import QUESTIONS as ENSEMBLE_QUESTIONS
from halfgraph.prediction.predictors import Predictors, affordable, fit_weights
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES, Structure
from halfgraph.workload.folder import Counts, Plan, draw
from halfgraph.workload.negatives import NegativeCounts
from halfgraph.workload.sampling import Questions

TOP = 10  # predicted answers of each question that are judged
CHUNK, CHUNK_SCORES = 64, 1 << 22  # questions and scores at a time, for each thread
QUESTIONS = 1_000  # validation questions of each structure
ONE_IN, NEGATIVES = 5, 40  # one question in 5 has up to 40 negatives, for fitting the ensemble
LINK_QUESTIONS = 400  # questions of each structure for the slower modes
Progress = Callable[[str, int, int], None]  # activity, total number of questions, number done since the last call


def held_out_questions(
    graph: Graph,
    split: str,
    each: int,
    seed: int,
    structures: Sequence[Structure] = STRUCTURES,
    negatives: NegativeCounts | None = None,
) -> list[Questions]:
    """Draw fresh questions of a split for each structure; none if the graph has no split."""
    if not graph.has_split:
        return []
    counts = Counts(0, 0, each if split == "valid" else 0, each if split == "test" else 0, 0)
    plan = Plan(counts, seed, structures=tuple(structures), negatives=negatives or NegativeCounts())
    return [drawn.questions for drawn_split, drawn in draw(graph, plan) if drawn_split == split and drawn.questions]


def validation_questions(
    graph: Graph, seed: int, each: int = QUESTIONS, structures: Sequence[Structure] = STRUCTURES
) -> list[Questions]:
    """Draw the validation questions that weights and calibration are fitted on."""
    # Not those that training validates on, which have the seed itself.
    return held_out_questions(graph, "valid", each, seed + 7, structures, NegativeCounts(NEGATIVES, ONE_IN))


def judge_answers(
    predictor: Predictor, encoder: Encoder, questions: Questions, graph: Graph, top: int = TOP
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Predict answers on the training triples as `ask` does: their scores, and whether the whole graph has them."""
    batch = questions.batch()
    known, true = (Exact(view).answer_sets(batch) for view in (graph.train, graph.whole))
    query = questions.structure.fill(questions.anchors, questions.relations)
    ranges = [graph.types.starts[type_id : type_id + 2] for type_id in answer_types(encoder, graph.types, query, known)]
    size = min(CHUNK, max(1, CHUNK_SCORES // graph.train.entity_count))

    def chunk_scores(rows: slice) -> Scores:
        return predictor.scores(questions.structure, questions.anchors[rows], questions.relations[rows])

    scores, right = list[float](), list[bool]()
    for rows, chunk in map_chunks(chunk_scores, len(questions), size):
        for row, own in zip(range(rows.start, rows.stop), chunk, strict=True):
            first, last = map(int, ranges[row])
            among = torch.from_numpy(own[None, first:last].copy())
            (best,) = top_entities(among, top, first=first, without=[known[row]])
            scores += [score for _, score in best]
            right += np.isin([entity for entity, _ in best], true[row]).tolist()
    return np.array(scores), np.array(right, dtype=bool)


def fit_curves(predictor: Predictor, encoder: Encoder, sets: Iterable[Questions], graph: Graph) -> dict[str, Curve]:
    """Fit the calibration curve of each structure."""
    judged = {questions.structure.short: judge_answers(predictor, encoder, questions, graph) for questions in sets}
    return {name: fit_curve(scores, right) for name, (scores, right) in judged.items() if len(scores)}


@dataclass
class CachedPredictor:
    """A predictor that caches its scores for one structure at a time."""

    predictor: Predictor
    structure: str = ""
    cache: dict[tuple[bytes, bytes], Scores] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.predictor.name

    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        if structure.name != self.structure:
            self.structure, self.cache = structure.name, {}
        key = (anchors.tobytes(), relations.tobytes())
        if key not in self.cache:
            self.cache[key] = self.predictor.scores(structure, anchors, relations)
        return self.cache[key]


def calibrate(
    run: Path, graph: Graph, encoder: Encoder, seed: int, progress: Progress = lambda *_: None
) -> Calibration:
    """Fit link weights, ensemble weights and calibration of a run, and write them to its folder.

    Without a split nothing is fitted, and the calibration has no curves.
    """
    questions = validation_questions(graph, seed)
    if not questions:
        return Calibration({})
    total = sum(min(-(-len(own) // ONE_IN), affordable(ENSEMBLE_QUESTIONS, graph)) for own in questions)
    with torch_threads(1):  # so that the weights do not depend on the number of threads
        fitted = fit_weights(encoder, graph, questions, seed, lambda done: progress("Fitting weights", total, done))
    if fitted is not None:
        fitted.save(run)
    predictors = _all_modes(Predictors(EmbeddingIndex.of(encoder), graph.train, fitted))
    curves: dict[str, dict[str, Curve]] = {mode: {} for mode in predictors}
    for own in questions:
        for mode, predictor in predictors.items():
            count = len(own) if mode == EMBEDDING else min(len(own), affordable(LINK_QUESTIONS, graph))
            curves[mode] |= fit_curves(predictor, encoder, [own.take(np.arange(count))], graph)
        progress("Measuring confidence", len(questions), 1)
    calibration = Calibration({mode: own for mode, own in curves.items() if own})
    if calibration.curves:
        calibration.save(run)
    return calibration


def _all_modes(predictors: Predictors) -> dict[str, Predictor]:
    """Build the predictors of all modes, such that link scores are computed once for links and ensemble."""
    by_mode = {mode: predictors.predictor(mode, likely=True) for mode in predictors.available}
    ensemble = by_mode.get(ENSEMBLE)
    if isinstance(ensemble, EnsemblePredictor):
        by_mode[LINKS] = CachedPredictor(ensemble.links)
        by_mode[ENSEMBLE] = replace(ensemble, links=by_mode[LINKS])
    return by_mode
