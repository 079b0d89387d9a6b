"""Metrics over scores in plain numpy; a tie counts half."""

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import HalfgraphError

Floats = NDArray[np.floating]


class NotANumber(HalfgraphError):
    """Raised for scores that are not numbers, as those of a model that has diverged."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: a score is not a number, so the model has diverged. Train it again with a smaller learning rate."
        )


def require_finite(scores: Floats, what: str) -> None:
    """Raise NotANumber if a score is not a number."""
    if not np.isfinite(scores).all():
        raise NotANumber(what)


def auc(positive: Floats, negative: Floats) -> float:
    """Area under the ROC curve: the share of pairs in which the positive score is higher."""
    ascending = np.sort(negative)
    below, not_above = (np.searchsorted(ascending, positive, side=side) for side in ("left", "right"))
    return float((below + not_above).sum() / 2 / (len(positive) * len(negative)))


def percentiles(scores: Floats, others: Floats, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of others[offsets[i]:offsets[i + 1]] that each score is above; 0 if there are none."""
    sizes = np.diff(offsets)
    rows = np.repeat(np.arange(len(scores)), sizes)
    own = scores[rows]
    wins = np.bincount(rows, (others < own) + 0.5 * (others == own), len(scores))
    return wins / np.maximum(sizes, 1)
