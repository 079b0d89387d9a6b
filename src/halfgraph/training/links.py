"""Links: a head and a relation asked for all their tails at once, told from every entity."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.tree import Anchor, Project, Query

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Links:
    """Some heads with a relation each, and all their tails."""

    heads: Ids  # (n,)
    relations: Ids
    rows: NDArray[np.int64]  # of each tail (tails,)
    tails: NDArray[np.int64]  # as places among the candidates
    shares: NDArray[np.float32]  # one over the number of tails of the row
    candidates: NDArray[np.int64] | None  # None: every entity

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def query(self) -> Query:
        """The links as a batch of queries."""
        return Project(Anchor(self.heads), self.relations)


@dataclass(frozen=True)
class LinkSource:
    """The links of a graph."""

    graph: KnowledgeGraph

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """Where the edges of each head and relation begin, and where the last end."""
        heads, relations = self.graph.heads(), np.asarray(self.graph.relations)
        changes = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1])
        return np.concatenate([[0], np.flatnonzero(changes) + 1, [len(heads)]])

    def draw(self, count: int, candidates: int, rng: np.random.Generator) -> Links:
        """So many links at random, told from every entity, or from a sample where there are more than twice as many."""
        chosen = rng.integers(0, len(self.firsts) - 1, count)
        first, sizes = self.firsts[chosen], self.firsts[chosen + 1] - self.firsts[chosen]
        rows = np.repeat(np.arange(count), sizes)
        places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(first, sizes)
        tails = self.graph.tails[places].astype(np.int64)
        among = None
        if self.graph.entity_count > 2 * candidates:
            among = np.union1d(tails, rng.integers(0, self.graph.entity_count, candidates))
            tails = np.searchsorted(among, tails)
        heads = np.searchsorted(self.graph.starts, first, side="right") - 1
        shares = (1.0 / np.repeat(sizes, sizes)).astype(np.float32)
        return Links(heads.astype(np.int32), self.graph.relations[first], rows, tails, shares, among)


def link_losses(links: Links, vectors: Tensor, entities: Tensor, temperature: float) -> Tensor:
    """The cross-entropy of a row's tails against all candidates: (n, d), (candidates, d) -> (n,)."""
    logits = vectors @ entities.t() / temperature
    rows, tails, shares = (
        torch.from_numpy(part).to(vectors.device) for part in (links.rows, links.tails, links.shares)
    )
    right = torch.zeros_like(logits[:, 0]).index_add(0, rows, logits[rows, tails] * shares)
    return torch.logsumexp(logits, dim=1) - right
