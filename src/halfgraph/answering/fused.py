"""Both ways at once: what a query's vector says of an entity and what its edges say, weighed by structure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.confidence import nearest_structure
from halfgraph.answering.logistic import Examples, logistic
from halfgraph.evaluation.answerers import Answerer
from halfgraph.query.exact import Ragged
from halfgraph.query.sampling import Questions
from halfgraph.query.shapes import Shape
from halfgraph.query.tree import Query

Scores = NDArray[np.float32]
LEAST = 1e-12  # what is added to the mean score by edges
NO_EDGES = 1e-3  # what is added to a score by edges, as a multiple of that mean, before its logarithm
TEMPERATURE = 0.1  # of the level of cosines
NEAR, FAR = 40, 100  # wrong answers of each question: the nearest by either, and others at random
MOST = 10  # right answers of a question that are counted
AT_ONCE = 16  # questions
FEW = 30  # questions of a structure below which its weights are those of all


@dataclass(frozen=True)
class Fusion:
    """What each way weighs for a structure, in log-odds."""

    bias: float
    edges: float  # the logarithm of the score by edges, as a multiple of their mean
    vector: float  # the cosine
    edges_level: float  # how high the query's scores are as a whole, by edges, what is certain apart
    vector_level: float  # and by its vector

    def fuse(self, by_edges: Scores, by_vector: Scores) -> Scores:
        """How likely each entity is, from the scores of all (n, entities); what is certain stays so."""
        features = features_of(by_edges, by_vector)
        weights = (self.edges, self.vector, self.edges_level, self.vector_level)
        log_odds = sum((np.float32(weight) * part for weight, part in zip(weights, features, strict=True)), self.bias)
        return np.where(by_edges >= 1, np.float32(1), 1 / (1 + np.exp(-log_odds))).astype(np.float32)


def features_of(by_edges: Scores, by_vector: Scores) -> tuple[Scores, Scores, Scores, Scores]:
    """The logarithm of the scores by edges, the cosines, and how high both are as a whole for each query."""
    uncertain = by_edges < 1
    level = (by_edges * uncertain).sum(axis=-1, keepdims=True) / np.maximum(uncertain.sum(axis=-1, keepdims=True), 1)
    level = level.astype(np.float32) + np.float32(LEAST)
    vector_level = np.log(np.exp(by_vector / np.float32(TEMPERATURE)).mean(axis=-1, keepdims=True))
    return np.log(by_edges / level + np.float32(NO_EDGES)), by_vector, np.log(level), vector_level


@dataclass(frozen=True)
class FusedAnswerer:
    """Both ways as one answerer."""

    by_edges: Answerer
    by_vector: Answerer
    fusions: Mapping[str, Fusion]  # by the structure's short name
    name: str = "both"

    def scores(self, shape: Shape, anchors: NDArray[np.int32], relations: NDArray[np.int32]) -> Scores:
        """The score of every entity (n, entities)."""
        fusion = fusion_for(shape.query, self.fusions)
        both = (way.scores(shape, anchors, relations) for way in (self.by_edges, self.by_vector))
        return fusion.fuse(*both)


def fusion_for(query: Query, fusions: Mapping[str, Fusion]) -> Fusion:
    """The weights for a query: those of its structure, or of the one that it is most like."""
    return fusions[nearest_structure(query, tuple(fusions))]


def fit_fusions(
    by_edges: Answerer,
    by_vector: Answerer,
    sets: Iterable[Questions],
    seed: int,
    told: Callable[[int], None] = lambda _: None,
) -> dict[str, Fusion]:
    """The weights for each structure that there are questions with hard answers of."""
    rng = np.random.default_rng(seed)
    examples: dict[str, list[Examples]] = {}
    for questions in sets:
        if questions.hard is None:
            continue
        found = examples.setdefault(questions.shape.short, [])
        for first in range(0, len(questions), AT_ONCE):
            rows = range(first, min(first + AT_ONCE, len(questions)))
            place = slice(rows.start, rows.stop)
            asked = (questions.shape, questions.anchors[place], questions.relations[place])
            both = zip(rows, by_edges.scores(*asked), by_vector.scores(*asked), strict=True)
            found += [_of_question(edges[None], vector[None], questions, row, rng) for row, edges, vector in both]
            told(len(rows))
    everything = [one for some in examples.values() for one in some]
    return {name: _fitted(some if len(some) >= FEW else everything) for name, some in examples.items() if some}


def _of_question(
    by_edges: Scores, by_vector: Scores, questions: Questions, row: int, rng: np.random.Generator
) -> Examples:
    """Hard answers of a question, and wrong ones: the nearest, and some of the others for all."""
    assert questions.hard is not None
    answers = _answers(questions.hard, row)
    wrong = np.ones(by_edges.shape[1], dtype=bool)
    wrong[answers] = wrong[_answers(questions.easy, row)] = False
    near = np.zeros(len(wrong), dtype=bool)
    for scores in (by_edges[0], by_vector[0]):
        near[np.argpartition(-np.where(wrong, scores, -1), min(NEAR, len(scores) - 1))[:NEAR]] = True
    others = np.flatnonzero(wrong & ~near)
    far = rng.permutation(others)[:FAR]
    right = rng.permutation(answers)[:MOST]
    chosen = np.concatenate([right, np.flatnonzero(wrong & near), far]).astype(np.int64)
    features = [np.broadcast_to(part, by_edges.shape)[0, chosen] for part in features_of(by_edges, by_vector)]
    # Every question counts as one right answer, as in the measures: else those with many answers would rule.
    weights = np.full(len(chosen), 1 / max(len(answers), 1), dtype=np.float32)
    weights[: len(right)] *= len(answers) / max(len(right), 1)
    weights[len(chosen) - len(far) :] *= len(others) / max(len(far), 1)
    true = (np.arange(len(chosen)) < len(right)).astype(np.float32)
    return Examples(np.stack(features, axis=1), true, weights, np.zeros(len(chosen), np.int64))


def _answers(sets: Ragged | None, row: int) -> NDArray[np.int32]:
    """The answers of a row."""
    return np.empty(0, np.int32) if sets is None else sets[row]


def _fitted(examples: list[Examples]) -> Fusion:
    """The weights of some questions."""
    fitted = logistic(Examples.together(examples), 1)
    bias, weights = fitted.bias + float(fitted.offsets[0]), (round(float(weight), 6) for weight in fitted.weights)
    return Fusion(round(bias, 6), *weights)


def as_dict(fusions: Mapping[str, Fusion]) -> dict[str, Any]:
    """The weights, ready for JSON."""
    return {name: asdict(fusion) for name, fusion in fusions.items()}
