"""Reliability of confidences on test questions: bins and the expected calibration error."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.folder import Graph
from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.calibration_fitting import judge_answers
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.prediction.predictors import Predictors
from halfgraph.workload.sampling import Questions

BINS = 10
MOST, MOST_BY_LINKS = 2_000, 1_000  # questions of each structure; the modes that use links take longer


@dataclass(frozen=True)
class Reliability:
    """Mean confidence, share of right answers and number of answers in each tenth of the confidence scale."""

    confidence: Sequence[float]
    right: Sequence[float]
    answers: Sequence[int]

    @classmethod
    def of(cls, confidences: NDArray[np.float64], right: NDArray[np.bool_]) -> "Reliability":
        """Compute the bins of judged answers; empty bins are left out."""
        bins = np.minimum((confidences * BINS).astype(int), BINS - 1)
        used = np.unique(bins)
        return cls(
            [round(float(confidences[bins == number].mean()), 4) for number in used],
            [round(float(right[bins == number].mean()), 4) for number in used],
            [int((bins == number).sum()) for number in used],
        )

    def error(self) -> float:
        """Expected calibration error: the mean gap between confidence and share of right answers."""
        gaps = np.abs(np.array(self.confidence) - np.array(self.right))
        return float((gaps * self.answers).sum() / max(sum(self.answers), 1))


def measure_reliability(
    run: Path, mode: str, predictors: Predictors, sets: Iterable[Questions], graph: Graph
) -> dict[str, Any]:
    """Return calibration errors and bins by structure under the key "calibration"; {} if the mode is not calibrated."""
    calibration = Calibration.load(run)
    if mode not in calibration.curves or not graph.has_split:
        return {}
    predictor, most = predictors.predictor(mode, likely=True), MOST if mode == EMBEDDING else MOST_BY_LINKS
    reliabilities: dict[str, Reliability] = {}
    for questions in sets:
        sample = questions.take(np.arange(min(len(questions), most)))
        scores, right = judge_answers(predictor, predictors.encoder, sample, graph)
        confidences = calibration.confidence(mode, questions.structure.query, scores)
        if confidences is not None and len(confidences):
            reliabilities[questions.structure.short] = Reliability.of(confidences, right)
    errors = {name: round(own.error(), 4) for name, own in reliabilities.items()}
    bins = {name: {key: list(value) for key, value in vars(own).items()} for name, own in reliabilities.items()}
    return {"calibration": {"ece": errors, "bins": bins}}
