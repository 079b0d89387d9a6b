"""Measures over scores, in plain numpy, with ties in the open: a tie counts half."""

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import HalfgraphError

Floats = NDArray[np.floating]


class NotANumber(HalfgraphError):
    """A score is not a number: the model has diverged, and a figure made of it would mean nothing."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: a score is not a number, so the model has diverged. Train it again with a smaller learning rate."
        )


def require_finite(scores: Floats, what: str) -> None:
    """Nothing, or an error where a score is not a number."""
    if not np.isfinite(scores).all():
        raise NotANumber(what)


def auc(positive: Floats, negative: Floats) -> float:
    """The area under the ROC curve: how often a positive score is above a negative one, all pairs."""
    both = np.concatenate([positive, negative])
    ranks = tied_ranks(both)[: len(positive)]
    wins = ranks.sum() - len(positive) * (len(positive) + 1) / 2
    return float(wins / (len(positive) * len(negative)))


def tied_ranks(scores: Floats) -> NDArray[np.float64]:
    """The rank of each score from 1 upwards; equal scores share the mean of their ranks."""
    order = np.argsort(scores, kind="stable")
    values = scores[order]
    first = np.concatenate([[True], values[1:] != values[:-1]])
    group = np.cumsum(first) - 1
    ends = np.append(np.flatnonzero(first)[1:], len(scores))
    begins = np.flatnonzero(first)
    ranks = np.empty(len(scores), dtype=np.float64)
    ranks[order] = ((begins + ends + 1) / 2)[group]
    return ranks


def percentile(score: float, others: Floats) -> float:
    """Which share of the others a score is above; a tie counts half."""
    return float(((others < score).sum() + 0.5 * (others == score).sum()) / len(others))


def percentiles(scores: Floats, others: Floats, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same for many: which share of others[offsets[i]:offsets[i + 1]] each score is above; 0 if there are none."""
    sizes = np.diff(offsets)
    rows = np.repeat(np.arange(len(scores)), sizes)
    own = scores[rows]
    wins = np.bincount(rows, (others < own) + 0.5 * (others == own), len(scores))
    return wins / np.maximum(sizes, 1)
