"""Link prediction: the probability of a triple.

A known triple has probability 1. Any other triple gets a logistic score over features: embedding similarity in both
directions, votes of similar heads, rule confidence and tail statistics. The weights are fitted on held-out triples by
`fit_link_weights`.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction._link_kernels import pass_on
from halfgraph.prediction.base import Scores
from halfgraph.prediction.baselines import LEAST_SOURCE, TriplesByRelation, one_hot
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.rules import Rules

Ids = NDArray[np.int64]

TEMPERATURE = 0.1  # of the cosine level
LEVEL_SAMPLE = 32_768  # entities that the cosine level of a head is computed on; a sample in larger graphs
NO_VOTE, NO_RULE, NO_TRIPLE = 1e-4, 1e-3, 1e-5  # added before taking the logarithm
CHUNK = 1 << 22  # probabilities in memory at a time: 16 MB
CACHE = 1 << 25  # cached numbers, one or three for each entity and relation: 128 MB
LEAST_CACHED, MOST_CACHED = 16, 1024  # relations


@dataclass(frozen=True)
class LinkWeights:
    """Weights of the link features, in log-odds."""

    bias: float = 0.0
    cosine: float = 0.0  # similarity of the projected head and the tail
    inverse_cosine: float = 0.0  # similarity of the head and the tail projected along the inverse relation
    level: float = 0.0  # log-sum-exp of the projected head's cosines with all entities
    vote: float = 0.0  # log of the share of votes of similar heads
    rules: float = 0.0  # log of the probability by rules
    popularity: float = 0.0  # log of the share of this relation's triples that have this tail
    is_tail: float = 0.0  # 1 if the entity is a tail of this relation anywhere
    log_tail_count: float = 0.0  # log of the number of triples of this relation with this tail
    log_known_tails: float = 0.0  # log of the number of known tails of the head
    anchored_without_tail: float = 0.0  # 1 if the query names this head and the graph has no tail for it
    offsets: tuple[float, ...] = ()  # for each relation with enough data


@dataclass(frozen=True)
class LinkEvidence:
    """Features of the links from a source distribution along a relation: one value for each tail entity."""

    known: Scores  # best score of a head with a known triple to this tail
    vote: Scores  # log of shares
    rules: Scores  # log of probabilities
    popularity: Scores  # (3, entities): features `popularity`, `is_tail` and `log_tail_count`


@dataclass
class LinkPredictor:
    """Link probabilities for a graph and a model of it. Not thread-safe: give each thread a `copy`."""

    index: EmbeddingIndex
    graph: KnowledgeGraph
    weights: LinkWeights

    def __post_init__(self) -> None:
        self.vectors = self.index.vectors.float().cpu().contiguous()  # (entities, d), of length one
        self.level_sample = self.vectors[:: -(-len(self.vectors) // LEVEL_SAMPLE)]
        self.triples = TriplesByRelation.of(self.graph)
        self.triples.same_tails  # noqa: B018  computed once, for all threads
        self.scratch = self.triples.scratch()
        self.popularity = lru_cache(_cache_size(3 * len(self.vectors)))(self._popularity)
        self.inverse_lengths = lru_cache(_cache_size(len(self.vectors)))(self._inverse_lengths)
        self.affine = lru_cache(_cache_size(self.vectors.shape[1] ** 2))(self._affine)
        self.rules = lru_cache(maxsize=4096)(partial(Rules.of, self.triples))

    def copy(self, weights: LinkWeights | None = None) -> "LinkPredictor":
        """Return a copy for another thread, or with other weights; caches are shared."""
        other = copy(self)
        other.weights = weights or self.weights
        other.scratch = self.triples.scratch()
        return other

    def _popularity(self, relation: int) -> Scores:
        """Features of each entity as a tail of a relation: log share, whether it is one, log count."""
        tails = self.triples.of_relation(relation)[1]
        counts = np.bincount(tails, minlength=len(self.vectors))
        shares = counts / max(len(tails), 1)
        return np.stack([np.log(shares + NO_TRIPLE), counts > 0, np.log1p(counts)]).astype(np.float32)

    @torch.no_grad()
    def _inverse_lengths(self, relation: int) -> torch.Tensor:
        """Return 1 / length of every entity's projected embedding."""
        matrix, shift = self.affine(relation)
        chunks = (torch.addmm(shift, chunk, matrix).norm(dim=1) for chunk in self.vectors.split(CHUNK // 64))
        return 1.0 / torch.cat(list(chunks)).clamp(min=1e-6)

    def _project(self, vectors: torch.Tensor, relation: int) -> torch.Tensor:
        encoder = self.index.encoder
        relations = torch.full((len(vectors),), relation, device=encoder.device)
        projected: torch.Tensor = encoder.projection(vectors.to(encoder.device), relations)
        return projected.float().cpu()

    @torch.no_grad()
    def _affine(self, relation: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a projection as the affine map that it is: a matrix (d, d) and a shift (1, d)."""
        shift = self._project(torch.zeros(1, self.vectors.shape[1]), relation)
        return self._project(torch.eye(self.vectors.shape[1]), relation) - shift, shift

    def _known_tails(self, heads: Ids, relation: int) -> Ids:
        return np.array([len(self.graph.tails_of(head, relation)) for head in heads.tolist()])

    def evidence(self, source: Scores, relation: int) -> LinkEvidence:
        """Compute the features of links from a source distribution (entities,), which has a score above 0."""
        known, votes = self.triples.votes(source, relation, self.scratch)
        best = np.flatnonzero(source >= np.float32(LEAST_SOURCE * source.max()))
        by_rules = self.rules(relation).apply(self.triples.edges, best, source[best] / source.max(), self.scratch)
        logarithms = (np.log(votes + np.float32(NO_VOTE)), np.log(by_rules + np.float32(NO_RULE)))
        return LinkEvidence(known, *logarithms, self.popularity(relation))

    @torch.no_grad()
    def _projected_heads(self, heads: Ids, relation: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the projected heads at length one (n, d), and the level of their cosines (n,)."""
        matrix, shift = self.affine(relation)
        projected = F.normalize(torch.addmm(shift, self.vectors[torch.from_numpy(heads)], matrix), dim=1)
        return projected, torch.logsumexp(projected @ self.level_sample.t() / TEMPERATURE, dim=1)

    @torch.no_grad()
    def _inverse_cosine_parts(self, heads: Ids, relation: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return M (n, d) and s (n, 1): (M v + s) / length is the cosine of each head with the projected tail v.

        The length is that of the projected tail (`inverse_lengths` of the inverse relation).
        """
        matrix, shift = self.affine(relation ^ 1)
        vectors = self.vectors[torch.from_numpy(heads)]
        return vectors @ matrix.t(), vectors @ shift.t()

    @torch.no_grad()
    def log_odds(
        self,
        heads: Ids,
        relation: int,
        evidence: LinkEvidence,
        tails: slice | Ids = slice(None),
        *,
        anchored: bool = False,
    ) -> torch.Tensor:
        """Log-odds of the link from each head to each tail entity, default all: (heads, tails).

        anchored: the query names the heads.
        """
        weights = self.weights
        tail_weights = np.array([weights.popularity, weights.is_tail, weights.log_tail_count], np.float32)
        of_tail = tail_weights @ evidence.popularity[:, tails]
        of_tail += weights.vote * evidence.vote[tails] + weights.rules * evidence.rules[tails]
        of_tail += np.float32(weights.bias + (weights.offsets[relation] if weights.offsets else 0.0))
        projected, level = self._projected_heads(heads, relation)
        known_tails = self._known_tails(heads, relation)
        counted = weights.log_known_tails * np.log1p(known_tails)
        counted = counted + weights.anchored_without_tail * (anchored & (known_tails == 0))
        of_head = weights.level * level + torch.from_numpy(counted.astype(np.float32))
        vectors = self.vectors[tails]
        log_odds = torch.addmm(torch.from_numpy(of_tail), projected * weights.cosine, vectors.t())
        if weights.inverse_cosine:
            products, shift = self._inverse_cosine_parts(heads, relation)
            cosines, lengths = torch.addmm(shift, products, vectors.t()), self.inverse_lengths(relation ^ 1)[tails]
            log_odds.addcmul_(cosines, lengths, value=weights.inverse_cosine)
        return log_odds.add_(of_head[:, None])

    def probabilities(
        self, heads: Ids, relation: int, evidence: LinkEvidence, tails: slice | Ids, *, anchored: bool
    ) -> torch.Tensor:
        """Probability of the link from each head to each tail entity, known triples aside: (heads, tails)."""
        return torch.sigmoid_(self.log_odds(heads, relation, evidence, tails, anchored=anchored))

    @torch.no_grad()
    def features(self, head: int, relation: int) -> NDArray[np.float32]:
        """Features of the links from an anchored head to every entity, in the order of the weights: (entities, 10)."""
        heads = np.array([head])
        evidence = self.evidence(one_hot(head, len(self.vectors)), relation)
        projected, level = self._projected_heads(heads, relation)
        products, shift = self._inverse_cosine_parts(heads, relation)
        inverse = (self.vectors @ products[0] + shift[0]) * self.inverse_lengths(relation ^ 1)
        known_tails = self._known_tails(heads, relation)
        cosine, of_head = (self.vectors @ projected[0]).numpy(), (np.log1p(known_tails), known_tails == 0)
        of_tail = (evidence.vote, evidence.rules, *evidence.popularity)
        columns = (cosine, inverse.numpy(), level.numpy(), *of_tail, *of_head)
        return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.float32)


@dataclass(frozen=True)
class CosineLinks:
    """Link probabilities from the cosine alone: for the embedding mode, and for runs without fitted weights."""

    index: EmbeddingIndex
    triples: TriplesByRelation
    calibrate: Callable[[NDArray[np.float64]], NDArray[np.float64]]  # cosines to probabilities

    @property
    def graph(self) -> KnowledgeGraph:
        return self.triples.graph

    def evidence(self, source: Scores, relation: int) -> LinkEvidence:
        no_votes = np.zeros_like(source)
        known, _ = pass_on(*self.triples.of_relation(relation), source, no_votes)
        return LinkEvidence(known, no_votes, no_votes, no_votes)

    @torch.no_grad()
    def probabilities(
        self, heads: Ids, relation: int, evidence: LinkEvidence, tails: slice | Ids, *, anchored: bool
    ) -> torch.Tensor:
        del evidence, anchored  # features of LinkPredictor
        vectors, device = self.index.vectors, self.index.encoder.device
        relations = torch.full((len(heads),), relation, device=device)
        projected = self.index.encoder.projection(vectors[torch.from_numpy(heads)], relations)
        cosines = (F.normalize(projected, dim=-1) @ vectors[tails].t()).double().cpu().numpy()
        return torch.from_numpy(np.clip(self.calibrate(cosines), 1e-6, 1 - 1e-6).astype(np.float32))


def _cache_size(numbers: int) -> int:  # relations for which this many numbers each are cached
    return max(LEAST_CACHED, min(MOST_CACHED, CACHE // numbers))
