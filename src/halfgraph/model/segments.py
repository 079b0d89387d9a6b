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

from halfgraph.model.kernels import add_products, multiply, multiply_turned
from halfgraph.model.threads import cuts, in_threads

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class _Groups:
    """Rows in the order of their groups: where each group begins and ends."""

    which: Ids
    firsts: Ids
    lasts: Ids

    @classmethod
    def of(cls, ordered: Tensor) -> "_Groups":
        """The groups of rows in order."""
        which, counts = torch.unique_consecutive(ordered, return_counts=True)
        lasts = counts.cumsum(0)
        return cls(which.cpu().numpy(), (lasts - counts).cpu().numpy(), lasts.cpu().numpy())

    def products(self, rows: Tensor, weight: Tensor, *, turned: bool = False) -> Tensor:
        """The rows of each group times its matrix, or times its matrix turned over."""
        products = rows.new_empty(len(rows), weight.shape[1 if turned else 2])
        if rows.device.type == "cpu":
            shares = [self._between(first, last) for first, last in cuts(len(rows), len(rows))]
            in_threads(multiply_turned if turned else multiply, rows, weight, products, shares=shares)
            return products
        for group, place in self._each():
            torch.mm(rows[place], weight[group].t() if turned else weight[group], out=products[place])
        return products

    def add_products(self, rows: Tensor, arrived: Tensor, sums: Tensor) -> None:
        """Nothing; the rows of each group turned over, times what arrived for them, are added to the group's sums."""
        if rows.device.type == "cpu":
            # A thread makes some rows of all sums: what belongs to one sum is not to be added by two.
            groups, bounds = (self.which, self.firsts, self.lasts), cuts(rows.shape[1], len(rows))
            in_threads(add_products, rows, sums, arrived, shares=[(*groups, *some) for some in bounds])
            return
        for group, place in self._each():
            sums[group].addmm_(rows[place].t(), arrived[place])

    def _between(self, first: int, last: int) -> tuple[Ids, Ids, Ids]:
        """The groups of some of the rows; those at the ends may be parts of a group."""
        some = slice(np.searchsorted(self.lasts, first, side="right"), np.searchsorted(self.firsts, last))
        return self.which[some], self.firsts[some].clip(min=first), self.lasts[some].clip(max=last)

    def _each(self) -> Iterator[tuple[int, slice]]:
        """Each group and the place of its rows."""
        for group, first, last in zip(self.which.tolist(), self.firsts.tolist(), self.lasts.tolist(), strict=True):
            yield group, slice(first, last)


class _Grouped(torch.autograd.Function):
    """`rows[i] @ weight[groups[i]]`, groups in any order."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
        order = torch.argsort(groups, stable=True)
        found, weight = _Groups.of(groups.index_select(0, order)), weight.contiguous()
        taken = rows.index_select(0, order)
        # Where each row is in that order: to take rows from there is faster than to put them into their places.
        back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        ctx.save_for_backward(taken, weight, order, back)
        ctx.groups = found
        return found.products(taken, weight).index_select(0, back)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        taken, weight, order, back = ctx.saved_tensors
        arrived = gradient.index_select(0, order)
        to_rows = to_weight = None
        if ctx.needs_input_grad[0]:
            to_rows = ctx.groups.products(arrived, weight, turned=True).index_select(0, back)
        if ctx.needs_input_grad[1]:
            # Several products with one weight in a step would each make and add a tensor as large as all matrices
            # together, so the sums go into the gradient that is there already.
            in_place = weight.is_leaf and weight.grad is not None
            sums = weight.grad if in_place else torch.zeros_like(weight)
            ctx.groups.add_products(taken, arrived, sums)
            to_weight = None if in_place else sums
        return to_rows, to_weight, None


def grouped_matmul(rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
    """`rows[i] @ weight[groups[i]]`: (n, d), (groups, d, e), (n,) -> (n, e)."""
    product: Tensor = _Grouped.apply(rows, weight, groups)
    return product
