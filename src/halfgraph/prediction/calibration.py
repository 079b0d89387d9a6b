"""From scores to confidences: of answers given confidence p about p are right, as measured on held-out questions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError
from halfgraph.query.structures import NAMED, Structure, structure_name
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, children, nodes
from halfgraph.training.run_folder import write_atomically

FILE = "confidence.json"
FORMAT = 1
BINS = 60  # of as many answers each, that the isotonic curve is made of
LEAST = 400  # answers, and RARE right and wrong ones, below which a curve of two parameters is fitted instead
RARE = 20
GRID = 33  # points of such a curve that are kept
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """How many answers of a score are right: points with straight lines between them, ascending."""

    scores: Sequence[float]
    rates: Sequence[float]
    answers: int
    way: str  # isotonic, platt

    def rate(self, scores: Values) -> Values:
        """The confidence of some scores; beyond the points it is that of the nearest."""
        return np.interp(scores, self.scores, self.rates)


def fit(scores: Values, right: NDArray[np.bool_]) -> Curve:
    """The curve of answers with these scores, some of which are right: isotonic, or Platt's where there are few."""
    few = len(scores) < LEAST or min(right.sum(), (~right).sum()) < RARE
    found, rates = _platt(scores, right) if few else _isotonic(scores, right)
    return Curve(_rounded(found), _rounded(rates), len(scores), "platt" if few else "isotonic")


def _rounded(values: Values) -> list[float]:
    return [round(float(value), 6) for value in values]


def _isotonic(scores: Values, right: NDArray[np.bool_]) -> tuple[Values, Values]:
    """Bins of as many answers each, merged until their rates ascend (pool adjacent violators)."""
    order = np.argsort(scores, kind="stable")
    bins = np.array_split(order, min(BINS, len(order)))
    # Half an answer of either sort in each bin: a rate of 0 or 1 would claim more than so many answers can say.
    means = np.array([scores[some].mean() for some in bins])
    counts = np.array([len(some) + 1.0 for some in bins])
    rates = np.array([(right[some].sum() + 0.5) / (len(some) + 1.0) for some in bins])
    return means, pooled(rates, counts)


def pooled(values: Values, weights: Values) -> Values:
    """The ascending values nearest to some by weighted squares: pool adjacent violators."""
    blocks: list[list[float]] = []  # value, weight, how many
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            last, before = blocks.pop(), blocks.pop()
            total = last[1] + before[1]
            blocks.append([(last[0] * last[1] + before[0] * before[1]) / total, total, last[2] + before[2]])
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])


def _platt(scores: Values, right: NDArray[np.bool_]) -> tuple[Values, Values]:
    """A logistic curve of two parameters by Newton's method, with Platt's targets, which keep it from certainty."""
    spread, middle = scores.std() or 1.0, scores.mean()
    x = (scores - middle) / spread
    goal = np.where(right, (right.sum() + 1.0) / (right.sum() + 2.0), 1.0 / ((~right).sum() + 2.0))
    rate = (right.sum() + 1.0) / (len(right) + 2.0)
    weights = np.array([0.0, np.log(rate / (1 - rate))])
    design = np.stack([x, np.ones_like(x)], axis=1)
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (p - goal) + 1e-3 * np.array([weights[0], 0.0])
        bend = (design * (p * (1 - p))[:, None]).T @ design + 1e-3 * np.eye(2)
        step = np.linalg.solve(bend, slope)
        weights -= np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-8:
            break
    weights[0] = max(weights[0], 0.0)  # a higher score is never less sure
    grid = np.linspace(x.min(), x.max(), GRID) if len(x) else np.zeros(1)
    return grid * spread + middle, 1 / (1 + np.exp(-(grid * weights[0] + weights[1])))


@dataclass(frozen=True)
class Calibration:
    """The curves of a run: for each way of predicting, and each structure by its short name."""

    curves: Mapping[str, Mapping[str, Curve]]

    def confidence(self, mode: str, query: Query, scores: Values) -> Values | None:
        """The confidence of answers to a query by their scores; None where nothing was measured for this mode."""
        curves = self.curves.get(mode)
        if not curves:
            return None
        return curves[nearest_structure(query, tuple(curves))].rate(scores)

    def save(self, run: Path) -> None:
        """Nothing; the curves are kept in the run's folder."""
        curves = {mode: {name: asdict(one) for name, one in some.items()} for mode, some in self.curves.items()}
        write_atomically(run / FILE, json.dumps({"format": FORMAT, "curves": curves}))

    @classmethod
    def load(cls, run: Path) -> "Calibration":
        """The curves that a run's folder has; none where it has none."""
        path = run / FILE
        if not path.exists():
            return cls({})
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
            curves = {
                mode: {name: Curve(**one) for name, one in some.items()} for mode, some in found["curves"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FolderError(
                path, f"cannot be read: {error}", advice="Make it again: halfgraph calibrate RUN"
            ) from error
        return cls(curves)


def nearest_structure(query: Query, known: Sequence[str]) -> str:
    """The short name of the known structure that a query is of, or else is most like."""
    shapes = [structure for structure in NAMED if structure.short in known]
    own = next((structure.short for structure in shapes if structure.name == structure_name(query)), None)
    return own or min(shapes, key=lambda structure: _distance(query, structure)).short


def _distance(query: Query, structure: Structure) -> int:
    """How much a query differs from a structure in its edges, its longest path, and where paths meet."""
    return sum(abs(one - other) for one, other in zip(_traits(query), _traits(structure.query), strict=True))


def _traits(query: Query) -> tuple[int, ...]:
    """How many edges a query has, how many in a row, and how many intersections, unions and negations."""
    order = nodes(query)
    length: dict[int, int] = {}
    for node in order:
        below = max((length[id(child)] for child in children(node)), default=0)
        length[id(node)] = below + isinstance(node, Project)
    counts = [sum(isinstance(node, what) for node in order) for what in (Project, Anchor, Intersect, Union, Negate)]
    return length[id(query)], *counts, int(isinstance(query, Project)) * 2


@dataclass(frozen=True)
class Reliability:
    """How well confidences hold: for each tenth of the scale the mean confidence, the share that is right, a count."""

    confidence: Sequence[float]
    right: Sequence[float]
    answers: Sequence[int]

    @classmethod
    def of(cls, confidences: Values, right: NDArray[np.bool_]) -> "Reliability":
        """That of some answers; tenths without answers are left out."""
        place = np.minimum((confidences * 10).astype(int), 9)
        there = [number for number in range(10) if (place == number).any()]
        return cls(
            [round(float(confidences[place == number].mean()), 4) for number in there],
            [round(float(right[place == number].mean()), 4) for number in there],
            [int((place == number).sum()) for number in there],
        )

    def error(self) -> float:
        """The expected calibration error: the mean gap between confidence and what is right, by answers."""
        gaps = np.abs(np.array(self.confidence) - np.array(self.right))
        return float((gaps * self.answers).sum() / max(sum(self.answers), 1))
