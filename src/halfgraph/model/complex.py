"""ComplEx (Trouillon et al., 2016): a model of single links, trained beside CGA and used by the link predictor.

The score of a triple is Re(<head, relation, conjugate of tail>) over complex vectors, with a vector of its own for the
inverse of each relation. A complex vector of rank k is stored as 2k numbers, real parts first.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ComplEx:
    """The weights: entities (entities, 2k), relations (relations in both directions, 2k)."""

    entities: Tensor
    relations: Tensor

    @classmethod
    def new(cls, entity_count: int, relation_count: int, rank: int, generator: torch.Generator) -> "ComplEx":
        sizes = (entity_count, 2 * rank), (relation_count, 2 * rank)
        return cls(*(torch.randn(size, generator=generator) * 1e-3 for size in sizes))

    def tail_queries(self, heads: Tensor, relation: int) -> Tensor:
        """Vectors whose products with the entities are the scores of (head, relation, entity): (n, 2k)."""
        return product(self.entities[heads], self.relations[relation])

    def head_queries(self, tails: Tensor, relation: int) -> Tensor:
        """Vectors whose products with the entities are the scores of (entity, relation, tail): (n, 2k)."""
        return product(self.entities[tails], conjugate(self.relations[relation]))


def product(left: Tensor, right: Tensor) -> Tensor:
    """Element-wise product of complex vectors."""
    (real, imaginary), (other_real, other_imaginary) = left.chunk(2, -1), right.chunk(2, -1)
    parts = real * other_real - imaginary * other_imaginary, real * other_imaginary + imaginary * other_real
    return torch.cat(parts, -1)


def conjugate(vectors: Tensor) -> Tensor:
    """Complex conjugate."""
    real, imaginary = vectors.chunk(2, -1)
    return torch.cat([real, -imaginary], -1)
