"""Weighted logistic regression with a regularised offset for each group."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

OFFSET_PENALTY = 2.0  # of the groups' offsets, in true examples
Floats = NDArray[np.floating]


def logistic(
    features: Floats,
    true: Floats,
    weights: Floats,
    groups: NDArray[np.int64],
    group_count: int,
    labelled: float = 1.0,
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Fit examples by maximum likelihood (L-BFGS): return the weights of the features, the bias, and the offsets.

    features (n, features); true, weights, groups (n,). Only a share `labelled` of the true examples is marked as such.
    """
    columns = torch.from_numpy(features.astype(np.float64))
    spread = columns.std(dim=0)
    spread[spread < 1e-6] = 1.0  # constant: left to the bias
    columns /= spread
    targets, group_ids = torch.from_numpy(true).double(), torch.from_numpy(groups)
    shares = torch.from_numpy(weights).double() / max(float((true * weights).sum()), 1e-12)
    log_rest = math.log1p(-labelled) if labelled < 1 else 0.0
    penalty = OFFSET_PENALTY / max(float(true.sum()), 1.0)
    slopes, bias, offsets = (
        torch.zeros(count, dtype=torch.float64, requires_grad=True) for count in (columns.shape[1], 1, group_count)
    )
    optimiser = torch.optim.LBFGS([slopes, bias, offsets], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimiser.zero_grad()
        log_odds = columns @ slopes + bias + offsets.index_select(0, group_ids)
        # -log(c p) if marked as true, else -log(1 - c p), with p = sigmoid(log_odds) and c the labelled share
        unlabelled = F.softplus(log_odds) - F.softplus(log_odds + log_rest) if labelled < 1 else F.softplus(log_odds)
        value = (shares * torch.where(targets > 0, F.softplus(-log_odds), unlabelled)).sum()
        value = value + penalty * (offsets.square().sum() + 0.01 * slopes.square().sum())
        value.backward()
        return float(value.detach())

    optimiser.step(loss)
    return (slopes.detach() / spread).numpy(), float(bias.detach()), offsets.detach().numpy()
