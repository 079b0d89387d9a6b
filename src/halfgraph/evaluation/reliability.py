"""Reliability of confidences: bins, the expected calibration error and the Brier score.

A confidence is meant for a question that was not chosen because an answer is missing. So it is measured on queries
drawn from the known triples, whatever is missing there. On held-out questions, each of which does lack an answer, the
confidence given that something is missing is measured instead: p / (1 - (1 - p1)(1 - p2)...) over all entities.
Links that are predicted with high confidence are judged over the whole graph.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.base import Predictor, Scores, map_chunks
from halfgraph.prediction.link_predictor import LARGE, LinkPredictor
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES
from halfgraph.workload.sampling import Questions, Sampler

BINS = 15
MOST, DRAWN = 500, 300  # held-out questions of each structure, and queries drawn from the known triples
SURE = 0.8  # least probability of a sure link
BANDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # where bands of confidence begin
PAIRS = (3_000, 3_000, 300)  # of head and relation, drawn of each sort
TOP = 10  # predicted answers of each question that are judged
CHUNK, CHUNK_SCORES = 64, 1 << 22  # questions and scores at a time, for each thread
Judged = tuple[NDArray[np.float64], NDArray[np.bool_]]  # confidences, and whether the answers are right


def reliability_bins(confidences: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, list[Any]]:
    """Mean confidence, share of right answers and number of answers in each bin of equal width, empty ones left out."""
    bins = np.minimum((confidences * BINS).astype(int), BINS - 1)
    inside = [bins == number for number in np.unique(bins)]
    return {
        "confidence": [round(float(confidences[own].mean()), 4) for own in inside],
        "right": [round(float(right[own].mean()), 4) for own in inside],
        "answers": [int(own.sum()) for own in inside],
    }


def calibration_error(bins: Mapping[str, list[Any]]) -> float:
    """Expected calibration error: the mean gap between confidence and share of right answers."""
    gaps = np.abs(np.subtract(bins["confidence"], bins["right"]))
    return float((gaps * bins["answers"]).sum() / max(sum(bins["answers"]), 1))


def judge_answers(
    predictor: Predictor,
    questions: Questions,
    known: KnowledgeGraph,
    truth: KnowledgeGraph,
    *,
    something_missing: bool = False,
) -> Judged:
    """Predict the TOP best answers to each question: their confidences, and whether the true graph has them."""
    batch = questions.batch()
    easy, true = (Exact(view).answer_sets(batch) for view in (known, truth))
    size = min(CHUNK, max(1, CHUNK_SCORES // known.entity_count))

    def chunk_scores(rows: slice) -> Scores:
        return predictor.scores(questions.structure, questions.anchors[rows], questions.relations[rows])

    confidences, right = list[float](), list[bool]()
    for rows, chunk in map_chunks(chunk_scores, len(questions), size):
        for row, scores in zip(range(rows.start, rows.stop), chunk.astype(np.float64), strict=True):
            scores[easy[row]] = 0.0
            if something_missing:
                scores = given_something_missing(scores)
            best = np.argpartition(-scores, min(TOP, len(scores) - 1))[:TOP]
            best = best[scores[best] > 0]
            confidences += scores[best].tolist()
            right += np.isin(best, true[row]).tolist()
    return np.array(confidences), np.array(right, dtype=bool)


def given_something_missing(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of missing answers, given that there is at least one."""
    some = -np.expm1(np.log1p(-np.minimum(scores, 1 - 1e-9)).sum())
    return np.minimum(scores / max(some, 1e-12), 1.0)


def measure_reliability(
    predictor: Predictor, sets: Iterable[Questions], known: KnowledgeGraph, truth: KnowledgeGraph, seed: int
) -> dict[str, Any]:
    """Return errors, Brier scores and bins by structure under "calibration": of drawn queries, and of the questions."""
    sampler = Sampler(known)
    drawn = [sampler.draw(structure, DRAWN, seed, negatives=False, hard_negatives=False) for structure in STRUCTURES]
    unselected = {
        own.questions.structure.short: judge_answers(predictor, own.questions, known, truth)
        for own in drawn
        if len(own.questions)
    }
    held_out = {
        own.structure.short: judge_answers(
            predictor, own.take(np.arange(min(len(own), MOST))), known, truth, something_missing=True
        )
        for own in sets
    }
    return {"calibration": {**_figures(unselected), "something_missing": _figures(held_out)}}


