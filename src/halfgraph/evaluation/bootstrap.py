"""Bootstrap confidence intervals: each measure on questions resampled with replacement."""

import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from halfgraph.evaluation.measures import Column, Key, Measures, Pairs

Replicates = NDArray[np.float64]
SAMPLES = 500  # bootstrap samples
BLOCK = 32  # samples at a time, which bounds memory
LEVEL = 0.95


def resample(measures: Measures, seed: int, samples: int = SAMPLES) -> dict[Key, Replicates]:
    """Compute each measure on bootstrap samples (samples,); all measures of a sample have the same questions.

    NaN where no question of a sample has a value.
    """
    if not measures or samples < 1:
        return {}
    count = len(next(iter(measures.values())).there)
    name = next(iter(measures))[1]
    generator = np.random.default_rng([seed, zlib.crc32(name.encode()), count])
    result = {key: np.empty(samples) for key in measures}
    ordered = {key: _Ordered(pairs) for key, pairs in measures.items() if isinstance(pairs, Pairs)}
    columns = {key: column for key, column in measures.items() if isinstance(column, Column)}
    values = np.stack([np.where(column.there, column.values, 0.0) for column in columns.values()] or [np.empty(count)])
    there = np.stack([column.there.astype(np.float64) for column in columns.values()] or [np.empty(count)])
    for first in range(0, samples, BLOCK):
        block = slice(first, min(first + BLOCK, samples))
        draws = generator.integers(0, count, (block.stop - first, count))
        weights = np.stack([np.bincount(draw, minlength=count) for draw in draws]).astype(np.float64)  # (block, n)
        with np.errstate(invalid="ignore"):
            means = (weights @ values.T) / (weights @ there.T)
        for row, key in enumerate(columns):
            result[key][block] = means[:, row]
        for key, pairs in ordered.items():
            result[key][block] = pairs.areas(weights)
    return result


class _Ordered:
    """Pairs sorted once, so that the AUC of a sample takes one pass."""

    def __init__(self, pairs: Pairs) -> None:
        self.rows = np.flatnonzero(pairs.there)
        positive, negative = pairs.positive[self.rows], pairs.negative[self.rows]
        self.order = np.argsort(negative)
        ascending = negative[self.order]
        self.below = np.searchsorted(ascending, positive, side="left")
        self.not_above = np.searchsorted(ascending, positive, side="right")

    def areas(self, weights: NDArray[np.float64]) -> Replicates:
        """Return the AUC for each row of weights (block, n)."""
        own = weights[:, self.rows]
        negatives = np.zeros((len(own), len(self.rows) + 1))
        np.cumsum(own[:, self.order], axis=1, out=negatives[:, 1:])
        wins = (own * (negatives[:, self.below] + negatives[:, self.not_above])).sum(axis=1) / 2.0
        with np.errstate(invalid="ignore"):
            areas: Replicates = wins / negatives[:, -1] ** 2
        return areas


def mean_of(replicates: Mapping[Key, Replicates], keys: list[Key]) -> Replicates:
    """Mean of several measures on each bootstrap sample."""
    return np.mean([replicates[key] for key in keys], axis=0)


def interval(replicates: Replicates, level: float = LEVEL) -> tuple[float, float]:
    """Return the confidence interval of a measure at a level."""
    kept = replicates[~np.isnan(replicates)]
    if not len(kept):
        return float("nan"), float("nan")
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
