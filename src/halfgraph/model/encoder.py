"""The meaning `Embedded`: a query's vector, from look-up, projection and intersection; scored by the cosine."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.entities import Entities
from halfgraph.model.intersection import Attention, Counted, Gqe, Simple
from halfgraph.model.projection import PROJECTIONS, Bilinear
from halfgraph.query._kernels import count_edges, edges_of
from halfgraph.query.fold import fold_batch
from halfgraph.query.tree import Anchor, Column, Intersect, Negate, Project, Query, Union


@dataclass(frozen=True)
class Architecture:
    """What the model is made of."""

    projection: str = "bilinear"  # bilinear, diagonal, translation
    intersection: str = "attention"  # attention, gqe, simple, counted
    centre: str = "min"  # mean, min
    heads: int = 8
    dim: int = 128
    norm_by_type: bool = False
    activation: str = "sigmoid"  # of eq. 6: sigmoid, none
    path_length: float = 0.0  # of the vectors of paths where they meet; 0: as they come, as in the paper
    initial: str = "identity"  # of a bilinear projection: identity with some noise, or xavier as in the released code

    def __post_init__(self) -> None:
        choices = {
            "projection": tuple(PROJECTIONS),
            "intersection": ("attention", "gqe", "simple", "counted"),
            "centre": ("mean", "min"),
            "activation": ("sigmoid", "none"),
            "initial": ("identity", "xavier"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                problem = f'there is none named "{getattr(self, name)}"'
                raise SettingError(name, problem, advice=f"Known: {', '.join(known)}.")
        for name in ("dim", "heads"):
            if getattr(self, name) < 1:
                raise SettingError(name, f"must be at least 1, found {getattr(self, name)}")
        if not 0 <= self.path_length < float("inf"):
            raise SettingError("path_length", f"must be a length, or 0 for none, found {self.path_length}")

    def intersection_parameters(self, type_count: int) -> int:
        """The intersection's parameters as the paper counts them: Ld(d + 2K + 1), 2Ld^2 for GQE's, else none."""
        sizes = {"attention": self.dim + 2 * self.heads + 1, "gqe": 2 * self.dim}
        return type_count * self.dim * sizes.get(self.intersection, 0)


class Encoder(nn.Module):
    """A model of one graph: what turns queries into vectors."""

    def __init__(self, architecture: Architecture, graph: KnowledgeGraph, generator: torch.Generator) -> None:
        super().__init__()
        self.architecture = architecture
        self.entities = Entities(graph.entity_count, architecture.dim, generator)
        projection = PROJECTIONS[architecture.projection]
        self.projection = projection(graph.relation_count, architecture.dim, generator)
        if isinstance(self.projection, Bilinear) and architecture.initial == "identity":
            self.projection.begin_at_identity()
        self.intersection = _intersection(architecture, len(graph.types), generator)
        self.register_buffer("usual_types", torch.from_numpy(usual_types(graph)), persistent=False)
        self._edges = edges_of(graph)
        relation_sizes = np.bincount(np.asarray(graph.relations), minlength=graph.relation_count)
        self._relation_sizes = relation_sizes.astype(np.int64)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.entities.table.device

    def encode(self, queries: Sequence[Query]) -> list[Tensor]:
        """The vectors (n, d) of each batch of queries; all are walked together."""
        return fold_batch(queries, Embedded(self))

    def score(self, vectors: Tensor, entities: Tensor) -> Tensor:
        """The cosine of query vectors (..., d) and entity vectors (..., d), which are normalised already (eq. 11)."""
        return (F.normalize(vectors, dim=-1) * entities).sum(dim=-1)

    def types_of(self, node: Project | Intersect | Union, rows: int) -> Tensor:
        """The type of a variable: as the query says, or the commonest at the end of its relations."""
        if node.type_id is not None:
            return torch.full((rows,), node.type_id, device=self.device)
        # Departs from the paper, which takes the type as known: a variable that no question says the type of has none.
        usual: Tensor = self.usual_types  # type: ignore[assignment]
        none = usual.new_zeros(rows, usual.shape[1])  # known entities alone that meet say nothing of a type
        ends = (usual.index_select(0, _ids(relation, self.device)) for relation in _last_relations(node))
        return sum(ends, none).argmax(dim=1)

    def matches(self, node: Intersect, rows: int) -> Tensor:
        """How many triples each part of an intersection matches: (n, parts)."""
        counts = [self._matches(part, rows) for part in node.parts]
        return torch.from_numpy(np.stack(counts, axis=1)).to(self.entities.table)

    def _matches(self, part: Query, rows: int) -> NDArray[np.int64]:
        """How many triples the last step of a path matches: from an entity its own, from a variable all."""
        if not isinstance(part, Project):
            return np.ones(rows, dtype=np.int64)
        relations = _column(part.relation)
        if isinstance(part.source, Anchor):
            found: NDArray[np.int64] = count_edges(self._edges, _column(part.source.entity), relations)
            return found
        return self._relation_sizes[relations]


@dataclass(frozen=True)
class Embedded:
    """The vector of each node (n, d), for all nodes of a level at once."""

    encoder: Encoder

    def anchors(self, nodes: list[Anchor]) -> list[Tensor]:
        """The entities' own vectors."""
        columns = [_ids(node.entity, self.encoder.device) for node in nodes]
        return list(self.encoder.entities(torch.cat(columns)).split([len(column) for column in columns]))

    def projects(self, nodes: list[Project], sources: list[Tensor]) -> list[Tensor]:
        """The vectors moved along the relations."""
        relations = torch.cat([_ids(node.relation, self.encoder.device) for node in nodes])
        moved: Tensor = self.encoder.projection(torch.cat(sources), relations)
        return list(moved.split([len(source) for source in sources]))

    def intersects(self, nodes: list[Intersect], parts: list[list[Tensor]]) -> list[Tensor]:
        """The vectors joined, those with as many parts together."""
        found: dict[int, Tensor] = {}
        for count in sorted({len(node.parts) for node in nodes}):
            alike = [place for place, node in enumerate(nodes) if len(node.parts) == count]
            stacked = torch.cat([torch.stack(parts[place], dim=1) for place in alike])  # (n, parts, d)
            if length := self.encoder.architecture.path_length:
                stacked = length * F.normalize(stacked, dim=-1)
            rows = [len(parts[place][0]) for place in alike]
            types = torch.cat([self.encoder.types_of(nodes[place], n) for place, n in zip(alike, rows, strict=True)])
            joined: Tensor = self.encoder.intersection(stacked, types, self._matches(nodes, alike, rows))
            found.update(zip(alike, joined.split(rows), strict=True))
        return [found[place] for place in range(len(nodes))]

    def _matches(self, nodes: list[Intersect], alike: list[int], rows: list[int]) -> Tensor:
        """How many triples each part matches, where the operator asks for it."""
        if not isinstance(self.encoder.intersection, Counted):
            return torch.empty(0)
        return torch.cat([self.encoder.matches(nodes[place], n) for place, n in zip(alike, rows, strict=True)])


