"""A logistic regression of a few numbers, with an offset for each group that is held near 0."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

STEADY = 2.0  # how firmly a group's offset is held at 0, in true examples


@dataclass(frozen=True)
class Examples:
    """What is known of some cases, whether they are true, what each counts, and the group of each."""

    features: NDArray[np.float32]  # (n, features)
    true: NDArray[np.float32]
    weights: NDArray[np.float32]
    groups: NDArray[np.int64]

    @classmethod
    def together(cls, some: "list[Examples]") -> "Examples":
        """All examples of several."""
        columns = ("features", "true", "weights", "groups")
        return cls(*(np.concatenate([getattr(one, name) for one in some]) for name in columns))


@dataclass(frozen=True)
class Fitted:
    """Log-odds: the weight of each feature, what all have, and what each group has beside it."""

    weights: NDArray[np.float64]
    bias: float
    offsets: NDArray[np.float64]


def logistic(examples: Examples, group_count: int) -> Fitted:
    """The weights under which the examples are likeliest."""
    features = torch.from_numpy(examples.features.astype(np.float64))
    spread = features.std(dim=0)
    spread[spread < 1e-6] = 1.0  # the same everywhere: left to the bias
    features /= spread
    true, groups = torch.from_numpy(examples.true).double(), torch.from_numpy(examples.groups)
    total = max(float((examples.true * examples.weights).sum()), 1e-12)
    counted = torch.from_numpy(examples.weights).double() / total
    firm = STEADY / max(float(examples.true.sum()), 1.0)
    weights = torch.zeros(features.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    offsets = torch.zeros(group_count, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights, bias, offsets], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimiser.zero_grad()
        log_odds = features @ weights + bias + offsets.index_select(0, groups)
        found = (counted * F.binary_cross_entropy_with_logits(log_odds, true, reduction="none")).sum()
        found = found + firm * (offsets.square().sum() + 0.01 * weights.square().sum())
        found.backward()
        return float(found.detach())

    optimiser.step(loss)
    return Fitted((weights.detach() / spread).numpy(), float(bias.detach()), offsets.detach().numpy())
