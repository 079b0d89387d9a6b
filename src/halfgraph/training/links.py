"""Links: a head and a relation, for which all known tails are predicted among many entities at once."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.encoder import cosine
from halfgraph.query.tree import Anchor, Project, Query

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Links:
    """Heads with one relation each, and all their tails."""

    heads: Ids  # (n,)
    relations: Ids  # (n,)
    rows: NDArray[np.int64]  # the link of each tail (tails,)
    tails: NDArray[np.int64]  # positions among the candidates (tails,)
    shares: NDArray[np.float32]  # 1 / number of tails of the same link (tails,)
    candidates: NDArray[np.int64] | None  # None: all entities

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def query(self) -> Query:
        """The links as a batch of one-edge queries."""
        return Project(Anchor(self.heads), self.relations)


@dataclass(frozen=True)
class LinkSource:
    """The links of a graph."""

    graph: KnowledgeGraph

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the triples of each head and relation start, and where the last ones stop."""
        heads, relations = self.graph.heads(), np.asarray(self.graph.relations)
        changes = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1])
        return np.concatenate([[0], np.flatnonzero(changes) + 1, [len(heads)]])

    def draw(self, count: int, candidates: int, rng: np.random.Generator) -> Links:
        """Draw links at random; above twice as many entities as `candidates`, draw candidates too."""
        chosen = rng.integers(0, len(self.starts) - 1, count)
        start, sizes = self.starts[chosen], self.starts[chosen + 1] - self.starts[chosen]
        rows = np.repeat(np.arange(count), sizes)
        triples = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(start, sizes)
        tails = self.graph.tails[triples].astype(np.int64)
        sampled = None
        if self.graph.entity_count > 2 * candidates:
            sampled = np.union1d(tails, rng.integers(0, self.graph.entity_count, candidates))
            tails = np.searchsorted(sampled, tails)
        heads = np.searchsorted(self.graph.starts, start, side="right") - 1
        shares = (1.0 / np.repeat(sizes, sizes)).astype(np.float32)
        return Links(heads.astype(np.int32), self.graph.relations[start], rows, tails, shares, sampled)


def link_losses(links: Links, queries: Tensor, entities: Tensor, temperature: float) -> Tensor:
    """Return the cross-entropy of each link's tails against all candidates: (n, d), (candidates, d) -> (n,)."""
    queries = queries / temperature  # cosines are logits from here on
    rows, tails, shares = (
        torch.from_numpy(part).to(queries.device) for part in (links.rows, links.tails, links.shares)
    )
    weighted = entities.index_select(0, tails) * shares.to(entities).unsqueeze(1)
    mean_tail = torch.zeros_like(queries).index_add(0, rows, weighted)  # its logit is the mean of the tails' logits
    right = cosine(queries, mean_tail.unsqueeze(1)).squeeze(1)
    return torch.logsumexp(cosine(queries, entities), dim=1) - right
