"""Vectors at length one, and look-ups among them, with gradients that pass over a table once."""

from typing import Any

import torch
from torch import Tensor

from halfgraph.model._kernels import make_units, multiply_each, multiply_each_back, owe, settle
from halfgraph.model.threads import cuts, in_threads


class _Normalised(torch.autograd.Function):
    """x / |x| by rows, with a gradient in half the passes over memory that the composed one takes."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        unit, size = _units(rows)
        ctx.save_for_backward(unit, size)
        return unit

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        unit, size = ctx.saved_tensors
        return _sideways(gradient, unit, size)


class _NormalisedTable(torch.autograd.Function):
    """The same of a whole table. The gradients of look-ups are not passed on but summed up in `owed`, and used here.

    Each of them would else be as large as the table, most of it zeros.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, owed: Tensor) -> Tensor:
        unit, size = _units(table)
        ctx.set_materialize_grads(False)  # where there are look-ups only, nothing is passed on
        ctx.save_for_backward(table, unit, size)
        ctx.owed = owed
        return unit

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, None]:
        (table, unit, size), owed = ctx.saved_tensors, ctx.owed
        if gradient is not None:
            owed += gradient
        in_place = table.is_leaf and table.grad is not None
        found = table.grad if in_place else torch.zeros_like(table)
        if owed.device.type == "cpu":
            in_threads(settle, owed, unit, size, found, shares=cuts(len(owed), len(owed)))
        else:
            found += _sideways(owed, unit, size)
            owed.zero_()
        return None if in_place else found, None


class _LookedUp(torch.autograd.Function):
    """Rows of a normalised table."""

    @staticmethod
    def forward(ctx: Any, units: Tensor, ids: Tensor, owed: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.owed = owed
        return units.index_select(0, ids)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        (ids,) = ctx.saved_tensors
        if ids.device.type == "cpu":
            in_threads(owe, gradient.contiguous(), ids, ctx.owed, shares=[()])  # a row may be there twice: one thread
        else:
            ctx.owed.index_add_(0, ids, gradient)
        return None, None, None


class _Cosines(torch.autograd.Function):
    """The products of rows with others of their own, without a (n, k, d) of them in memory."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, others: Tensor) -> Tensor:
        ctx.save_for_backward(rows, others)
        products = rows.new_empty(others.shape[:2])
        in_threads(multiply_each, rows, others, products, shares=cuts(len(rows), len(rows)))
        return products

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        rows, others = ctx.saved_tensors
        found = torch.zeros_like(rows), torch.empty_like(others)
        in_threads(multiply_each_back, gradient.contiguous(), rows, others, *found, shares=cuts(len(rows), len(rows)))
        return found


def _units(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The rows at length one, and their lengths (n, 1)."""
    if rows.device.type != "cpu":
        size = torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_(min=1e-12)
        return rows / size, size
    unit, size = torch.empty_like(rows), rows.new_empty(len(rows), 1)
    in_threads(make_units, rows, unit, size, shares=cuts(len(rows), len(rows)))
    return unit, size


def _sideways(gradient: Tensor, unit: Tensor, size: Tensor) -> Tensor:
    """The gradient of rows from that of their units: what is along a row does not change its unit."""
    along = torch.einsum("nd,nd->n", gradient, unit).unsqueeze(-1)
    return torch.addcmul(gradient, unit, along, value=-1).div_(size)


def cosines(rows: Tensor, others: Tensor) -> Tensor:
    """The cosines of rows and others of their own, all of length one: (n, d), (n, k, d) -> (n, k)."""
    if rows.device.type != "cpu":
        return torch.linalg.vecdot(rows.unsqueeze(1), others)
    found: Tensor = _Cosines.apply(rows, others)
    return found


def normalised(rows: Tensor) -> Tensor:
    """The rows at length one: (n, d) -> (n, d)."""
    units: Tensor = _Normalised.apply(rows)
    return units


def normalised_table(table: Tensor, owed: Tensor) -> Tensor:
    """The rows of a table at length one, to be looked up; `owed` is as large as the table, and zero."""
    units: Tensor = _NormalisedTable.apply(table, owed)
    return units


def looked_up(units: Tensor, ids: Tensor, owed: Tensor) -> Tensor:
    """Some rows of a normalised table: (n,) -> (n, d)."""
    rows: Tensor = _LookedUp.apply(units, ids, owed)
    return rows
