"""Prediction by embedding: the cosine of the query embedding with every entity embedding (eq. 11)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.model.encoder import Encoder, cosine
from halfgraph.prediction.base import Ids, Scores
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.structures import Structure


@dataclass(frozen=True)
class EmbeddingIndex:
    """The embeddings of all entities (entities, d), of length one, for exact nearest-neighbour search."""

    encoder: Encoder
    vectors: torch.Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, encoder: Encoder) -> "EmbeddingIndex":
        return cls(encoder, encoder.entities.embeddings().detach())

    @torch.no_grad()
    def scores(self, disjuncts: torch.Tensor, among: slice) -> torch.Tensor:
        """Cosine of each entity of a range with the nearest query embedding (disjuncts, d): (range,)."""
        queries, entities = F.normalize(disjuncts, dim=-1), self.vectors[among]
        if len(queries) == 1:
            return cosine(queries, entities)[0]  # eq. 11
        return cosine(entities, queries).amax(dim=1)  # eq. 11, faster in this order

    def nearest(
        self, disjuncts: torch.Tensor, count: int, *, among: slice, without: NDArray[np.int32]
    ) -> list[tuple[int, float]]:
        """Return the best entities of a range with their cosines, leaving out those in `without`."""
        return top_entities(self.scores(disjuncts, among)[None], count, first=among.start or 0, without=[without])[0]


@dataclass(frozen=True)
class EmbeddingPredictor:
    """Scores by cosine with the query embedding; a union scores as its best disjunct, negated parts are ignored."""

    index: EmbeddingIndex
    name: str = EMBEDDING

    @classmethod
    def of(cls, encoder: Encoder, name: str = EMBEDDING) -> "EmbeddingPredictor":
        return cls(EmbeddingIndex.of(encoder), name)

    @torch.no_grad()
    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        queries = disjuncts(without_negation(structure.fill(np.asarray(anchors), np.asarray(relations))))
        embeddings = (F.normalize(vectors, dim=-1) for vectors in self.index.encoder.encode(queries))
        cosines = (cosine(vectors, self.index.vectors) for vectors in embeddings)  # eq. 11
        return reduce(torch.maximum, cosines).float().cpu().numpy()


def top_entities(
    scores: torch.Tensor, count: int, *, first: int, without: Sequence[NDArray[np.integer]]
) -> list[list[tuple[int, float]]]:
    """Return the best entities of each row with their scores, best first; `without` lists the entities to leave out.

    scores is (rows, range) for the entities from `first` on, and is overwritten.
    """
    rows = np.repeat(np.arange(len(scores)), [len(entities) for entities in without])
    columns = np.concatenate([*without, np.empty(0, np.int64)]).astype(np.int64) - first
    inside = (columns >= 0) & (columns < scores.shape[1])
    scores[torch.from_numpy(rows[inside]), torch.from_numpy(columns[inside])] = -torch.inf
    best, positions = scores.topk(min(count, scores.shape[1]))
    rows_of_pairs = zip((positions + first).tolist(), best.tolist(), strict=True)
    return [[pair for pair in zip(*row, strict=True) if pair[1] > -torch.inf] for row in rows_of_pairs]
