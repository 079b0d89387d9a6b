"""Link prediction: the probability of a triple, the same number wherever it is needed.

A known triple has probability 1. Any other triple gets a logistic regression over features of the link, each taken in
both directions and added: from the head along the relation, and from the tail along its inverse. So the probability
does not depend on which end a query starts from. The weights are fitted on held-out triples by `fit_link_weights`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from math import log
from operator import itemgetter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.prediction._link_kernels import add_votes, exclude_known, sum_terms
from halfgraph.prediction.base import Scores, map_chunks
from halfgraph.prediction.link_features import (
    CACHE,
    CHUNK,
    FEATURES,
    NO_SHARE,
    SMOOTHING,
    TEMPERATURE,
    Ids,
    LinkFeatures,
    Tails,
    cache_size,
    products,
)
from halfgraph.prediction.neighbours import Neighbours

LARGE = 100_000  # entities above which a relation is scored for some tails only, and no rows are kept
KNOWN_TAILS = (1, 5)  # a head has no known tails, a few, or at least this many: each has its own weights
SORTS = len(KNOWN_TAILS) + 1
COSINE, COMPLEX, VOTE = range(3)  # columns of the features of a pair
ASSUMED_MISSING = 0.1  # share of missing triples, for a first estimate
TALL = 16  # queries from which on the library multiplies faster with the table first
ROUNDING = 1e-2  # of log-odds, added to bounds
Pair = tuple[int, int]  # head and relation
Group = tuple[int, Ids]  # a relation and some heads


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


@dataclass(frozen=True)
class Prepared:
    """What takes long to compute for a graph, so that a first query need not wait for it."""

    neighbours: Neighbours
    head_scores: Scores  # (relations, entities)

    def check(self, entity_count: int, relation_count: int) -> None:
        """Raise ValueError unless the arrays have the shapes and ranges of a graph."""
        ids, nearness, scores = self.neighbours.ids, self.neighbours.nearness, self.head_scores
        types = [array.dtype.name for array in (ids, nearness, scores)]
        is_right = types == ["int32", "float32", "float32"] and scores.shape == (relation_count, entity_count)
        is_right = is_right and ids.shape == nearness.shape and ids.ndim == 2 and len(ids) == entity_count
        if not is_right or ids.min(initial=0) < -1 or ids.max(initial=-1) >= entity_count:
            raise ValueError("its prepared numbers do not fit the graph")
        if not (np.isfinite(nearness).all() and np.isfinite(scores).all()):
            raise ValueError("its prepared numbers are not finite")


@dataclass
class LinkPredictor(LinkFeatures):
    """Link probabilities for a graph and models of it; threads may share it."""

    weights: LinkWeights
    missing: float = 1.0  # assumed number of missing triples, as a multiple of those that the weights were fitted for
    prepared: Prepared | None = None  # of the same graph, models and weights

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prepared is not None:
            self.neighbours = self.prepared.neighbours
        self.head_scores = lru_cache(cache_size(len(self.vectors)))(self._head_scores)
        self.has_loops = lru_cache(None)(self._has_loops)
        self.tail_weights = lru_cache(cache_size(2 * len(self.vectors)))(self._tail_weights)
        self.missing_tails = lru_cache(cache_size(len(self.vectors)))(self._missing_tails)
        self._rows: dict[Pair, Scores] = {}

    def sorts(self, relation: int, heads: Tails = slice(None)) -> NDArray[np.int64]:
        """Return which weights each head has: those for none, few or many known tails."""
        return np.searchsorted(KNOWN_TAILS, self.known_tails(relation)[heads], side="right")

    def _head_scores(self, relation: int) -> Scores:
        return self._weighted(relation, np.arange(len(self.vectors)))

    def prepare(self, progress: Callable[[int], None]) -> Prepared:
        """Compute what takes long."""
        neighbours, scores = self.neighbours, np.empty((self.graph.relation_count, len(self.vectors)), np.float32)
        for relations, own in map_chunks(lambda rows: self._head_scores(rows.start), len(scores), 1):
            scores[relations] = own
            progress(1)
        return Prepared(neighbours, scores)

    def _weighted(self, relation: int, heads: Ids) -> Scores:
        """Log-odds that some heads of a relation contribute, whatever the tail."""
        if self.prepared is not None:
            return self.prepared.head_scores[relation, heads]
        weights = self.weights.matrix[self.sorts(relation, heads)]
        return np.einsum("ij,ij->i", self.head_features(relation, heads), weights)

    def _missing_tails(self, relation: int) -> Scores:
        """Estimate how many tails of a relation each entity lacks, by features of the entity alone.

        In all they are `ASSUMED_MISSING` of the relation's triples: good enough to choose heads to compute rows for.
        """
        known, weights = self.known_tails(relation), self.weights.matrix[self.sorts(relation)]
        share = self.voters(relation) / self.neighbours.totals
        columns = (self.log_further(relation)[known], np.log(share + NO_SHARE), np.log1p(known), np.ones(len(known)))
        log_odds = np.einsum("ij,ji->i", weights[:, -len(columns) :], np.stack(columns))
        shares = np.exp(log_odds - log_odds.max())
        return (shares * (ASSUMED_MISSING * (known.sum() + 1) / shares.sum())).astype(np.float32)

    def _of_tails(self, relation: int, tails: Tails) -> Scores:
        """Log-odds that some tails of a relation contribute as heads of its inverse."""
        if len(self.vectors) > LARGE and not isinstance(tails, slice):
            return self._weighted(relation ^ 1, tails)
        return self.head_scores(relation ^ 1)[tails]

    def _tail_weights(self, relation: int) -> tuple[Scores, Scores]:
        """Weights of a tail's cosine with the head, and of the vote of one of its neighbours: (entities,) each."""
        weights = self.weights.matrix[self.sorts(relation ^ 1)]
        lengths = (TEMPERATURE / self.inverse_lengths(relation ^ 1)).numpy()
        return weights[:, COSINE] / lengths, weights[:, VOTE] / (self.voters(relation ^ 1) + np.float32(SMOOTHING))

    def _queries(self, relation: int, heads: Ids) -> tuple[Tensor, ...]:
        """Vectors of heads whose products with the tails' vectors are terms of the log-odds, and terms of the heads.

        The vectors are for weighted cosines of the projected heads; for cosines of the projected tails, to be shifted
        and weighted; for ComplEx in both directions, weighted as for tails without a known head; and for ComplEx from
        the tails. The other terms are the shifts and the constants: (heads,) each.
        """
        ids, weights = torch.from_numpy(heads), self.weights.matrix
        own = torch.from_numpy(weights[self.sorts(relation, heads)])
        there = self._projected(ids, relation) * (own[:, COSINE, None] / TEMPERATURE)
        matrix, shift = self.affine(relation ^ 1)
        back, shifts = products(self.vectors[ids], matrix), products(self.vectors[ids], shift)[:, 0]
        from_tails = self.complex.head_queries(ids, relation ^ 1)
        both = self.complex.tail_queries(ids, relation) * own[:, COMPLEX, None]
        both += from_tails * float(weights[0, COMPLEX])
        offset = self.weights.offsets[relation // 2] if self.weights.offsets else 0.0
        constants = self._weighted(relation, heads) + np.float32(self.weights.bias + offset + log(self.missing))
        return there, back, both, from_tails, shifts, torch.from_numpy(constants)

    @torch.no_grad()
    def _log_odds(self, groups: Sequence[Group], tails: Tails) -> Scores:
        """Log-odds of the links from heads, grouped by relation, to tail entities: (heads of all groups, tails)."""
        queries = [self._queries(*group) for group in groups]
        there, back, both, from_tails, shifts, constants = map(torch.cat, zip(*queries, strict=True))
        cosines = _by_table(torch.cat([there, back]), self.vectors[tails])
        scores = _by_table(both, self.complex.entities[tails])
        log_odds, first = np.empty(scores.T.shape, np.float32), 0
        for relation, heads in groups:
            rows = slice(first, first + len(heads))
            terms = constants[rows].numpy(), shifts[rows].numpy(), self._of_tails(relation, tails)
            sum_terms(cosines, scores, first, *terms, self.tail_weights(relation)[0][tails], log_odds)
            self._add_known_heads(log_odds[rows], from_tails[rows], relation, tails)
            self._add_votes(log_odds[rows], relation, heads, tails)
            first = rows.stop
        return log_odds

    def _add_known_heads(self, log_odds: Scores, from_tails: Tensor, relation: int, tails: Tails) -> None:
        """Add what the scores of ComplEx weigh more for tails with known heads than for those without."""
        sorts = self.sorts(relation ^ 1, tails)
        others = np.flatnonzero(sorts)
        more = self.weights.matrix[sorts[others], COMPLEX] - self.weights.matrix[0, COMPLEX]
        table = self.complex.entities[tails][torch.from_numpy(others)]
        log_odds[:, others] += products(from_tails, table).numpy() * more

    def _add_votes(self, log_odds: Scores, relation: int, heads: Ids, tails: Tails) -> None:
        near, tail_weights = self.neighbours, self.tail_weights(relation)[1]
        weights = self.weights.matrix[self.sorts(relation, heads), VOTE]
        for row, head, weight in zip(log_odds, heads.tolist(), weights, strict=True):
            votes = row if isinstance(tails, slice) else np.zeros(len(self.vectors), np.float32)
            arrays = self.triples.edges, near.ids, near.nearness, near.reverse
            add_votes(*arrays, head, relation, weight, np.float32(SMOOTHING), tail_weights, votes)
            if votes is not row:
                row += votes[tails]

    @torch.no_grad()
    def log_odds_bounds(self, heads: Ids, relation: int) -> Scores:
        """Upper bounds of the log-odds of the links from heads to all entities, for less work: (heads, entities).

        Votes and what the ends contribute alone are exact. A cosine is at most 1, and a score of ComplEx at most the
        product of the lengths of its two vectors.
        """
        _, _, both, from_tails, _, constants = self._queries(relation, heads)
        weights, sorts = self.weights.matrix, self.sorts(relation ^ 1)
        longest = self.complex.entities.norm(dim=1).max().item()
        more = float(np.abs(weights[:, COMPLEX] - weights[0, COMPLEX]).max())
        of_heads = constants.numpy() + np.abs(weights[self.sorts(relation, heads), COSINE]) / TEMPERATURE
        of_heads += longest * (both.norm(dim=1) + more * from_tails.norm(dim=1)).numpy()
        of_tails = self._of_tails(relation, slice(None)) + np.abs(weights[sorts, COSINE]) / TEMPERATURE
        bounds: Scores = of_heads[:, None].astype(np.float32) + of_tails + np.float32(ROUNDING)
        self._add_votes(bounds, relation, heads, slice(None))
        return bounds

    def log_odds(self, heads: Ids, relation: int, tails: Tails = slice(None)) -> Scores:
        """Log-odds of the link from each head to each tail entity, default all: (heads, tails)."""
        return self._log_odds([(relation, heads)], tails)

    def probabilities(self, heads: Ids, relation: int, tails: Tails = slice(None)) -> Scores:
        """Probability of the missing link from each head to each tail; 0 for known triples: (heads, tails).

        It is also 0 from an entity to itself, if the graph has no such triple of this relation.
        """
        if len(self.vectors) > LARGE:
            return self.computed([(relation, heads)], tails)
        rows = self.rows([(head, relation) for head in heads.tolist()])
        return np.stack([row[tails] for row in rows.values()])

    def rows(self, pairs: Iterable[Pair]) -> dict[Pair, Scores]:
        """Return the probabilities of all missing links of pairs of head and relation: (entities,) each."""
        rows = {pair: self._rows.get(pair) for pair in pairs}
        new = sorted((pair for pair, row in rows.items() if row is None), key=itemgetter(1, 0))
        size = max(1, CHUNK // (4 * len(self.vectors)))
        for first in range(0, len(new), size):
            block = new[first : first + size]
            by_relation = groupby(block, key=itemgetter(1))
            groups = [(relation, np.array([head for head, _ in some], np.int64)) for relation, some in by_relation]
            computed = {pair: row.copy() for pair, row in zip(block, self.computed(groups), strict=True)}
            rows |= computed
            self._remember(computed)
        return {pair: row for pair, row in rows.items() if row is not None}

    def _remember(self, rows: dict[Pair, Scores]) -> None:
        """Keep rows of probabilities: the links of an answer are asked for again by its explanation."""
        self._rows |= rows
        excess = len(self._rows) - CACHE // len(self.vectors)
        if excess > 0:
            for oldest in list(self._rows)[:excess]:  # a list, since other threads keep rows meanwhile
                self._rows.pop(oldest, None)

    def computed(self, groups: Sequence[Group], tails: Tails = slice(None)) -> Scores:
        """Return the probabilities of missing links as `probabilities` does, without looking for kept rows."""
        likely = torch.from_numpy(self._log_odds(groups, tails)).sigmoid_().numpy()
        pairs = ((head, relation) for relation, heads in groups for head in heads.tolist())
        for row, (head, relation) in zip(likely, pairs, strict=True):
            possible = row if isinstance(tails, slice) else np.ones(len(self.vectors), np.float32)
            exclude_known(self.triples.edges, head, relation, self.has_loops(relation), possible)
            if possible is not row:
                row *= possible[tails]
        return likely

    def probability(self, head: int, relation: int, tail: int) -> float:
        """Probability of one triple; 1 if it is known."""
        if tail in self.graph.tails_of(head, relation):
            return 1.0
        return float(self.probabilities(np.array([head]), relation, np.array([tail]))[0, 0])

    def _has_loops(self, relation: int) -> bool:
        heads, tails = self.triples.of_relation(relation)
        return bool((heads == tails).any())


def _by_table(queries: Tensor, table: Tensor) -> Scores:
    """Return the products of the rows of a table with queries: (rows, queries)."""
    if len(queries) < TALL:
        return products(queries, table).t().contiguous().numpy()
    return (table @ queries.t()).numpy()
