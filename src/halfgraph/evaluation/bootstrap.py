"""How sure a figure is: the same measure on questions drawn again, with replacement, many times."""

import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from halfgraph.evaluation.measures import Column, Key, Measures, Pairs

Replicates = NDArray[np.float64]
AGAIN = 500  # times that the questions are drawn again
BLOCK = 32  # of them at once, so that memory does not grow with their number
LEVEL = 0.95


def replicates(measures: Measures, seed: int, again: int = AGAIN) -> dict[Key, Replicates]:
    """What each measure is on questions drawn again (again,); all measures of a draw are of the same questions.

    Not a number where a draw has no question with a value.
    """
    if not measures or again < 1:
        return {}
    count = len(next(iter(measures.values())).there)
    name = next(iter(measures))[1]
    generator = np.random.default_rng([seed, zlib.crc32(name.encode()), count])
    found = {key: np.empty(again) for key in measures}
    ordered = {key: _Ordered(pairs) for key, pairs in measures.items() if isinstance(pairs, Pairs)}
    columns = {key: column for key, column in measures.items() if isinstance(column, Column)}
    values = np.stack([np.where(column.there, column.values, 0.0) for column in columns.values()] or [np.empty(count)])
    there = np.stack([column.there.astype(np.float64) for column in columns.values()] or [np.empty(count)])
    for first in range(0, again, BLOCK):
        block = slice(first, min(first + BLOCK, again))
        draws = generator.integers(0, count, (block.stop - first, count))
        weights = np.stack([np.bincount(draw, minlength=count) for draw in draws]).astype(np.float64)  # (block, n)
        with np.errstate(invalid="ignore"):
            means = (weights @ values.T) / (weights @ there.T)
        for place, key in enumerate(columns):
            found[key][block] = means[:, place]
        for key, pairs in ordered.items():
            found[key][block] = pairs.areas(weights)
    return found


class _Ordered:
    """Pairs put in order once, so that the area under the ROC curve of a draw takes one pass."""

    def __init__(self, pairs: Pairs) -> None:
        self.rows = np.flatnonzero(pairs.there)
        positive, negative = pairs.positive[self.rows], pairs.negative[self.rows]
        self.order = np.argsort(negative)
        ascending = negative[self.order]
        self.below = np.searchsorted(ascending, positive, side="left")
        self.not_above = np.searchsorted(ascending, positive, side="right")

    def areas(self, weights: NDArray[np.float64]) -> Replicates:
        """The area for each row of weights (block, n): how often a positive is above a negative, a tie being half."""
        own = weights[:, self.rows]
        negatives = np.zeros((len(own), len(self.rows) + 1))
        np.cumsum(own[:, self.order], axis=1, out=negatives[:, 1:])
        wins = (own * (negatives[:, self.below] + negatives[:, self.not_above])).sum(axis=1) / 2.0
        with np.errstate(invalid="ignore"):
            areas: Replicates = wins / negatives[:, -1] ** 2
        return areas


def mean_of(found: Mapping[Key, Replicates], keys: list[Key]) -> Replicates:
    """What the mean of several measures is on questions drawn again."""
    return np.mean([found[key] for key in keys], axis=0)


def interval(some: Replicates, level: float = LEVEL) -> tuple[float, float]:
    """Between which values a measure lies in so large a share of the draws."""
    kept = some[~np.isnan(some)]
    if not len(kept):
        return float("nan"), float("nan")
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
