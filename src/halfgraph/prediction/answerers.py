"""What is measured: anything that gives every entity a score for each of some queries."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.model.encoder import Encoder, cosine
from halfgraph.query.fold import Interpretation, fold
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.structures import Structure

Ids = NDArray[np.int32]
Scores = NDArray[np.float32]


class Answerer(Protocol):
    """What answers queries: a higher score is a likelier answer. Several threads may ask it at once."""

    @property
    def name(self) -> str:
        """What it is called in tables."""

    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        """The score of every entity for each query of a structure: (n, anchors), (n, relations) -> (n, entities)."""


@dataclass(frozen=True)
class VectorAnswerer:
    """A model's cosine of a query's vector with every entity's; for a model that is no longer trained."""

    encoder: Encoder
    name: str = "model"

    @cached_property
    def _every(self) -> torch.Tensor:
        """The vectors of all entities (entities, d)."""
        return self.encoder.entities.embeddings().detach()

    @torch.no_grad()
    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        """The score of every entity; a union has the best of its parts; a vector cannot say no."""
        ways = disjuncts(without_negation(structure.fill(np.asarray(anchors), np.asarray(relations))))
        best: torch.Tensor | None = None
        for vectors in self.encoder.encode(ways):
            cosines = cosine(F.normalize(vectors, dim=-1), self._every)  # eq. 11
            best = cosines if best is None else torch.maximum(best, cosines, out=best)
        assert best is not None, "a query has at least one disjunct"
        return best.float().cpu().numpy()


@dataclass(frozen=True)
class MeaningAnswerer:
    """A meaning of queries that yields one score for every entity (entities,), as an answerer."""

    name: str
    meaning: Callable[[], Interpretation[Scores]]  # called for each batch, so that a meaning may keep room to work in

    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        """The score of every entity, query by query."""
        meaning = self.meaning()
        return np.stack([fold(structure.fill(*ids), meaning) for ids in zip(anchors, relations, strict=True)])
