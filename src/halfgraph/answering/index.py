"""The entities nearest to a query's vector, exactly."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.model.encoder import Encoder
from halfgraph.query.tree import Query


@dataclass(frozen=True)
class Index:
    """Every entity's vector, ready to be compared."""

    encoder: Encoder
    vectors: torch.Tensor  # (entities, d)

    @classmethod
    @torch.no_grad()
    def of(cls, encoder: Encoder) -> "Index":
        """The index of a model."""
        return cls(encoder, encoder.entities.every())

    @torch.no_grad()
    def nearest(
        self, ways: Sequence[Query], count: int, *, among: slice, without: NDArray[np.int32]
    ) -> list[tuple[int, float]]:
        """The best entities of a range for the best of some queries, with their cosines, some left out."""
        queries = F.normalize(torch.cat(self.encoder.encode(ways)), dim=-1)  # (ways, d)
        scores = (self.vectors[among] @ queries.t()).amax(dim=1)
        first = among.start or 0
        left_out = without[(without >= first) & (without < first + len(scores))] - first
        scores[torch.from_numpy(left_out.astype(np.int64))] = -torch.inf
        best, places = scores.topk(min(count, len(scores) - len(left_out)))
        return [(first + place, score) for place, score in zip(places.tolist(), best.tolist(), strict=True)]
