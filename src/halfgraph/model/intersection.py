"""The geometric intersection operators: from the vectors of several paths to the one of the variable they meet in.

All take the parts (n, parts, d), the type of each variable (n,), and how many triples each part matches (n, parts).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from halfgraph.model.least import least
from halfgraph.model.projection import xavier
from halfgraph.model.segments import Groups, grouped_matmul

CENTRES = {"mean": lambda parts: parts.mean(dim=1), "min": least}


class Simple(nn.Module):
    """The element-wise mean or minimum, without parameters."""

    def __init__(self, centre: str) -> None:
        super().__init__()
        self.centre = CENTRES[centre]

    def forward(self, parts: Tensor, types: Tensor, matches: Tensor) -> Tensor:  # noqa: ARG002
        """The intersections: (n, parts, d) -> (n, d)."""
        joined: Tensor = self.centre(parts)
        return joined


class Gqe(nn.Module):
    """GQE's: e'' = W1 Psi(ReLU(W2 e'_i)), both matrices of the variable's type (eq. 2)."""

    def __init__(self, type_count: int, dim: int, centre: str, generator: torch.Generator) -> None:
        super().__init__()
        self.centre = CENTRES[centre]
        self.inner = xavier((type_count, dim, dim), generator)
        self.outer = xavier((type_count, dim, dim), generator)

    def forward(self, parts: Tensor, types: Tensor, matches: Tensor) -> Tensor:  # noqa: ARG002
        """The intersections: (n, parts, d) -> (n, d)."""
        groups = Groups.of(types)
        rows = parts.reshape(-1, parts.shape[2])  # (n * parts, d)
        hidden = F.relu(grouped_matmul(rows, self.inner, groups.repeated(parts.shape[1])))
        return grouped_matmul(self.centre(hidden.view_as(parts)), self.outer, groups)  # eq. 2


class Counted(nn.Module):
    """Wang et al.'s deterministic weights: a path counts by the inverse of the number of triples that it matches."""

    def forward(self, parts: Tensor, types: Tensor, matches: Tensor) -> Tensor:  # noqa: ARG002
        """The intersections: (n, parts, d), (n, parts) -> (n, d)."""
        weights = 1.0 / matches.clamp(min=1.0)
        return ((weights / weights.sum(dim=1, keepdim=True)).unsqueeze(-1) * parts).sum(dim=1)


class Attention(nn.Module):
    """Contextual graph attention: K heads over the parts, around a centre made of them, then a layer (eqs. 4-8)."""

    def __init__(
        self,
        type_count: int,
        dim: int,
        heads: int,
        centre: str,
        generator: torch.Generator,
        *,
        norm_by_type: bool = False,
        activation: str = "sigmoid",
    ) -> None:
        super().__init__()
        self.heads, self.centre, self.activation = heads, CENTRES[centre], ACTIVATIONS[activation]
        self.attention = xavier((type_count, 2 * dim, heads), generator)
        self.weight = xavier((type_count, dim, dim), generator)
        self.bias = nn.Parameter(torch.zeros(type_count, dim))
        self.norm1, self.norm2 = (TypeNorm(type_count if norm_by_type else 1, dim) for _ in range(2))

    def forward(self, parts: Tensor, types: Tensor, matches: Tensor) -> Tensor:  # noqa: ARG002
        """The intersections: (n, parts, d) -> (n, d)."""
        groups = Groups.of(types)
        initial = self.centre(parts)  # eq. 4
        shares = self.shares(parts, initial, groups)  # (n, parts, heads)
        attended = self.activation((shares.mean(dim=2, keepdim=True) * parts).sum(dim=1))  # eq. 6
        first = self.norm1(attended + initial, types)  # eq. 7
        hidden = grouped_matmul(first, self.weight, groups) + self.bias.index_select(0, types)
        return self.norm2(hidden + first, types)  # eq. 8

    def shares(self, parts: Tensor, initial: Tensor, groups: Groups) -> Tensor:
        """What each head gives to each part: (n, parts, heads), summing to one over the parts (eq. 5)."""
        count, dim = parts.shape[1], parts.shape[2]
        of_centre, of_part = self.attention.split(dim, dim=1)  # a^T [init; e] = a_init^T init + a_part^T e
        rows = parts.reshape(-1, dim)
        logits = grouped_matmul(rows, of_part, groups.repeated(count)).view(-1, count, self.heads)
        logits = logits + grouped_matmul(initial, of_centre, groups).unsqueeze(1)
        return F.leaky_relu(logits, 0.2).softmax(dim=1)  # eq. 5


class TypeNorm(nn.Module):
    """Layer normalisation with a scale and a shift for each type, or one pair for all."""

    def __init__(self, type_count: int, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(type_count, dim))
        self.shift = nn.Parameter(torch.zeros(type_count, dim))

    def forward(self, vectors: Tensor, types: Tensor) -> Tensor:
        """The normalised vectors: (n, d) -> (n, d)."""
        if len(self.scale) == 1:
            return F.layer_norm(vectors, vectors.shape[-1:], self.scale[0], self.shift[0])
        plain = F.layer_norm(vectors, vectors.shape[-1:])
        return plain * self.scale.index_select(0, types) + self.shift.index_select(0, types)


ACTIVATIONS = {"sigmoid": torch.sigmoid, "none": lambda vectors: vectors}
