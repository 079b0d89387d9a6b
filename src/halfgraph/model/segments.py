"""Matrix products with another matrix for each row: rows are grouped by matrix, one product for each group.

Gathering the matrices (`einsum` over `weight[groups]`) moves d times as many numbers; this moves each matrix once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.model._kernels import add_products, multiply, multiply_turned
from halfgraph.model.threads import cuts, in_threads

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """The order of rows by their groups, and where in it each group begins and ends."""

    order: Tensor
    which: Ids
    firsts: Ids
    lasts: Ids

    @classmethod
    def of(cls, groups: Tensor) -> "Groups":
        """The groups of rows in any order."""
        order = torch.argsort(groups, stable=True)
        which, counts = torch.unique_consecutive(groups.index_select(0, order), return_counts=True)
        lasts = counts.cumsum(0)
        return cls(order, which.cpu().numpy(), (lasts - counts).cpu().numpy(), lasts.cpu().numpy())

    def repeated(self, count: int) -> "Groups":
        """The groups where there are so many rows in the place of each."""
        order = self.order.unsqueeze(1) * count + torch.arange(count, device=self.order.device)
        return Groups(order.view(-1), self.which, self.firsts * count, self.lasts * count)

    def products(self, rows: Tensor, weight: Tensor, *, turned: bool = False) -> Tensor:
        """The rows of each group times its matrix, or times its matrix turned over."""
        products = rows.new_empty(len(rows), weight.shape[1 if turned else 2])
        if rows.device.type == "cpu":
            shares = [self._between(first, last) for first, last in cuts(len(rows), len(rows))]
            in_threads(multiply_turned if turned else multiply, rows, weight, products, self.order, shares=shares)
            return products
        for group, part in self._each():
            place = self.order[part]
            products[place] = rows[place] @ (weight[group].t() if turned else weight[group])
        return products

    def add_products(self, rows: Tensor, arrived: Tensor, sums: Tensor) -> None:
        """Nothing; the rows of each group turned over, times what arrived for them, are added to the group's sums."""
        rows, arrived = (tensor.index_select(0, self.order) for tensor in (rows, arrived))
        if rows.device.type == "cpu":
            # A thread makes some rows of all sums: what belongs to one sum is not to be added by two.
            groups, bounds = (self.which, self.firsts, self.lasts), cuts(rows.shape[1], len(rows))
            in_threads(add_products, rows, sums, arrived, shares=[(*groups, *some) for some in bounds])
            return
        for group, part in self._each():
            sums[group].addmm_(rows[part].t(), arrived[part])

    def _between(self, first: int, last: int) -> tuple[Ids, Ids, Ids]:
        """The groups of some of the rows; those at the ends may be parts of a group."""
        if not first and last == len(self.order):
            return self.which, self.firsts, self.lasts
        some = slice(np.searchsorted(self.lasts, first, side="right"), np.searchsorted(self.firsts, last))
        return self.which[some], self.firsts[some].clip(min=first), self.lasts[some].clip(max=last)

    def _each(self) -> Iterator[tuple[int, slice]]:
        """Each group and the place of its rows."""
        for group, first, last in zip(self.which.tolist(), self.firsts.tolist(), self.lasts.tolist(), strict=True):
            yield group, slice(first, last)


class _Grouped(torch.autograd.Function):
    """The rows of each group times its matrix."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, groups: Groups) -> Tensor:
        rows, weight = rows.contiguous(), weight.contiguous()
        ctx.save_for_backward(rows, weight)
        ctx.groups = groups
        return groups.products(rows, weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        rows, weight = ctx.saved_tensors
        arrived = gradient.contiguous()
        to_rows = to_weight = None
        if ctx.needs_input_grad[0]:
            to_rows = ctx.groups.products(arrived, weight, turned=True)
        if ctx.needs_input_grad[1]:
            # Several products with one weight in a step would each make and add a tensor as large as all matrices
            # together, so the sums go into the gradient that is there already.
            in_place = weight.is_leaf and weight.grad is not None
            sums = weight.grad if in_place else torch.zeros_like(weight)
            ctx.groups.add_products(rows, arrived, sums)
            to_weight = None if in_place else sums
        return to_rows, to_weight, None


def grouped_matmul(rows: Tensor, weight: Tensor, groups: Groups) -> Tensor:
    """Each row times the matrix of its group: (n, d), (groups, d, e), groups of n rows -> (n, e)."""
    # The compiled loops take this on trust, and would write where they must not.
    assert rows.dtype == weight.dtype
    assert rows.shape == (len(groups.order), weight.shape[1])
    assert (groups.which < len(weight)).all()
    product: Tensor = _Grouped.apply(rows, weight, groups)
    return product
