"""Entity vectors: one row for each entity, kind by kind, normalised at each look-up."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from halfgraph.model.kernels import settle

SPARSE_ABOVE = 100_000  # entities: from here on a step touches few of the rows, and only those are updated


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
        along = torch.einsum("nd,nd->n", gradient, unit).unsqueeze(-1)
        return torch.addcmul(gradient, unit, along, value=-1).div_(size)


class _NormalisedTable(torch.autograd.Function):
    """The same of a whole table. The gradients of look-ups are not passed on but summed up in `owed`, and used here.

    Each of them would else be as large as the table, most of it zeros.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, owed: Tensor) -> Tensor:
        unit, size = _units(table)
        ctx.set_materialize_grads(False)  # where there are look-ups only, nothing is passed on
        ctx.save_for_backward(unit, size)
        ctx.table, ctx.owed = table, owed
        return unit

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, None]:
        unit, size = ctx.saved_tensors
        table, owed = ctx.table, ctx.owed
        if gradient is not None:
            owed += gradient
        in_place = table.is_leaf and table.grad is not None
        found = table.grad if in_place else torch.zeros_like(table)
        if owed.device.type == "cpu":
            settle(*(tensor.detach().numpy() for tensor in (owed, unit, size, found)))
        else:
            along = torch.einsum("nd,nd->n", owed, unit).unsqueeze(-1)
            found += torch.addcmul(owed, unit, along, value=-1).div_(size)
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
        ctx.owed.scatter_add_(0, ids.unsqueeze(1).expand_as(gradient), gradient)
        return None, None, None


def _units(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The rows at length one, and their lengths (n, 1)."""
    size = torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_(min=1e-12)
    return rows / size, size


def normalised(rows: Tensor) -> Tensor:
    """The rows at length one: (n, d) -> (n, d)."""
    units: Tensor = _Normalised.apply(rows)
    return units


class Entities(nn.Module):
    """The type-specific look-up e = Z x / |Z x| (eq. 3); entities are numbered kind by kind, so Z is one table."""

    def __init__(self, entity_count: int, dim: int, generator: torch.Generator) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(entity_count, dim, generator=generator) / dim)
        self.sparse = entity_count > SPARSE_ABOVE
        self._all: Tensor | None = None
        self._owed = torch.empty(0)

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors of some entities: (n,) -> (n, d)."""
        if self._all is not None:
            found: Tensor = _LookedUp.apply(self._all, ids, self._owed)
            return found
        rows = F.embedding(ids, self.table, sparse=True) if self.sparse else self.table.index_select(0, ids)
        return normalised(rows)  # eq. 3

    def every(self) -> Tensor:
        """The vectors of all entities: (entities, d)."""
        return normalised(self.table) if self._all is None else self._all

    @contextmanager
    def normalised_once(self) -> Iterator[None]:
        """A time in which the table does not change, so that it is normalised once for all look-ups if it is small."""
        if not self.sparse:
            if self._owed.shape != self.table.shape:
                self._owed = torch.zeros_like(self.table)
            self._all = _NormalisedTable.apply(self.table, self._owed)
        try:
            yield
        finally:
            self._all = None
