"""The geometric projection operator: from a vector along a relation; one parameter for each relation and inverse."""

import torch
from torch import Tensor, nn

from halfgraph.model.segments import Groups, grouped_matmul


def xavier(shape: tuple[int, ...], generator: torch.Generator) -> nn.Parameter:
    """A parameter of this shape, uniform by Xavier's rule over its last two sizes."""
    bound = (6.0 / (shape[-1] + shape[-2])) ** 0.5
    return nn.Parameter((2 * torch.rand(shape, generator=generator) - 1) * bound)


class Bilinear(nn.Module):
    """e' = R_r e, a full matrix for each relation (eq. 1)."""

    def __init__(self, relation_count: int, dim: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = xavier((relation_count, dim, dim), generator)  # the transposed matrices: rows times weight

    @torch.no_grad()
    def begin_at_identity(self) -> None:
        """Nothing; every matrix begins as the identity with some noise, so that long paths begin as short ones do."""
        # Departs from the paper's released code, which begins with Xavier's rule: the paper does not say.
        self.weight.mul_(0.3).add_(torch.eye(self.weight.shape[1]))

    def forward(self, vectors: Tensor, relations: Tensor) -> Tensor:
        """The projected vectors: (n, d), (n,) -> (n, d)."""
        return grouped_matmul(vectors, self.weight, Groups.of(relations))  # eq. 1


class Diagonal(nn.Module):
    """e' = diag(r) e, DistMult's reading."""

    def __init__(self, relation_count: int, dim: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(relation_count, dim, generator=generator))

    def forward(self, vectors: Tensor, relations: Tensor) -> Tensor:
        """The projected vectors: (n, d), (n,) -> (n, d)."""
        return vectors * self.weight.index_select(0, relations)


class Translation(nn.Module):
    """e' = e + r, TransE's reading."""

    def __init__(self, relation_count: int, dim: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = xavier((relation_count, dim), generator)

    def forward(self, vectors: Tensor, relations: Tensor) -> Tensor:
        """The projected vectors: (n, d), (n,) -> (n, d)."""
        return vectors + self.weight.index_select(0, relations)


PROJECTIONS = {"bilinear": Bilinear, "diagonal": Diagonal, "translation": Translation}
