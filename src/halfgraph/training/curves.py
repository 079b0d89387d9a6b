"""Learning curves as a picture, from the metrics of a run."""

import json
from pathlib import Path

from halfgraph.training.run_folder import METRICS

PICTURE = "curves.png"


def draw_curves(run: Path) -> bool:
    """Whether the picture of a run's learning curves was drawn: it needs matplotlib and two validations."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    rows = [json.loads(line) for line in (run / METRICS).read_text(encoding="utf-8").splitlines()]
    if len(rows) < 2 or "auc" not in rows[0]:
        return False
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = [row["step"] for row in rows]
    left.plot(steps, [row["loss"] for row in rows], "o-", color="#1f6f8b")
    left.set(title="Loss", xlabel="step", yscale="log")
    for name, colour in (("auc", "#1f6f8b"), ("auc_hard", "#c26d3f"), ("apr", "#6b8e23"), ("apr_hard", "#8b5a9f")):
        measured = [float("nan") if row[name] is None else row[name] for row in rows]
        right.plot(steps, measured, "o-", color=colour, label=name.replace("_", " "))
    right.set(title="Validation", xlabel="step")
    right.legend()
    figure.savefig(run / PICTURE, dpi=120)
    return True
