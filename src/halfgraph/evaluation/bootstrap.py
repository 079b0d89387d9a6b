"""Bootstrap confidence intervals: each measure on questions resampled with replacement."""

import zlib
from collections.abc import Callable

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
    areas = {key: _areas_of(pairs) for key, pairs in measures.items() if isinstance(pairs, Pairs)}
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
        for key, areas_of in areas.items():
            result[key][block] = areas_of(weights)
    return result


def _areas_of(pairs: Pairs) -> Callable[[NDArray[np.float64]], Replicates]:
    """Sort the pairs once; return a function from weights (block, n) to the AUC of each sample in one pass."""
    rows = np.flatnonzero(pairs.there)
    positive, negative = pairs.positive[rows], pairs.negative[rows]
    order = np.argsort(negative)
    below, not_above = (np.searchsorted(negative[order], positive, side=side) for side in ("left", "right"))

    def areas(weights: NDArray[np.float64]) -> Replicates:
        own = weights[:, rows]
        negatives = np.zeros((len(own), len(rows) + 1))
        np.cumsum(own[:, order], axis=1, out=negatives[:, 1:])
        wins = (own * (negatives[:, below] + negatives[:, not_above])).sum(axis=1) / 2.0
        with np.errstate(invalid="ignore"):
            shares: Replicates = wins / negatives[:, -1] ** 2
        return shares

    return areas


def interval(replicates: Replicates) -> list[float] | None:
    """Return the confidence interval of a measure; None if it has no value on any sample."""
    kept = replicates[~np.isnan(replicates)]
    return np.quantile(kept, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist() if len(kept) else None
