"""Reliability of confidences on test questions: bins and the expected calibration error."""

from collections.abc import Iterable, Mapping
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


def reliability_bins(confidences: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, list[Any]]:
    """Mean confidence, share of right answers and number of answers in each tenth of the confidence scale.

    Empty bins are left out.
    """
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


def measure_reliability(
    run: Path, mode: str, predictors: Predictors, sets: Iterable[Questions], graph: Graph
) -> dict[str, Any]:
    """Return calibration errors and bins by structure under the key "calibration"; {} if the mode is not calibrated."""
    calibration = Calibration.load(run)
    if mode not in calibration.curves or not graph.has_split:
        return {}
    predictor, most = predictors.predictor(mode, likely=True), MOST if mode == EMBEDDING else MOST_BY_LINKS
    bins = {}
    for questions in sets:
        sample = questions.take(np.arange(min(len(questions), most)))
        scores, right = judge_answers(predictor, predictors.encoder, sample, graph)
        confidences = calibration.confidence(mode, questions.structure.query, scores)
        if confidences is not None and len(confidences):
            bins[questions.structure.short] = reliability_bins(confidences, right)
    errors = {name: round(calibration_error(own), 4) for name, own in bins.items()}
    return {"calibration": {"ece": errors, "bins": bins}}
