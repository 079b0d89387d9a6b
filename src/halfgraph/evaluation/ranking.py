"""The field's protocol: filtered ranks of hard answers over all entities, chunk by chunk, ties in the open.

The rank of an answer is 1, and 1 more for each entity that is no answer and scores higher, and a half for each that
scores as high. All other answers, easy and hard, are filtered out.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.evaluation._rank_kernels import FAR, fewest_missing, rank_rows
from halfgraph.evaluation.metrics import require_finite
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.base import Predictor, Scores
from halfgraph.query._kernels import contiguous, edges_of, steps_of
from halfgraph.query.exact import Ragged, available_cores, in_pieces
from halfgraph.query.program import compile_structure
from halfgraph.workload.sampling import Questions

AT_ONCE = 1 << 23  # scores in memory at a time, for each thread: 32 MB
HITS = (1, 3, 10)
Watch = Callable[["ScoredQuestions", slice, Scores], None]  # told of the scores of some rows (rows, entities), in order


@dataclass(frozen=True)
class ScoredQuestions:
    """What an predictor makes of some questions of one structure; every measure is computed from these columns."""

    questions: Questions
    answer: Scores  # (n,): the score of the question's own answer
    negative: Scores  # (n,); 0 where there is none
    hard_negative: Scores
    negatives: Scores  # the scores of questions.negatives.values
    hard_negatives: Scores
    above: NDArray[np.int32]  # for each of questions.hard.values: how many that are no answer score higher,
    equal: NDArray[np.int32]  # and how many score as high
    recovered: NDArray[np.float64]  # (n,): the mean reciprocal rank of the easy answers; 0 where there are none

    @property
    def ranks(self) -> NDArray[np.float64]:
        """The filtered rank of each of questions.hard.values; a tie counts half."""
        return 1.0 + self.above + self.equal / 2.0


def scored(
    predictor: Predictor,
    questions: Questions,
    *,
    threads: int | None = None,
    at_once: int = AT_ONCE,
    watch: Watch | None = None,
) -> ScoredQuestions:
    """The questions with their scores and ranks; memory grows with the answers and negatives, not with entities."""
    found = _unscored(questions)
    hard, easy = _sets(questions.hard, len(questions)), _sets(questions.easy, len(questions))

    def some(rows: slice) -> int:
        scores = predictor.scores(questions.structure, questions.anchors[rows], questions.relations[rows])
        require_finite(scores, f"{predictor.name}, {questions.structure.name}")
        _pick(found, rows, scores)
        _rank(found, rows, scores, easy, hard)
        if watch is not None:
            watch(found, rows, scores)
        return scores.shape[1]

    if len(questions):
        with torch_threads(1):
            entity_count = some(slice(0, 1))  # the first question tells how many scores a row has
            size = max(1, at_once // entity_count)
            chunks = [slice(first, min(first + size, len(questions))) for first in range(1, len(questions), size)]
            with ThreadPoolExecutor(1 if watch is not None else threads or available_cores()) as pool:
                list(pool.map(some, chunks))
    return found


def _unscored(questions: Questions) -> ScoredQuestions:
    """Columns to be filled."""
    count, hard = len(questions), _size(questions.hard)
    return ScoredQuestions(
        questions,
        answer=np.zeros(count, np.float32),
        negative=np.zeros(count, np.float32),
        hard_negative=np.zeros(count, np.float32),
        negatives=np.zeros(_size(questions.negatives), np.float32),
        hard_negatives=np.zeros(_size(questions.hard_negatives), np.float32),
        above=np.zeros(hard, np.int32),
        equal=np.zeros(hard, np.int32),
        recovered=np.zeros(count, np.float64),
    )


def _sets(sets: Ragged | None, count: int) -> Ragged:
    """The sets, or empty ones where there are none."""
    return Ragged(np.empty(0, np.int32), np.zeros(count + 1, np.int64)) if sets is None else sets


def _size(sets: Ragged | None) -> int:
    return 0 if sets is None else len(sets.values)


def _pick(found: ScoredQuestions, rows: slice, scores: Scores) -> None:
    """Nothing; the scores of the answers and negatives of some rows are kept."""
    questions = found.questions
    places = np.arange(len(scores))
    found.answer[rows] = scores[places, questions.answers[rows]]
    for name in ("negative", "hard_negative"):
        entities = getattr(questions, name)[rows]
        getattr(found, name)[rows] = np.where(entities >= 0, scores[places, np.maximum(entities, 0)], 0.0)
    for name in ("negatives", "hard_negatives"):
        sets = getattr(questions, name)
        if sets is not None:
            offsets = sets.offsets[rows.start : rows.stop + 1]
            values = slice(int(offsets[0]), int(offsets[-1]))
            getattr(found, name)[values] = scores[np.repeat(places, np.diff(offsets)), sets.values[values]]


def _rank(found: ScoredQuestions, rows: slice, scores: Scores, easy: Ragged, hard: Ragged) -> None:
    """Nothing; the answers of some rows are ranked."""
    easy_offsets, hard_offsets = (sets.offsets[rows.start : rows.stop + 1] for sets in (easy, hard))
    values = slice(int(hard_offsets[0]), int(hard_offsets[-1]))
    rank_rows(
        *map(contiguous, (scores, easy.values, easy_offsets, hard.values, hard_offsets)),
        *(found.above[values], found.equal[values], found.recovered[rows]),
    )


def mean_by_question(values: NDArray[Any], sets: Ragged) -> NDArray[np.float64]:
    """The mean of each question's values; 0 where it has none."""
    sizes = sets.sizes()
    rows = np.repeat(np.arange(len(sets)), sizes)
    return np.bincount(rows, values, len(sets)) / np.maximum(sizes, 1)


def missing_triples(
    questions: Questions, whole: KnowledgeGraph, known: KnowledgeGraph, threads: int | None = None
) -> NDArray[np.int8]:
    """For each hard answer the fewest triples of a way to it that the known graph lacks; -1 where there is no way."""
    hard = _sets(questions.hard, len(questions))
    fewest = np.zeros(len(hard.values), dtype=np.int8)
    steps, edges, known_edges = steps_of(compile_structure(questions.structure)), edges_of(whole), edges_of(known)
    anchors, relations, values = contiguous(questions.anchors), contiguous(questions.relations), contiguous(hard.values)

    def some(rows: slice) -> None:
        offsets = hard.offsets[rows.start : rows.stop + 1]
        out = fewest[int(offsets[0]) : int(offsets[-1])]
        fewest_missing(edges, known_edges, steps, anchors[rows], relations[rows], values, contiguous(offsets), out)

    in_pieces(some, len(questions), threads)
    fewest[fewest == FAR] = -1
    return fewest
