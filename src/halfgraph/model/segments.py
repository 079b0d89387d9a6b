"""Matrix products with another matrix for each row: rows are grouped by matrix, one product for each group.

Gathering the matrices (`einsum` over `weight[groups]`) moves d times as many numbers; this moves each matrix once.
"""

from typing import Any

import torch
from torch import Tensor


class _Grouped(torch.autograd.Function):
    """`rows[i] @ weight[groups[i]]`, groups in any order."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
        order = torch.argsort(groups, stable=True)
        which, counts = torch.unique_consecutive(groups.index_select(0, order), return_counts=True)
        taken = rows.index_select(0, order)
        products = taken.new_empty(len(taken), weight.shape[2])
        sizes, matrices = counts.tolist(), weight.unbind(0)
        for group, some, out in zip(which.tolist(), taken.split(sizes), products.split(sizes), strict=True):
            torch.mm(some, matrices[group], out=out)
        ctx.save_for_backward(taken, weight, order)
        ctx.which, ctx.sizes = which.tolist(), sizes
        return torch.empty_like(products).index_copy_(0, order, products)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        taken, weight, order = ctx.saved_tensors
        arrived = gradient.index_select(0, order)
        pieces = list(zip(ctx.which, taken.split(ctx.sizes), arrived.split(ctx.sizes), strict=True))
        to_rows = to_weight = None
        if ctx.needs_input_grad[0]:
            found = torch.empty_like(taken)
            matrices = weight.unbind(0)
            for (group, _, some), out in zip(pieces, found.split(ctx.sizes), strict=True):
                torch.mm(some, matrices[group].t(), out=out)
            to_rows = torch.empty_like(found).index_copy_(0, order, found)
        if ctx.needs_input_grad[1]:
            to_weight = _add_to_weight(weight, pieces)
        return to_rows, to_weight, None


def _add_to_weight(weight: Tensor, pieces: list[tuple[int, Tensor, Tensor]]) -> Tensor | None:
    """The gradient of the weight, or None after it was added to `weight.grad` in place.

    Several products with one weight in a step would each make and add a tensor as large as all matrices together.
    """
    in_place = weight.is_leaf and weight.grad is not None and not torch.is_grad_enabled()
    sums = weight.grad if in_place and weight.grad is not None else torch.zeros_like(weight)
    matrices = sums.unbind(0)
    for group, some, arrived in pieces:
        matrices[group].addmm_(some.t(), arrived)
    return None if in_place else sums


def grouped_matmul(rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
    """`rows[i] @ weight[groups[i]]`: (n, d), (groups, d, e), (n,) -> (n, e)."""
    product: Tensor = _Grouped.apply(rows, weight, groups)
    return product
