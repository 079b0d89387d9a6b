"""Matrix products with another matrix for each row: rows are grouped by matrix, one product for each group.

Gathering the matrices (`einsum` over `weight[groups]`) moves d times as many numbers; this moves each matrix once.
Sharing the groups among threads of Python was tried: on two cores a step took twice as long as without.
"""

from collections.abc import Sequence
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
        sizes, chosen = counts.tolist(), which.tolist()
        # For one question all matrices would be taken apart to use two; for a batch indexing is slower (STACK.md).
        few = 4 * len(chosen) < len(weight)
        matrices = [weight.detach()[group] for group in chosen] if few else weight.detach().unbind(0)
        jobs = [
            (some, matrices[place if few else group], out)
            for place, (group, some, out) in enumerate(
                zip(chosen, taken.split(sizes), products.split(sizes), strict=True)
            )
        ]
        _multiply(jobs)
        ctx.save_for_backward(taken, weight, order)
        ctx.which, ctx.sizes = chosen, sizes
        return torch.empty_like(products).index_copy_(0, order, products)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        taken, weight, order = ctx.saved_tensors
        arrived = gradient.index_select(0, order)
        pieces = arrived.split(ctx.sizes)
        to_rows = to_weight = None
        if ctx.needs_input_grad[0]:
            found = torch.empty_like(taken)
            turned = weight.detach().transpose(1, 2).unbind(0)
            outs = found.split(ctx.sizes)
            _multiply([(some, turned[k], out) for k, some, out in zip(ctx.which, pieces, outs, strict=True)])
            to_rows = torch.empty_like(found).index_copy_(0, order, found)
        if ctx.needs_input_grad[1]:
            # Several products with one weight in a step would each make and add a tensor as large as all matrices
            # together, so the sums go into the gradient that is there already.
            in_place = weight.is_leaf and weight.grad is not None
            sums = weight.grad if in_place else torch.zeros_like(weight)
            matrices, sources = sums.unbind(0), taken.split(ctx.sizes)
            jobs = [(matrices[k], some, out) for k, some, out in zip(ctx.which, sources, pieces, strict=True)]
            _add_products(jobs)
            to_weight = None if in_place else sums
        return to_rows, to_weight, None


@torch.no_grad()
def _multiply(jobs: Sequence[tuple[Tensor, Tensor, Tensor]]) -> None:
    """Nothing; each product is written to its place."""
    for some, matrix, out in jobs:
        torch.mm(some, matrix, out=out)


@torch.no_grad()
def _add_products(jobs: Sequence[tuple[Tensor, Tensor, Tensor]]) -> None:
    """Nothing; each product is added to its matrix."""
    for matrix, some, arrived in jobs:
        matrix.addmm_(some.t(), arrived)


def grouped_matmul(rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
    """`rows[i] @ weight[groups[i]]`: (n, d), (groups, d, e), (n,) -> (n, e)."""
    product: Tensor = _Grouped.apply(rows, weight, groups)
    return product
