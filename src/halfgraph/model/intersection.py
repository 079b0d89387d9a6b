"""Intersection operators: one embedding from those of the paths that meet in a variable.

A new operator is a class here and its line in INTERSECTIONS (docs/extending.md).
"""

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from halfgraph.model._grouped import Groups, grouped_matmul
from halfgraph.model.projection import xavier

if TYPE_CHECKING:
    from halfgraph.model.architecture import Architecture

# Psi in the paper, over the paths: (n, paths, d) -> (n, d).
CENTRES = {"mean": lambda paths: paths.mean(dim=1), "min": lambda paths: paths.amin(dim=1)}
ACTIVATIONS = {"sigmoid": torch.sigmoid, "none": lambda embeddings: embeddings}


class Intersection(nn.Module):
    """Base class: made from the architecture and the number of entity types."""

    uses_matches = False  # whether `forward` reads its third argument

    def __init__(self, architecture: "Architecture", type_count: int, generator: torch.Generator) -> None:  # noqa: ARG002
        super().__init__()
        self.centre = CENTRES[architecture.centre]

    def forward(self, paths: Tensor, types: Tensor, matches: Tensor) -> Tensor:
        """Intersect the paths (n, paths, d) of n variables: -> (n, d).

        `types` (n,) has the type of each variable, `matches` (n, paths) the number of triples that each path matches.
        """
        raise NotImplementedError

    def paper_parameter_count(self) -> int:
        """Return the number of parameters as the paper counts them: without those of layer normalisation."""
        norms = sum(p.numel() for module in self.modules() if isinstance(module, TypeNorm) for p in module.parameters())
        return sum(parameter.numel() for parameter in self.parameters()) - norms


class Simple(Intersection):
    """Element-wise mean or minimum over the paths."""

    def forward(self, paths: Tensor, types: Tensor, matches: Tensor) -> Tensor:  # noqa: ARG002
        """Intersect the paths: (n, paths, d) -> (n, d)."""
        intersected: Tensor = self.centre(paths)
        return intersected


class Gqe(Intersection):
    """GQE's intersection, with two matrices for each type: e'' = W1 Psi(ReLU(W2 e'_i)) (eq. 2)."""

    def __init__(self, architecture: "Architecture", type_count: int, generator: torch.Generator) -> None:
        super().__init__(architecture, type_count, generator)
        dim = architecture.dim
        self.inner = xavier((type_count, dim, dim), generator)
        self.outer = xavier((type_count, dim, dim), generator)

    def forward(self, paths: Tensor, types: Tensor, matches: Tensor) -> Tensor:  # noqa: ARG002
        """Intersect the paths: (n, paths, d) -> (n, d)."""
        groups = Groups.of(types)
        rows = paths.reshape(-1, paths.shape[2])  # (n * paths, d)
        hidden = F.relu(grouped_matmul(rows, self.inner, groups.repeat(paths.shape[1])))
        return grouped_matmul(self.centre(hidden.view_as(paths)), self.outer, groups)  # eq. 2


class Counted(Intersection):
    """Wang et al.'s weights: each path counts by the inverse of the number of triples that it matches."""

    uses_matches = True

    def forward(self, paths: Tensor, types: Tensor, matches: Tensor) -> Tensor:  # noqa: ARG002
        """Intersect the paths: (n, paths, d), (n, paths) -> (n, d)."""
        weights = 1.0 / matches.clamp(min=1.0)
        return ((weights / weights.sum(dim=1, keepdim=True)).unsqueeze(-1) * paths).sum(dim=1)


class Attention(Intersection):
    """Contextual graph attention: K heads attend to the paths from an initial centre, then a layer (eqs. 4-8)."""

    def __init__(self, architecture: "Architecture", type_count: int, generator: torch.Generator) -> None:
        super().__init__(architecture, type_count, generator)
        dim, self.heads = architecture.dim, architecture.heads
        self.activation = ACTIVATIONS[architecture.activation]
        self.attention = xavier((type_count, 2 * dim, self.heads), generator)
        self.weight = xavier((type_count, dim, dim), generator)
        self.bias = nn.Parameter(torch.zeros(type_count, dim))
        self.norm1, self.norm2 = (TypeNorm(type_count if architecture.norm_by_type else 1, dim) for _ in range(2))

    def forward(self, paths: Tensor, types: Tensor, matches: Tensor) -> Tensor:  # noqa: ARG002
        """Intersect the paths: (n, paths, d) -> (n, d)."""
        initial = self.centre(paths)  # eq. 4
        weights = self.coefficients(paths, initial, types).mean(dim=2, keepdim=True)  # (n, paths, 1)
        attended = self.activation((weights * paths).sum(dim=1))  # eq. 6
        first = self.norm1(attended + initial, types)  # eq. 7
        hidden = grouped_matmul(first, self.weight, Groups.of(types)) + self.bias.index_select(0, types)
        return self.norm2(hidden + first, types)  # eq. 8

    def coefficients(self, paths: Tensor, initial: Tensor, types: Tensor) -> Tensor:
        """Return the attention of each head to each path: (n, paths, heads), summing to 1 over the paths (eq. 5)."""
        count, dim = paths.shape[1], paths.shape[2]
        groups = Groups.of(types)
        of_centre, of_path = self.attention.split(dim, dim=1)  # a^T [initial; e] = a_centre^T initial + a_path^T e
        logits = grouped_matmul(paths.reshape(-1, dim), of_path, groups.repeat(count)).view(-1, count, self.heads)
        logits = logits + grouped_matmul(initial, of_centre, groups).unsqueeze(1)
        return F.leaky_relu(logits, 0.2).softmax(dim=1)  # eq. 5


INTERSECTIONS: dict[str, type[Intersection]] = {
    "attention": Attention,
    "gqe": Gqe,
    "simple": Simple,
    "counted": Counted,
}


class TypeNorm(nn.Module):
    """Layer normalisation with a scale and a shift for each type (as in the released code), or one pair for all."""

    def __init__(self, type_count: int, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(type_count, dim))
        self.shift = nn.Parameter(torch.zeros(type_count, dim))

    def forward(self, embeddings: Tensor, types: Tensor) -> Tensor:
        """Normalise embeddings: (n, d), (n,) -> (n, d)."""
        if len(self.scale) == 1:
            return F.layer_norm(embeddings, embeddings.shape[-1:], self.scale[0], self.shift[0])
        normalised = F.layer_norm(embeddings, embeddings.shape[-1:])
        return normalised * self.scale.index_select(0, types) + self.shift.index_select(0, types)
