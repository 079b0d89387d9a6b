"""Weighted logistic regression with a regularised offset for each group."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

OFFSET_PENALTY = 2.0  # of the groups' offsets, in true examples
Floats = NDArray[np.floating]


def logistic(
    features: Floats, true: Floats, weights: Floats, groups: NDArray[np.int64], group_count: int
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Fit examples by maximum likelihood (L-BFGS): return the weights of the features, the bias, and the offsets.

    features (n, features); true, weights, groups (n,).
    """
    columns = torch.from_numpy(features.astype(np.float64))
    spread = columns.std(dim=0)
    spread[spread < 1e-6] = 1.0  # constant: left to the bias
    columns /= spread
    targets, group_ids = torch.from_numpy(true).double(), torch.from_numpy(groups)
    shares = torch.from_numpy(weights).double() / max(float((true * weights).sum()), 1e-12)
    penalty = OFFSET_PENALTY / max(float(true.sum()), 1.0)
    slopes, bias, offsets = (
        torch.zeros(count, dtype=torch.float64, requires_grad=True) for count in (columns.shape[1], 1, group_count)
    )
    optimiser = torch.optim.LBFGS([slopes, bias, offsets], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimiser.zero_grad()
        log_odds = columns @ slopes + bias + offsets.index_select(0, group_ids)
        value = (shares * F.binary_cross_entropy_with_logits(log_odds, targets, reduction="none")).sum()
        value = value + penalty * (offsets.square().sum() + 0.01 * slopes.square().sum())
        value.backward()
        return float(value.detach())

    optimiser.step(loss)
    return (slopes.detach() / spread).numpy(), float(bias.detach()), offsets.detach().numpy()


def one_group(features: Floats, true: Floats, weights: Floats) -> tuple[NDArray[np.float64], float]:
    """Fit examples of one group: return the weights of the features and the bias."""
    slopes, bias, offsets = logistic(features, true, weights, np.zeros(len(true), np.int64), 1)
    return slopes, bias + float(offsets[0])