@dataclass(frozen=True)
class JudgedLinks:
    """Missing links of some pairs of head and relation, and whether the true graph has them.

    A link stands for as many links of the whole graph as its weight says.
    """

    confidences: NDArray[np.float64]
    right: NDArray[np.bool_]
    weights: NDArray[np.float64]

    def between(self, least: float, most: float) -> dict[str, Any]:
        """Estimate how many links have a confidence in [least, most), and the share of them that is right."""
        inside = (self.confidences >= least) & (self.confidences < most)
        weights = self.weights[inside]
        share = round(float(weights @ self.right[inside] / weights.sum()), 4) if len(weights) else None
        return {"links": round(float(weights.sum())), "right": share, "drawn": len(weights)}


def judge_sure_links(links: LinkPredictor, truth: KnowledgeGraph, seed: int) -> dict[str, Any] | None:
    """Estimate for the whole graph how many missing links are SURE, and the share of them that the true graph has."""
    judged = judge_links(links, truth, seed, SURE)
    return None if judged is None else {"confidence": SURE, **judged.between(SURE, np.inf)}


def precision_by_band(links: LinkPredictor, truth: KnowledgeGraph, seed: int, least: float) -> list[dict[str, Any]]:
    """Estimate the share of right links in each band of confidence from `least` on; none for a large graph."""
    judged = judge_links(links, truth, seed, least)
    ends = sorted({least, *(end for end in BANDS if end > least)})
    bands = [] if judged is None else [(own, judged.between(*own)) for own in pairwise([*ends, 1.0 + 1e-9])]
    return [{"from": first, "to": min(last, 1.0), **figures} for (first, last), figures in bands]


def judge_links(links: LinkPredictor, truth: KnowledgeGraph, seed: int, least: float) -> JudgedLinks | None:
    """Draw pairs of head and relation, and judge their missing links of at least a confidence.

    Pairs are drawn of three sorts: with known tails, with neighbours of the head that have the relation, and others.
    Large graphs are not judged.
    """
    if links.graph.entity_count > LARGE:
        return None
    rng = np.random.default_rng(seed)
    sorts = [
        np.where(links.known_tails(relation) > 0, 0, np.where(links.voters(relation) > 0, 1, 2)).astype(np.int8)
        for relation in range(0, links.graph.relation_count, 2)
    ]
    confidences, right, weights = list[float](), list[bool](), list[float]()
    for sort, size in enumerate(PAIRS):
        relations, heads = np.nonzero(np.stack(sorts) == sort)
        rows = np.sort(rng.permutation(len(heads))[:size])
        pairs = list(zip(heads[rows].tolist(), (2 * relations[rows]).tolist(), strict=True))
        for first in range(0, len(pairs), CHUNK):
            for (head, relation), likely in links.rows(pairs[first : first + CHUNK]).items():
                sure = np.flatnonzero((likely >= least) & (likely > 0))
                confidences += likely[sure].tolist()
                right += np.isin(sure, truth.tails_of(head, relation)).tolist()
                weights += [len(heads) / len(rows)] * len(sure)
    return JudgedLinks(np.array(confidences), np.array(right, dtype=bool), np.array(weights))


def _figures(judged: Mapping[str, Judged]) -> dict[str, Any]:
    filled = {name: own for name, own in judged.items() if len(own[0])}
    bins = {name: reliability_bins(*own) for name, own in filled.items()}
    return {
        "ece": {name: round(calibration_error(own), 4) for name, own in bins.items()},
        "brier": {name: round(float(np.square(own[0] - own[1]).mean()), 4) for name, own in filled.items()},
        "bins": bins,
    }
