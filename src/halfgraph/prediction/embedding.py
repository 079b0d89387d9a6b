"""The entities nearest to a query's vector, exactly."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.model.encoder import Encoder, cosine


@dataclass(frozen=True)
class Index:
    """Every entity's vector, ready to be compared."""

    encoder: Encoder
    vectors: torch.Tensor  # (entities, d)

    @classmethod
    @torch.no_grad()
    def of(cls, encoder: Encoder) -> "Index":
        """The index of a model."""
        return cls(encoder, encoder.entities.embeddings())

    @torch.no_grad()
    def scores(self, ways: torch.Tensor, among: slice) -> torch.Tensor:
        """The cosine of each entity of a range with the nearest of some vectors (ways, d): (range,)."""
        return cosine(F.normalize(ways, dim=-1), self.vectors[among]).amax(dim=0)  # eq. 11

    def nearest(
        self, ways: torch.Tensor, count: int, *, among: slice, without: NDArray[np.int32]
    ) -> list[tuple[int, float]]:
        """The best entities of a range for the best of some vectors, with their cosines, some left out."""
        return best_of(self.scores(ways, among), count, first=among.start or 0, without=without)


def best_of(scores: torch.Tensor, count: int, *, first: int, without: NDArray[np.int32]) -> list[tuple[int, float]]:
    """The entities of the best scores of a range that begins with `first`, some left out; the scores are used up."""
    left_out = without[(without >= first) & (without < first + len(scores))] - first
    scores[torch.from_numpy(left_out.astype(np.int64))] = -torch.inf
    best, places = scores.topk(max(0, min(count, len(scores) - len(left_out))))
    return [(first + place, score) for place, score in zip(places.tolist(), best.tolist(), strict=True)]
