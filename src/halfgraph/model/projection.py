"""Projection operators: move embeddings along a relation. Every relation and every inverse has its own parameters.

A new operator is a class here and its line in PROJECTIONS (docs/extending.md).
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from halfgraph.model._grouped import Groups, grouped_matmul

if TYPE_CHECKING:
    from halfgraph.model.architecture import Architecture

INITIAL = ("identity", "xavier")


class Projection(nn.Module):
    """Base class; made from the architecture, the number of relations (inverses included) and a generator."""

    def forward(self, embeddings: Tensor, relations: Tensor) -> Tensor:
        """Project embeddings along relations: (n, d), (n,) -> (n, d)."""
        raise NotImplementedError


class Bilinear(Projection):
    """A matrix for each relation: e' = R_r e (eq. 1)."""

    def __init__(self, architecture: "Architecture", relation_count: int, generator: torch.Generator) -> None:
        super().__init__()
        dim = architecture.dim
        self.weight = xavier((relation_count, dim, dim), generator)  # transposed, for rows times matrix
        if architecture.initial == "identity":
            # Departs from the released code, which uses Xavier's rule (the paper does not say): close to the identity,
            # so that at the start a long path is like a short one.
            self.weight.data.mul_(0.3).add_(torch.eye(dim))

    def forward(self, embeddings: Tensor, relations: Tensor) -> Tensor:
        """Project embeddings along relations: (n, d), (n,) -> (n, d)."""
        return grouped_matmul(embeddings, self.weight, Groups.of(relations))  # eq. 1


class Diagonal(Projection):
    """A diagonal matrix for each relation, as in DistMult: e' = diag(r) e."""

    def __init__(self, architecture: "Architecture", relation_count: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(relation_count, architecture.dim, generator=generator))

    def forward(self, embeddings: Tensor, relations: Tensor) -> Tensor:
        """Project embeddings along relations: (n, d), (n,) -> (n, d)."""
        return embeddings * self.weight.index_select(0, relations)


class Translation(Projection):
    """A vector for each relation, as in TransE: e' = e + r."""

    def __init__(self, architecture: "Architecture", relation_count: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = xavier((relation_count, architecture.dim), generator)

    def forward(self, embeddings: Tensor, relations: Tensor) -> Tensor:
        """Project embeddings along relations: (n, d), (n,) -> (n, d)."""
        return embeddings + self.weight.index_select(0, relations)


PROJECTIONS: dict[str, type[Projection]] = {"bilinear": Bilinear, "diagonal": Diagonal, "translation": Translation}


def xavier(shape: tuple[int, ...], generator: torch.Generator) -> nn.Parameter:
    """Return a parameter drawn uniformly by Xavier's rule over its last two dimensions."""
    bound = (6.0 / (shape[-1] + shape[-2])) ** 0.5
    return nn.Parameter((2 * torch.rand(shape, generator=generator) - 1) * bound)
