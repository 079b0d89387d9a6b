"""Export of every question's scores as JSON lines, from which other programs can compute all measures."""

import json
from typing import IO, Any

import numpy as np

from halfgraph.evaluation.ranking import ScoredQuestions, Watch, sets_of
from halfgraph.prediction.base import Scores
from halfgraph.workload.jsonl import lines_of
from halfgraph.workload.nested import GraphNames


def exporter(file: IO[bytes], names: GraphNames, run: str, *, every: bool) -> Watch:
    """Return a function that writes a line for each scored question; `every`: with the scores of all entities."""

    def write(scored: ScoredQuestions, rows: slice, scores: Scores) -> None:
        numbers = np.arange(rows.start, rows.stop)
        lines = lines_of(scored.questions.take(numbers), names)
        for row, line, own in zip(numbers.tolist(), lines, scores, strict=True):
            own_ranks = _ranks(scored, row, names)
            record = json.loads(line) | {"run": run, "scores": _scores(scored, row), "ranks": own_ranks}
            if every:
                record["entities"] = {names.entity_name(entity): float(score) for entity, score in enumerate(own)}
            file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    return write


def _scores(scored: ScoredQuestions, row: int) -> dict[str, Any]:
    questions = scored.questions
    scores: dict[str, Any] = {"answer": float(scored.answer[row])}
    for name in ("negative", "hard_negative"):
        if getattr(questions, name)[row] >= 0:
            scores[name] = float(getattr(scored, name)[row])
    for name in ("negatives", "hard_negatives"):
        offsets = sets_of(questions, name).offsets
        if offsets[row] < offsets[row + 1]:
            scores[name] = getattr(scored, name)[offsets[row] : offsets[row + 1]].tolist()
    return scores


def _ranks(scored: ScoredQuestions, row: int, names: GraphNames) -> dict[str, float]:
    """Return the filtered rank of each hard answer, by its name."""
    hard = sets_of(scored.questions, "hard")
    own = slice(hard.offsets[row], hard.offsets[row + 1])
    ranks = 1.0 + scored.above[own] + scored.equal[own] / 2.0
    return {names.entity_name(int(entity)): rank for entity, rank in zip(hard[row], ranks.tolist(), strict=True)}
