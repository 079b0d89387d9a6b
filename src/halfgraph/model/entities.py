"""Entity embeddings: one row for each entity, normalised at look-up."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SPARSE_ABOVE = 100_000  # entities: a step reads few rows of a larger table, and only those are updated


class Entities(nn.Module):
    """Type-specific look-up e = Z x / |Z x| (eq. 3); entities are numbered type by type, so Z is one table."""

    def __init__(self, entity_count: int, dim: int, generator: torch.Generator) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(entity_count, dim, generator=generator) / dim)
        self.sparse = entity_count > SPARSE_ABOVE
        self._normalised: Tensor | None = None

    def forward(self, ids: Tensor) -> Tensor:
        """Look up the unit embeddings of entities: (n,) -> (n, d)."""
        if self._normalised is not None:
            return self._normalised.index_select(0, ids)
        return unit(F.embedding(ids, self.table, sparse=self.sparse))  # eq. 3

    def embeddings(self) -> Tensor:
        """Return the unit embeddings of all entities: (entities, d)."""
        return unit(self.table) if self._normalised is None else self._normalised

    @contextmanager
    def normalised_once(self) -> Iterator[None]:
        """Normalise a small table once for all look-ups in the block; the table must not change in it."""
        self._normalised = None if self.sparse else unit(self.table)  # eq. 3
        try:
            yield
        finally:
            self._normalised = None


def unit(vectors: Tensor) -> Tensor:
    """Scale vectors to length one: (..., d) -> (..., d). A third faster with its gradient than `F.normalize`."""
    return vectors * torch.linalg.vecdot(vectors, vectors).clamp(min=1e-24).rsqrt().unsqueeze(-1)
