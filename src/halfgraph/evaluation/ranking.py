"""Filtered ranks of hard answers among all entities.

The rank of an answer is 1, plus 1 for each non-answer that scores higher, plus 1/2 for each that scores the same. All
other answers, easy and hard, are filtered out.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.evaluation._missing_kernel import FAR, fewest_missing
from halfgraph.evaluation.metrics import require_finite
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.base import Predictor, Scores
from halfgraph.query._kernels import contiguous, edges_of
from halfgraph.query.exact import Ragged, available_cores, in_pieces
from halfgraph.workload.sampling import Questions

CHUNK = 1 << 23  # scores in memory at a time, for each thread: 32 MB
HITS = (1, 3, 10)
# Called in order with rows and their scores (rows, entities).
Watch = Callable[["ScoredQuestions", slice, Scores], None]


@dataclass(frozen=True)
class ScoredQuestions:
    """Questions of one structure with a predictor's scores and ranks; every measure is computed from these columns."""

    questions: Questions
    answer: Scores  # (n,): score of the question's own answer
    negative: Scores  # (n,); 0 if there is none
    hard_negative: Scores
    negatives: Scores  # scores of questions.negatives.values
    hard_negatives: Scores
    above: NDArray[np.int32]  # for each of questions.hard.values: number of non-answers that score higher,
    equal: NDArray[np.int32]  # and number of those that score the same
    recovered: NDArray[np.float64]  # (n,): mean reciprocal rank of the easy answers; 0 if there are none

    @property
    def ranks(self) -> NDArray[np.float64]:
        """Filtered rank of each of questions.hard.values; a tie counts half."""
        return 1.0 + self.above + self.equal / 2.0


def score_questions(
    predictor: Predictor,
    questions: Questions,
    *,
    threads: int | None = None,
    chunk: int = CHUNK,
    watch: Watch | None = None,
) -> ScoredQuestions:
    """Score and rank questions; memory grows with the answers and negatives, not with the entities."""
    scored = empty_columns(questions)
    hard, easy = sets_of(questions, "hard"), sets_of(questions, "easy")

    def score_rows(rows: slice) -> int:
        scores = predictor.scores(questions.structure, questions.anchors[rows], questions.relations[rows])
        require_finite(scores, f"{predictor.name}, {questions.structure.name}")
        _store_scores(scored, rows, scores)
        _store_ranks(scored, rows, scores, easy, hard)
        if watch is not None:
            watch(scored, rows, scores)
        return scores.shape[1]

    if len(questions):
        with torch_threads(1):
            entity_count = score_rows(slice(0, 1))  # the first question tells the number of entities
            size = max(1, chunk // entity_count)
            chunks = [slice(first, min(first + size, len(questions))) for first in range(1, len(questions), size)]
            with ThreadPoolExecutor(1 if watch is not None else threads or available_cores()) as pool:
                list(pool.map(score_rows, chunks))
    return scored


def empty_columns(questions: Questions) -> ScoredQuestions:
    """Return columns of zeros for scores and ranks."""
    rows, hard = len(questions), len(sets_of(questions, "hard").values)
    columns: dict[str, Any] = {name: np.zeros(rows, np.float32) for name in ("answer", "negative", "hard_negative")}
    for name in ("negatives", "hard_negatives"):
        columns[name] = np.zeros(len(sets_of(questions, name).values), np.float32)
    columns |= {"above": np.zeros(hard, np.int32), "equal": np.zeros(hard, np.int32), "recovered": np.zeros(rows)}
    return ScoredQuestions(questions, **columns)


def sets_of(questions: Questions, name: str) -> Ragged:
    """Return the sets of each question by name (hard, easy, negatives, hard_negatives); empty if it has none."""
    sets: Ragged | None = getattr(questions, name)
    return Ragged(np.empty(0, np.int32), np.zeros(len(questions) + 1, np.int64)) if sets is None else sets


def _store_scores(scored: ScoredQuestions, rows: slice, scores: Scores) -> None:
    """Store the scores of the answers and negatives of some rows."""
    questions = scored.questions
    order = np.arange(len(scores))
    scored.answer[rows] = scores[order, questions.answers[rows]]
    for name in ("negative", "hard_negative"):
        entities = getattr(questions, name)[rows]
        getattr(scored, name)[rows] = np.where(entities >= 0, scores[order, np.maximum(entities, 0)], 0.0)
    for name in ("negatives", "hard_negatives"):
        sets = sets_of(questions, name)
        offsets = sets.offsets[rows.start : rows.stop + 1]
        values = slice(int(offsets[0]), int(offsets[-1]))
        getattr(scored, name)[values] = scores[np.repeat(order, np.diff(offsets)), sets.values[values]]


def _store_ranks(scored: ScoredQuestions, rows: slice, scores: Scores, easy: Ragged, hard: Ragged) -> None:
    """Rank the answers of some rows among the non-answers."""
    for row, own in zip(range(rows.start, rows.stop), scores, strict=True):
        answers, easy_count = np.concatenate([easy[row], hard[row]]), len(easy[row])
        others = own.copy()
        others[answers] = -np.inf
        others.sort()
        below, not_above = (np.searchsorted(others, own[answers], side=side) for side in ("left", "right"))
        above, equal = len(others) - not_above, not_above - below
        values = slice(hard.offsets[row], hard.offsets[row + 1])
        scored.above[values], scored.equal[values] = above[easy_count:], equal[easy_count:]
        ranks = 1.0 + above[:easy_count] + equal[:easy_count] / 2.0
        scored.recovered[row] = (1.0 / ranks).sum() / max(easy_count, 1)


def mean_by_question(values: NDArray[Any], sets: Ragged) -> NDArray[np.float64]:
    """Return the mean of each question's values; 0 if it has none."""
    sizes = sets.sizes()
    rows = np.repeat(np.arange(len(sets)), sizes)
    return np.bincount(rows, values, len(sets)) / np.maximum(sizes, 1)


def missing_triples(
    questions: Questions, whole: KnowledgeGraph, known: KnowledgeGraph, threads: int | None = None
) -> NDArray[np.int8]:
    """Return for each hard answer the fewest missing triples on a path to it; -1 if there is no path."""
    hard = sets_of(questions, "hard")
    fewest = np.zeros(len(hard.values), dtype=np.int8)
    steps, edges, known_edges = questions.structure.program.arrays, edges_of(whole), edges_of(known)
    anchors, relations, values = contiguous(questions.anchors), contiguous(questions.relations), contiguous(hard.values)

    def count_rows(rows: slice) -> None:
        offsets = hard.offsets[rows.start : rows.stop + 1]
        out = fewest[int(offsets[0]) : int(offsets[-1])]
        fewest_missing(edges, known_edges, steps, anchors[rows], relations[rows], values, contiguous(offsets), out)

    in_pieces(count_rows, len(questions), threads)
    fewest[fewest == FAR] = -1
    return fewest
