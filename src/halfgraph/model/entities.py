"""Entity vectors: one row for each entity, kind by kind, normalised at each look-up."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SPARSE_ABOVE = 100_000  # entities: from here on a step touches few of the rows, and only those are updated


class _Normalised(torch.autograd.Function):
    """x / |x| by rows, with a gradient in half the passes over memory that the composed one takes."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        size = torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_(min=1e-12)
        unit = rows / size
        ctx.save_for_backward(unit, size)
        return unit

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        unit, size = ctx.saved_tensors
        along = torch.einsum("nd,nd->n", gradient, unit).unsqueeze(-1)
        return torch.addcmul(gradient, unit, along, value=-1).div_(size)


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

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors of some entities: (n,) -> (n, d)."""
        if self._all is not None:
            return self._all.index_select(0, ids)
        rows = F.embedding(ids, self.table, sparse=True) if self.sparse else self.table.index_select(0, ids)
        return normalised(rows)  # eq. 3

    def every(self) -> Tensor:
        """The vectors of all entities: (entities, d)."""
        return normalised(self.table) if self._all is None else self._all

    @contextmanager
    def normalised_once(self) -> Iterator[None]:
        """A time in which the table does not change, so that it is normalised once for all look-ups if it is small."""
        self._all = None if self.sparse else self.every()
        try:
            yield
        finally:
            self._all = None
