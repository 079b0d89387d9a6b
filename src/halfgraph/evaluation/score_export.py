"""The scores of every question as JSON lines, so that another program can compute every measure anew."""

import json
from typing import IO, Any

import numpy as np

from halfgraph.evaluation.ranking import ScoredQuestions, Watch
from halfgraph.prediction.base import Scores
from halfgraph.workload.jsonl import lines_of
from halfgraph.workload.nested import GraphNames


def exporter(file: IO[bytes], names: GraphNames, run: str, *, every: bool) -> Watch:
    """What writes a line for each question as it is scored; `every`: with the score of every entity, by its name."""

    def write(found: ScoredQuestions, rows: slice, scores: Scores) -> None:
        some = np.arange(rows.start, rows.stop)
        lines = lines_of(found.questions.take(some), names)
        for row, line, own in zip(some.tolist(), lines, scores, strict=True):
            record = json.loads(line) | {"run": run, "scores": _scores(found, row), "ranks": _ranks(found, row, names)}
            if every:
                record["entities"] = {names.entity_name(place): float(score) for place, score in enumerate(own)}
            file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    return write


def _scores(found: ScoredQuestions, row: int) -> dict[str, Any]:
    """The scores of a question's answer and of its negatives, as far as it has any."""
    questions = found.questions
    scores: dict[str, Any] = {"answer": float(found.answer[row])}
    for name in ("negative", "hard_negative"):
        if getattr(questions, name)[row] >= 0:
            scores[name] = float(getattr(found, name)[row])
    for name in ("negatives", "hard_negatives"):
        sets = getattr(questions, name)
        if sets is not None and len(sets[row]):
            scores[name] = getattr(found, name)[sets.offsets[row] : sets.offsets[row + 1]].tolist()
    return scores


def _ranks(found: ScoredQuestions, row: int, names: GraphNames) -> dict[str, float]:
    """The filtered rank of each hard answer, by its name."""
    hard = found.questions.hard
    if hard is None:
        return {}
    first, last = hard.offsets[row], hard.offsets[row + 1]
    ranks = 1.0 + found.above[first:last] + found.equal[first:last] / 2.0
    return {names.entity_name(int(entity)): rank for entity, rank in zip(hard[row], ranks.tolist(), strict=True)}
