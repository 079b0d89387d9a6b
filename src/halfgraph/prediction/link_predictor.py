"""Link prediction: the probability of a triple, the same number wherever it is needed.

A known triple has probability 1. Any other triple gets a logistic regression over features of the link, each taken in
both directions and added: from the head along the relation, and from the tail along its inverse. So the probability
does not depend on which end a query starts from. The weights are fitted on held-out triples by `fit_link_weights`.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.prediction.base import Scores
from halfgraph.prediction.link_features import CACHE, FEATURES, Ids, LinkFeatures, Tails, cache_size

LARGE = 100_000  # entities above which a relation is scored for some tails only, and no rows are kept
KNOWN_TAILS = (1, 5)  # a head has no known tails, a few, or at least this many: each has its own weights
SORTS = len(KNOWN_TAILS) + 1


@dataclass(frozen=True)
class LinkWeights:
    """Weights of the features, in log-odds, for each sort of head (none, few or many known tails)."""

    by_sort: tuple[tuple[float, ...], ...] = ((0.0,) * len(FEATURES),) * SORTS
    bias: float = 0.0
    offsets: tuple[float, ...] = ()  # for each relation, inverses together

    @cached_property
    def matrix(self) -> Scores:
        """The weights as (sorts, features)."""
        return np.array(self.by_sort, np.float32)


@dataclass
class LinkPredictor(LinkFeatures):
    """Link probabilities for a graph and models of it; threads may share it."""

    weights: LinkWeights
    missing: float = 1.0  # assumed number of missing triples, as a multiple of those that the weights were fitted for

    def __post_init__(self) -> None:
        super().__post_init__()
        self.head_scores = lru_cache(cache_size(len(self.vectors)))(self._head_scores)
        self.has_loops = lru_cache(None)(self._has_loops)
        self._rows: dict[tuple[int, int], Tensor | None] = {}

    def sorts(self, relation: int, heads: Tails = slice(None)) -> NDArray[np.int64]:
        """Return which weights each head has: those for none, few or many known tails."""
        return np.searchsorted(KNOWN_TAILS, self.known_tails(relation)[heads], side="right")

    def _head_scores(self, relation: int) -> Scores:
        return self._weighted(relation, np.arange(len(self.vectors)))

    def _weighted(self, relation: int, heads: Ids) -> Scores:
        weights = self.weights.matrix[self.sorts(relation, heads)]
        return np.einsum("ij,ij->i", self.head_features(relation, heads), weights)

    def _of_tails(self, relation: int, tails: Tails) -> Scores:
        """Log-odds that some tails of a relation contribute as heads of its inverse."""
        if len(self.vectors) > LARGE and not isinstance(tails, slice):
            return self._weighted(relation ^ 1, tails)
        return self.head_scores(relation ^ 1)[tails]

    @torch.no_grad()
    def log_odds(self, heads: Ids, relation: int, tails: Tails = slice(None)) -> Tensor:
        """Log-odds of the link from each head to each tail entity, default all: (heads, tails)."""
        weights = self.weights
        own = torch.from_numpy(weights.matrix[self.sorts(relation, heads)])
        others = torch.from_numpy(weights.matrix[self.sorts(relation ^ 1, tails)])
        constant = weights.bias + (weights.offsets[relation // 2] if weights.offsets else 0.0) + log(self.missing)
        of_heads, of_tails = self._weighted(relation, heads), self._of_tails(relation, tails)
        log_odds = torch.from_numpy(of_heads[:, None] + (of_tails + np.float32(constant)))
        for column, (there, back) in enumerate(self.pair_features(heads, relation, tails)):
            log_odds.add_(there.mul_(own[:, column, None])).add_(back.mul_(others[:, column]))
        return log_odds

    def probabilities(self, heads: Ids, relation: int, tails: Tails = slice(None)) -> Tensor:
        """Probability of the missing link from each head to each tail; 0 for known triples: (heads, tails).

        It is also 0 from an entity to itself, if the graph has no such triple of this relation.
        """
        if len(self.vectors) > LARGE:
            return self._computed(heads, relation, tails)
        rows = {head: self._rows.get((head, relation)) for head in heads.tolist()}
        new = np.array([head for head, row in rows.items() if row is None], dtype=np.int64)
        if len(new):
            rows |= zip(new.tolist(), self._computed(new, relation, slice(None)), strict=True)
            self._remember({(head, relation): rows[head] for head in new.tolist()})
        return torch.stack([row[tails] for row in rows.values() if row is not None])

    def _remember(self, rows: dict[tuple[int, int], Tensor | None]) -> None:
        """Keep rows of probabilities: the links of an answer are asked for again by its explanation."""
        self._rows |= rows
        excess = len(self._rows) - CACHE // len(self.vectors)
        if excess > 0:
            for oldest in list(self._rows)[:excess]:  # a list, since other threads keep rows meanwhile
                self._rows.pop(oldest, None)

    def _computed(self, heads: Ids, relation: int, tails: Tails) -> Tensor:
        likely = torch.sigmoid_(self.log_odds(heads, relation, tails))
        for row, head in enumerate(heads.tolist()):
            excluded = self.graph.tails_of(head, relation).astype(np.int64)
            if not self.has_loops(relation):
                excluded = np.append(excluded, head)
            likely[row, torch.from_numpy(_positions(excluded, tails))] = 0.0
        return likely

    def probability(self, head: int, relation: int, tail: int) -> float:
        """Probability of one triple; 1 if it is known."""
        if tail in self.graph.tails_of(head, relation):
            return 1.0
        return float(self.probabilities(np.array([head]), relation, np.array([tail]))[0, 0])

    def _has_loops(self, relation: int) -> bool:
        heads, tails = self.triples.of_relation(relation)
        return bool((heads == tails).any())


def _positions(entities: Ids, tails: Tails) -> Ids:
    """Return where entities stand among the tails, those that do."""
    if not isinstance(tails, slice):
        return np.flatnonzero(np.isin(tails, entities))
    first, last = tails.start or 0, tails.stop
    return entities[(entities >= first) & (last is None or entities < last)] - first
