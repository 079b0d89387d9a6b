"""Comparison of several predictors on the same questions: intervals, and a paired test of each difference to the first.

The bootstrap samples of all predictors have the same questions, so the difference of two measures on a sample is that
of a pair. The p-value is two-sided: how often the difference has the other sign, or is 0, on resampled questions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from halfgraph.evaluation.bootstrap import Replicates, interval
from halfgraph.evaluation.measures import Key
from halfgraph.evaluation.ranking import HITS
from halfgraph.evaluation.report import Table
from halfgraph.evaluation.results import Measurement, arrange

SAMPLES = 2_000  # bootstrap samples: the least p-value is 2 / (1 + samples)
SIGNIFICANT = 0.05
# Means over query types or structures, by their place in the figures.
SUMMARY: Mapping[str, tuple[str, ...]] = {
    "AUC": ("macro", "auc", "all"),
    "APR": ("macro", "apr", "all"),
    "MRR": ("macro", "mrr"),
    **{f"Hits@{most}": ("macro", "hits", str(most)) for most in HITS},
}


@dataclass(frozen=True)
class ComparedFigure:
    """A measure of a predictor with its interval, and its difference to that of the first predictor."""

    value: float
    interval: Sequence[float] | None
    difference: float | None = None
    difference_interval: Sequence[float] | None = None
    p: float | None = None


def p_value(differences: Replicates) -> float | None:
    """Return the two-sided p-value that a difference is 0, from its values on bootstrap samples."""
    kept = differences[~np.isnan(differences)]
    if not len(kept):
        return None
    fewest = min(int((kept <= 0).sum()), int((kept >= 0).sum()))
    return min(1.0, 2 * (fewest + 1) / (len(kept) + 1))


def compare(measured: Mapping[str, Measurement]) -> dict[str, dict[str, Any]]:
    """Arrange the figures of each predictor as `evaluate` does, each a ComparedFigure; the first is the reference."""
    reference = next(iter(measured.values()))
    return {name: arrange(own.values, partial(_compared, own, reference)) for name, own in measured.items()}


def _compared(own: Measurement, reference: Measurement, keys: Sequence[Key]) -> ComparedFigure:
    value, replicates = _mean(own, keys)
    if own is reference or not all(key in reference.values for key in keys):
        return ComparedFigure(value, interval(replicates))
    first, first_replicates = _mean(reference, keys)
    differences = replicates - first_replicates
    return ComparedFigure(value, interval(replicates), value - first, interval(differences), p_value(differences))


def _mean(own: Measurement, keys: Sequence[Key]) -> tuple[float, Replicates]:
    value = float(np.mean([own.values[key] for key in keys]))
    replicates: Replicates = np.mean([own.replicates[key] for key in keys], axis=0)
    return value, replicates


def comparison_table(compared: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return one table: for each measure a row for each predictor."""
    rows = []
    for measure, path in SUMMARY.items():
        for name, figures in compared.items():
            figure: Any = figures
            for key in path:
                figure = figure[key]
            if figure is not None:
                rows.append([measure, name, *_cells(figure)])
    columns = ["", "run", "value", "95 %", "difference", "95 %", "p"]
    return Table("Means over query types and structures; differences to the first run", columns, rows, digits=3)


def _cells(figure: ComparedFigure) -> list[str]:
    ends = [_ends(figure.interval), _ends(figure.difference_interval, sign="+")]
    difference = "" if figure.difference is None else f"{figure.difference:+.3f}"
    p = "" if figure.p is None else f"{figure.p:.3f}" + "*" * (figure.p < SIGNIFICANT)
    return [f"{figure.value:.3f}", ends[0], difference, ends[1], p]


def _ends(ends: Sequence[float] | None, sign: str = "") -> str:
    return "" if ends is None else f"{ends[0]:{sign}.3f}..{ends[1]:{sign}.3f}"
