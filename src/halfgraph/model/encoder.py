"""The encoder: embeddings of queries by look-up, projection and intersection, compared by the cosine."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.model.entities import Entities, unit
from halfgraph.model.intersection import INTERSECTIONS
from halfgraph.model.projection import PROJECTIONS
from halfgraph.query._kernels import count_edges, edges_of
from halfgraph.query.fold import fold_batch
from halfgraph.query.tree import Anchor, Column, Intersect, Project, Query, positive_parts, type_of


class Encoder(nn.Module):
    """A model of one graph, which turns queries into embeddings."""

    def __init__(self, architecture: Architecture, graph: KnowledgeGraph, generator: torch.Generator) -> None:
        super().__init__()
        self.architecture = architecture
        self.entities = Entities(graph.entity_count, architecture.dim, generator)
        self.projection = PROJECTIONS[architecture.projection](architecture, graph.relation_count, generator)
        self.intersection = INTERSECTIONS[architecture.intersection](architecture, len(graph.types), generator)
        self.tail_types: Tensor
        self.register_buffer("tail_types", torch.from_numpy(tail_type_shares(graph)), persistent=False)
        self._edges = edges_of(graph)
        self._relation_sizes = np.bincount(np.asarray(graph.relations), minlength=graph.relation_count)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.entities.table.device

    def encode(self, queries: Sequence[Query]) -> list[Tensor]:
        """Return the embeddings (n, d) of each batch of queries; all batches are walked together."""
        return fold_batch(queries, QueryEmbedding(self))

    def types_of(self, node: Query, rows: int) -> Tensor:
        """Return the type of a variable in each row (n,): the query's own, or the likeliest after its relations."""
        type_id = type_of(node)
        if type_id is not None:
            return torch.full((rows,), type_id, device=self.device)
        # Departs from the paper, which takes the type as given: a query may leave it open. Every relation into the
        # variable has one vote, shared among the types of its tails; without relations the first type wins.
        votes = self.tail_types.new_zeros(rows, self.tail_types.shape[1])
        shares = (self.tail_types.index_select(0, _ids(relation, self.device)) for relation in _last_relations(node))
        return sum(shares, votes).argmax(dim=1)

    def matches(self, node: Intersect, rows: int) -> Tensor:
        """Return how many triples the last step of each path of an intersection matches: (n, paths)."""
        counts = [self._path_matches(path, rows) for path in node.parts]
        return torch.from_numpy(np.stack(counts, axis=1)).to(self.entities.table)

    def _path_matches(self, path: Query, rows: int) -> NDArray[np.int64]:
        if not isinstance(path, Project):
            return np.ones(rows, dtype=np.int64)
        relations = _column(path.relation)
        if isinstance(path.source, Anchor):
            counts: NDArray[np.int64] = count_edges(self._edges, _column(path.source.entity), relations)
            return counts
        return self._relation_sizes[relations]


def cosine(queries: Tensor, entities: Tensor) -> Tensor:
    """Cosine similarity of unit embeddings of queries and entities (eq. 11).

    All pairs, (n, d), (m, d) -> (n, m), or each query with entities of its own, (n, d), (n, k, d) -> (n, k).
    """
    if entities.dim() == 2:
        return queries @ entities.t()  # eq. 11
    return torch.linalg.vecdot(queries.unsqueeze(1), entities)  # eq. 11


@dataclass(frozen=True)
class QueryEmbedding:
    """Interpretation of a query as its embedding (n, d), for many nodes at once (Hamilton et al.'s Algorithm 1)."""

    encoder: Encoder

    def anchors(self, nodes: list[Anchor]) -> list[Tensor]:
        """Look up the entities."""
        ids = [_ids(node.entity, self.encoder.device) for node in nodes]
        return list(self.encoder.entities(torch.cat(ids)).split([len(column) for column in ids]))

    def projects(self, nodes: list[Project], sources: list[Tensor]) -> list[Tensor]:
        """Project the sources along the relations."""
        relations = torch.cat([_ids(node.relation, self.encoder.device) for node in nodes])
        projected: Tensor = self.encoder.projection(torch.cat(sources), relations)
        return list(projected.split([len(source) for source in sources]))

    def intersects(self, nodes: list[Intersect], parts: list[list[Tensor]]) -> list[Tensor]:
        """Intersect the paths, nodes with equally many paths together."""
        embeddings: dict[int, Tensor] = {}
        for count in sorted({len(node.parts) for node in nodes}):
            same_count = [index for index, node in enumerate(nodes) if len(node.parts) == count]
            paths = [torch.stack(parts[index], dim=1) for index in same_count]  # (n, paths, d) each
            intersected = self._intersect([nodes[index] for index in same_count], paths)
            embeddings.update(zip(same_count, intersected, strict=True))
        return [embeddings[index] for index in range(len(nodes))]

    def _intersect(self, nodes: list[Intersect], paths: list[Tensor]) -> Sequence[Tensor]:
        encoder, rows, stacked = self.encoder, [len(part) for part in paths], torch.cat(paths)
        if length := encoder.architecture.path_length:
            stacked = length * unit(stacked)
        types = torch.cat([encoder.types_of(node, n) for node, n in zip(nodes, rows, strict=True)])
        matches = torch.empty(0)
        if encoder.intersection.uses_matches:
            matches = torch.cat([encoder.matches(node, n) for node, n in zip(nodes, rows, strict=True)])
        intersected: Tensor = encoder.intersection(stacked, types, matches)
        return intersected.split(rows)


def tail_type_shares(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """Return which share of the tails of each relation has each type, in units of 2^-32: (relations, types).

    Whole numbers, because their sum does not depend on the order of the paths.
    """
    counts = np.zeros((graph.relation_count, len(graph.types)))
    np.add.at(counts, (np.asarray(graph.relations), graph.types.of(np.asarray(graph.tails))), 1.0)
    return np.rint(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0) * 2**32).astype(np.int64)


def _last_relations(node: Query) -> list[Column]:
    """Return the relations that lead to a variable, without negated ones."""
    if isinstance(node, Project):
        return [node.relation]
    return [relation for part in positive_parts(node) for relation in _last_relations(part)]


def _column(ids: Column) -> NDArray[np.int32]:
    return np.atleast_1d(np.asarray(ids, dtype=np.int32))


def _ids(ids: Column, device: torch.device) -> Tensor:
    return torch.from_numpy(_column(ids).astype(np.int64)).to(device)


def describe(encoder: Encoder) -> dict[str, Any]:
    """Return the architecture and its parameter counts, for the model card."""
    return {
        **asdict(encoder.architecture),
        "parameters": sum(parameter.numel() for parameter in encoder.parameters()),
        "intersection_parameters": encoder.intersection.paper_parameter_count(),
    }
