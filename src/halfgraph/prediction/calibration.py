"""Calibration: from scores to confidences, such that a share p of the answers with confidence p is right.

The curves are fitted on held-out questions by `calibrate` (calibration_fitting.py).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError
from halfgraph.graph.files import write_atomically
from halfgraph.prediction.logistic import one_group
from halfgraph.prediction.modes import EMBEDDING, LINKS, current_name
from halfgraph.query.structures import NAMED, path, structure_name
from halfgraph.query.tree import Project, Query, depth, node_counts

FILE = "confidence.json"
FORMAT = 1
BINS = 60  # bins of equal size for the isotonic curve
LEAST, LEAST_EACH = 400, 20  # answers, and right or wrong ones; with fewer, Platt scaling instead of isotonic
GRID = 33  # stored points of a Platt curve
ONE_LINK = path(0, 0)
MAKE_AGAIN = "Make it again: halfgraph calibrate RUN"
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Share of right answers by score: ascending points, linearly interpolated."""

    scores: Sequence[float]
    rates: Sequence[float]
    answers: int
    way: str  # isotonic or platt

    def rate(self, scores: Values) -> Values:
        return np.interp(scores, self.scores, self.rates)  # constant beyond the first and last points


def fit_curve(scores: Values, right: NDArray[np.bool_]) -> Curve:
    """Fit a curve to scored answers, of which some are right: isotonic regression, or Platt scaling if they are few."""
    few = len(scores) < LEAST or min(right.sum(), (~right).sum()) < LEAST_EACH
    points, rates = _platt(scores, right) if few else _isotonic(scores, right)
    return Curve(points.round(6).tolist(), rates.round(6).tolist(), len(scores), "platt" if few else "isotonic")


def _isotonic(scores: Values, right: NDArray[np.bool_]) -> tuple[Values, Values]:
    """Isotonic regression on bins of equal size."""
    order = np.argsort(scores, kind="stable")
    bins = np.array_split(order, min(BINS, len(order)))
    # Half a right and half a wrong answer are added to each bin: few answers do not justify a rate of 0 or 1.
    means = np.array([scores[rows].mean() for rows in bins])
    counts = np.array([len(rows) + 1.0 for rows in bins])
    rates = np.array([(right[rows].sum() + 0.5) / (len(rows) + 1.0) for rows in bins])
    return means, pool_adjacent_violators(rates, counts)


def pool_adjacent_violators(values: Values, weights: Values) -> Values:
    """Return the ascending values nearest to the given ones by weighted least squares."""
    blocks: list[list[float]] = []  # value, weight, count
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            last, before = blocks.pop(), blocks.pop()
            total = last[1] + before[1]
            blocks.append([(last[0] * last[1] + before[0] * before[1]) / total, total, last[2] + before[2]])
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])


def _platt(scores: Values, right: NDArray[np.bool_]) -> tuple[Values, Values]:
    """Platt scaling: logistic regression on smoothed targets."""
    targets = np.where(right, (right.sum() + 1.0) / (right.sum() + 2.0), 1.0 / ((~right).sum() + 2.0))
    middle = scores.mean()  # centred, so that a slope of 0 leaves the mean rate
    slopes, bias = one_group((scores - middle)[:, None], targets, np.ones(len(scores)))
    slope = max(float(slopes[0]), 0.0)  # a higher score never has a lower confidence
    grid = np.linspace(scores.min(), scores.max(), GRID)
    return grid, 1 / (1 + np.exp(-((grid - middle) * slope + bias)))


@dataclass(frozen=True)
class Calibration:
    """The curves of a run, by mode and the structure's short name."""

    curves: Mapping[str, Mapping[str, Curve]]

    def confidence(self, mode: str, query: Query, scores: Values) -> Values | None:
        """Return the confidence of answers to a query by their scores; None if this mode was not calibrated."""
        curves = self.curves.get(mode)
        return curves[nearest_structure(query, tuple(curves))].rate(scores) if curves else None

    def link_confidence(self, mode: str, probability: float) -> float | None:
        """Return the confidence of a single missing link in a witness; None in embedding mode without calibration."""
        if mode == EMBEDDING:  # calibrated already, see `cosine_probability`
            return probability if mode in self.curves else None
        confidence = self.confidence(LINKS, ONE_LINK, np.array([probability]))
        return probability if confidence is None else float(confidence[0])

    def cosine_probability(self, cosines: Values) -> Values:
        """Return link probabilities by cosine: calibrated on one-link queries, else half of the cosine."""
        confidence = self.confidence(EMBEDDING, ONE_LINK, cosines)
        return np.clip(cosines, 0.0, 1.0) / 2 if confidence is None else confidence

    def save(self, run: Path) -> None:
        write_atomically(run / FILE, json.dumps({"format": FORMAT, **asdict(self)}))

    @classmethod
    def load(cls, run: Path) -> "Calibration":
        """Read the curves of a run folder; no curves if it has none."""
        file = run / FILE
        if not file.exists():
            return cls({})
        try:
            values: Any = json.loads(file.read_text(encoding="utf-8"))
            curves = {
                current_name(mode): {name: Curve(**curve) for name, curve in own.items()}
                for mode, own in values["curves"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FolderError(file, f"cannot be read: {error}", advice=MAKE_AGAIN) from error
        return cls(curves)


def nearest_structure(query: Query, known: Sequence[str]) -> str:
    """Return the short name of the query's structure if it is known, else of the most similar known structure."""
    structures = {structure.name: structure for structure in NAMED if structure.short in known}
    name = structure_name(query)
    if name not in structures:
        traits = _traits(query)
        name = min(structures, key=lambda name: int(np.abs(_traits(structures[name].query) - traits).sum()))
    return structures[name].short


def _traits(query: Query) -> NDArray[np.int64]:
    """Longest path, number of nodes of each class, and whether the last step is a projection."""
    return np.array([depth(query), *node_counts(query).values(), 2 * isinstance(query, Project)])
