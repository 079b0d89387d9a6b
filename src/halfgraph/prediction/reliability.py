"""How well the confidences of a run hold on test questions, as figures of an evaluation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halfgraph.graph.folder import Graph
from halfgraph.prediction.calibrating import reliability
from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.predictors import Modes
from halfgraph.workload.sampling import Questions

MOST = {"vector": 2_000, "scored": 1_000, "both": 1_000}  # questions of each structure; by edges they take longer


def measured(run: Path, mode: str, modes: Modes, sets: Sequence[Questions], graph: Graph) -> dict[str, Any]:
    """The calibration errors and bins under the key "calibration"; nothing where the run has no confidences."""
    calibration = Calibration.load(run)
    if mode not in calibration.curves or not graph.has_split:
        return {}
    some = [one.take(np.arange(min(len(one), MOST[mode]))) for one in sets]
    found = reliability(calibration, mode, modes.answerer(mode, likely=True), modes.encoder, some, graph)
    bins = {name: {key: row[key] for key in ("confidence", "right", "answers")} for name, row in found.items()}
    return {"calibration": {"ece": {name: row["ece"] for name, row in found.items()}, "bins": bins}}
