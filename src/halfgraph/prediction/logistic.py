"""Weighted logistic regression with a regularised offset for each group."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

OFFSET_PENALTY = 2.0  # of the groups' offsets, in true examples


@dataclass(frozen=True)
class Examples:
    """Training examples: features (n, features), labels, weights and groups (n,)."""

    features: NDArray[np.floating]
    true: NDArray[np.floating]
    weights: NDArray[np.floating]
    groups: NDArray[np.int64]

    @classmethod
    def concatenate(cls, parts: "list[Examples]") -> "Examples":
        """Concatenate several sets of examples."""
        columns = ("features", "true", "weights", "groups")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


@dataclass(frozen=True)
class Fitted:
    """Fitted log-odds: a weight for each feature, the bias, and an offset for each group."""

    weights: NDArray[np.float64]
    bias: float
    offsets: NDArray[np.float64]


def logistic(examples: Examples, group_count: int) -> Fitted:
    """Fit the weights by maximum likelihood (L-BFGS)."""
    features = torch.from_numpy(examples.features.astype(np.float64))
    spread = features.std(dim=0)
    spread[spread < 1e-6] = 1.0  # constant: left to the bias
    features /= spread
    true, groups = torch.from_numpy(examples.true).double(), torch.from_numpy(examples.groups)
    total = max(float((examples.true * examples.weights).sum()), 1e-12)
    shares = torch.from_numpy(examples.weights).double() / total
    penalty = OFFSET_PENALTY / max(float(examples.true.sum()), 1.0)
    weights = torch.zeros(features.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    offsets = torch.zeros(group_count, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights, bias, offsets], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimiser.zero_grad()
        log_odds = features @ weights + bias + offsets.index_select(0, groups)
        value = (shares * F.binary_cross_entropy_with_logits(log_odds, true, reduction="none")).sum()
        value = value + penalty * (offsets.square().sum() + 0.01 * weights.square().sum())
        value.backward()
        return float(value.detach())

    optimiser.step(loss)
    return Fitted((weights.detach() / spread).numpy(), float(bias.detach()), offsets.detach().numpy())
