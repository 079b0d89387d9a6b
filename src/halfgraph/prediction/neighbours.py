"""Nearest neighbours: the entities that share most links with an entity.

An entity is the set of its links, each a relation and a tail, weighted by how rare it is; nearness is their cosine.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction._link_kernels import link_rarity, nearest_entities, neighbour_sums
from halfgraph.query._kernels import contiguous, edges_of

COUNT, COUNT_IF_LARGE, LARGE = 64, 16, 300_000  # neighbours of an entity; fewer above this number of entities
COMMON = 2_000  # links that more entities have are left out


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of every entity, the nearest first: ids (entities, count), -1 for none, and their nearness."""

    ids: NDArray[np.int32]
    nearness: NDArray[np.float32]

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "Neighbours":
        edges = edges_of(graph)
        count = COUNT if graph.entity_count <= LARGE else COUNT_IF_LARGE
        return cls(*map(contiguous, nearest_entities(edges, *link_rarity(edges, COMMON), count)))

    @cached_property
    def reverse(self) -> tuple[Any, ...]:
        """Whose neighbour each entity is: starts (entities + 1,), entities and their nearness."""
        rows, columns = np.nonzero(self.ids >= 0)
        near = self.ids[rows, columns]
        order = np.argsort(near, kind="stable")
        starts = np.searchsorted(near[order], np.arange(len(self.ids) + 1))
        return tuple(map(contiguous, (starts, rows[order].astype(np.int32), self.nearness[rows, columns][order])))

    @cached_property
    def totals(self) -> NDArray[np.float32]:
        """The nearness of all neighbours of each entity in all, above 0."""
        return np.maximum(self.nearness.sum(axis=1), np.float32(1e-9))

    def sums(self, chosen: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Sum the nearness of each entity's neighbours among the chosen ones (a mask): (entities,)."""
        sums: NDArray[np.float32] = neighbour_sums(self.ids, self.nearness, chosen)
        return sums
