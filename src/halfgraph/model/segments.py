"""Matrix products with another matrix for each row: rows are grouped by matrix, one product for each group.

Gathering the matrices (`einsum` over `weight[groups]`) moves d times as many numbers; this moves each matrix once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.model.kernels import add_products, multiply, multiply_turned

Ids = NDArray[np.int64]
SMALL = 48  # rows of a group up to which compiled loops are faster than a library's product
SHARED = 256  # rows of small groups from which threads share them


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

    def __len__(self) -> int:
        return len(self.which)

    def some(self, chosen: NDArray[np.bool_] | slice) -> "_Groups":
        """Some of the groups."""
        return _Groups(self.which[chosen], self.firsts[chosen], self.lasts[chosen])

    def shares(self, count: int) -> Iterator["_Groups"]:
        """The groups in so many shares of about as many rows each."""
        rows = np.cumsum(self.lasts - self.firsts)
        cuts = np.searchsorted(rows, rows[-1] * np.arange(1, count) / count).tolist()
        for first, last in zip([0, *cuts], [*cuts, len(self)], strict=True):
            yield self.some(slice(first, last))

    def each(self) -> Iterator[tuple[int, slice]]:
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
        products = taken.new_empty(len(taken), weight.shape[2])
        for group, place in _by_loops(multiply, found, taken, weight, products).each():
            torch.mm(taken[place], weight[group], out=products[place])
        ctx.save_for_backward(taken, weight, order)
        ctx.groups = found
        return torch.empty_like(products).index_copy_(0, order, products)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        taken, weight, order = ctx.saved_tensors
        arrived = gradient.index_select(0, order)
        to_rows = to_weight = None
        if ctx.needs_input_grad[0]:
            found = torch.empty_like(taken)
            for group, place in _by_loops(multiply_turned, ctx.groups, arrived, weight, found).each():
                torch.mm(arrived[place], weight[group].t(), out=found[place])
            to_rows = torch.empty_like(found).index_copy_(0, order, found)
        if ctx.needs_input_grad[1]:
            # Several products with one weight in a step would each make and add a tensor as large as all matrices
            # together, so the sums go into the gradient that is there already.
            in_place = weight.is_leaf and weight.grad is not None
            sums = weight.grad if in_place else torch.zeros_like(weight)
            for group, place in _by_loops(add_products, ctx.groups, taken, sums, arrived).each():
                sums[group].addmm_(taken[place].t(), arrived[place])
            to_weight = None if in_place else sums
        return to_rows, to_weight, None


def _by_loops(kernel: Callable[..., None], groups: _Groups, *tensors: Tensor) -> _Groups:
    """The groups that are left to the library, after compiled loops have done those of a few rows, in all threads."""
    if any(tensor.device.type != "cpu" for tensor in tensors):
        return groups
    small = groups.lasts - groups.firsts <= SMALL
    arrays = [tensor.detach().numpy() for tensor in tensors]
    few = groups.some(small)
    threads = torch.get_num_threads()
    if threads == 1 or (few.lasts - few.firsts).sum() < SHARED:
        kernel(*arrays, few.which, few.firsts, few.lasts)
    else:
        own, *others = few.shares(threads)
        waiting = [_pool(threads).submit(kernel, *arrays, one.which, one.firsts, one.lasts) for one in others]
        kernel(*arrays, own.which, own.firsts, own.lasts)
        for one in waiting:
            one.result()
    return groups.some(~small)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """The threads beside the one that asks."""
    return ThreadPoolExecutor(threads - 1, thread_name_prefix="products")


def grouped_matmul(rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
    """`rows[i] @ weight[groups[i]]`: (n, d), (groups, d, e), (n,) -> (n, e)."""
    product: Tensor = _Grouped.apply(rows, weight, groups)
    return product