def _intersection(architecture: Architecture, type_count: int, generator: torch.Generator) -> nn.Module:
    """The intersection operator that the architecture names."""
    if architecture.intersection == "simple":
        return Simple(architecture.centre)
    if architecture.intersection == "counted":
        return Counted()
    if architecture.intersection == "gqe":
        return Gqe(type_count, architecture.dim, architecture.centre, generator)
    return Attention(
        type_count,
        architecture.dim,
        architecture.heads,
        architecture.centre,
        generator,
        norm_by_type=architecture.norm_by_type,
        activation=architecture.activation,
    )


def usual_types(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """How often each type is at the end of each relation, as shares of 2^32: (relations, types).

    Whole numbers, because their sum over the parts of an intersection is the same in any order.
    """
    counts = np.zeros((graph.relation_count, len(graph.types)))
    np.add.at(counts, (np.asarray(graph.relations), graph.types.of(np.asarray(graph.tails))), 1.0)
    return np.rint(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0) * 2**32).astype(np.int64)


def _last_relations(node: Query) -> list[Column]:
    """The relations that lead to a variable; those that must not lead there say nothing of its type."""
    if isinstance(node, Project):
        return [node.relation]
    if isinstance(node, Anchor | Negate):
        return []
    return [relation for part in node.parts for relation in _last_relations(part)]


def _column(ids: Column) -> NDArray[np.int32]:
    return np.atleast_1d(np.asarray(ids, dtype=np.int32))


def _ids(ids: Column, device: torch.device) -> Tensor:
    return torch.from_numpy(_column(ids).astype(np.int64)).to(device)


def describe(encoder: Encoder, type_count: int) -> dict[str, Any]:
    """The architecture and its parameter counts, for a model card."""
    architecture = encoder.architecture
    return {
        **asdict(architecture),
        "parameters": sum(parameter.numel() for parameter in encoder.parameters()),
        "intersection_parameters": architecture.intersection_parameters(type_count),
    }
