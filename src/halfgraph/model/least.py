"""The least of some vectors, number by number, with a gradient that passes over them once."""

from typing import Any

import torch
from torch import Tensor

from halfgraph.model._kernels import least_back, take_least
from halfgraph.model.threads import cuts, in_threads


class _Least(torch.autograd.Function):
    """`amin` over the parts, which share the gradient of a number that several have; that takes four times as long."""

    @staticmethod
    def forward(ctx: Any, parts: Tensor) -> Tensor:
        parts = parts.contiguous()
        found = parts.new_empty(parts.shape[0], parts.shape[2])
        in_threads(take_least, parts, found, shares=cuts(len(parts), len(parts)))
        ctx.save_for_backward(parts, found)
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        parts, found = ctx.saved_tensors
        to_parts = torch.empty_like(parts)
        shares = cuts(len(parts), len(parts))
        in_threads(least_back, gradient.contiguous(), parts, found, to_parts, shares=shares)
        return to_parts


def least(parts: Tensor) -> Tensor:
    """The least of each number over the parts: (n, parts, d) -> (n, d)."""
    if parts.device.type != "cpu":
        return parts.amin(dim=1)
    found: Tensor = _Least.apply(parts)
    return found
