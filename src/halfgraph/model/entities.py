"""Entity vectors: one row for each entity, type by type, normalised at each look-up."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from halfgraph.model.units import looked_up, normalised, normalised_table

SPARSE_ABOVE = 100_000  # entities: from here on a step touches few of the rows, and only those are updated


class Entities(nn.Module):
    """The type-specific look-up e = Z x / |Z x| (eq. 3); entities are numbered type by type, so Z is one table."""

    def __init__(self, entity_count: int, dim: int, generator: torch.Generator) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(entity_count, dim, generator=generator) / dim)
        self.sparse = entity_count > SPARSE_ABOVE
        self._all: Tensor | None = None
        self._owed: Tensor  # the gradients of look-ups in the table normalised once
        self.register_buffer("_owed", torch.empty(0), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors of some entities: (n,) -> (n, d)."""
        if self._all is not None:
            return looked_up(self._all, ids, self._owed)
        rows = F.embedding(ids, self.table, sparse=True) if self.sparse else self.table.index_select(0, ids)
        return normalised(rows)  # eq. 3

    def every(self) -> Tensor:
        """The vectors of all entities: (entities, d)."""
        return normalised(self.table) if self._all is None else self._all

    @contextmanager
    def normalised_once(self) -> Iterator[None]:
        """A time in which the table does not change, so that it is normalised once for all look-ups if it is small."""
        if not self.sparse:
            if torch.is_grad_enabled() and self._owed.shape != self.table.shape:
                self._owed = torch.zeros_like(self.table)
            self._all = normalised_table(self.table, self._owed)
        try:
            yield
        except BaseException:
            self._owed.zero_()  # of a step that was broken off
            raise
        finally:
            self._all = None
