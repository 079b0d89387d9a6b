"""Features of a link, by models and by statistics of the graph, in both directions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.complex import ComplEx
from halfgraph.prediction._link_kernels import head_votes, tail_votes
from halfgraph.prediction.base import Scores
from halfgraph.prediction.baselines import TriplesByRelation
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.neighbours import Neighbours

Ids = NDArray[np.int64]
Tails = slice | Ids

TEMPERATURE = 0.1  # of cosines
FREQUENT, UNIFORM = 128, 128  # tails of a relation, and random entities, that normalisers are estimated on
LEAST_LEFT = 1e-4  # of a normaliser, when known tails are taken out
SMOOTHING = 0.02  # nearness of neighbours added to those that vote: few neighbours count less
NO_SHARE = 1e-2  # added before taking the logarithm
CHUNK = 1 << 22  # numbers in memory at a time: 16 MB
CACHE = 1 << 24  # cached numbers of each sort: 64 MB
LEAST_CACHED, MOST_CACHED = 16, 2048  # relations
# "Head" is the end that a link starts from, in either direction. The first three are of the pair of ends.
FEATURES = {
    "cosine": "log-softmax over the tails of the cosines with the projected head, by CGA",
    "complex": "log-softmax over the unknown tails of the scores of ComplEx",
    "vote": "share of the head's neighbours with this relation that have a link to the tail",
    "further": "log of the share of heads with as many known tails that have yet another",
    "neighbour_share": "log of the share of the head's neighbours that have the relation",
    "log_known": "log of 1 + the number of known tails",
    "constant": "1",
}


@dataclass
class LinkFeatures:
    """Features of the links of a graph; threads may share it."""

    index: EmbeddingIndex
    complex: ComplEx
    graph: KnowledgeGraph

    def __post_init__(self) -> None:
        self.vectors = self.index.vectors.float().cpu().contiguous()  # (entities, d), of length one
        self.triples = TriplesByRelation.of(self.graph)
        size = len(self.vectors)
        self.affine = lru_cache(cache_size(self.vectors.shape[1] ** 2))(self._affine)
        self.inverse_lengths = lru_cache(cache_size(size))(self._inverse_lengths)
        self.voters = lru_cache(cache_size(size))(self._voters)
        self.known_tails = lru_cache(cache_size(size))(self._known_tails)
        self.candidates = lru_cache(MOST_CACHED)(self._candidates)
        self.log_further = lru_cache(MOST_CACHED)(self._log_further)

    @cached_property
    def neighbours(self) -> Neighbours:
        """The nearest neighbours of all entities."""
        neighbours = Neighbours.of(self.graph)
        neighbours.reverse  # noqa: B018  computed once, for all threads
        return neighbours

    # Models

    @torch.no_grad()
    def _affine(self, relation: int) -> tuple[Tensor, Tensor]:
        """Return a projection of CGA as the affine map that it is: a matrix (d, d) and a shift (1, d)."""
        shift = self._project(torch.zeros(1, self.vectors.shape[1]), relation)
        return self._project(torch.eye(self.vectors.shape[1]), relation) - shift, shift

    def _project(self, vectors: Tensor, relation: int) -> Tensor:
        encoder = self.index.encoder
        relations = torch.full((len(vectors),), relation, device=encoder.device)
        projected: Tensor = encoder.projection(vectors.to(encoder.device), relations)
        return projected.float().cpu()

    @torch.no_grad()
    def _inverse_lengths(self, relation: int) -> Tensor:
        """Return 1 / length of every entity's projected embedding."""
        matrix, shift = self.affine(relation)
        chunks = (torch.addmm(shift, chunk, matrix).norm(dim=1) for chunk in self.vectors.split(CHUNK // 64))
        return torch.cat(list(chunks)).clamp(min=1e-6).reciprocal()

    def _projected(self, heads: Tensor, relation: int) -> Tensor:
        matrix, shift = self.affine(relation)
        return F.normalize(products(self.vectors[heads], matrix.t()).add_(shift), dim=1)

    # Features of a head whatever the tail

    def _candidates(self, relation: int) -> tuple[Tensor, Tensor]:
        """Return entities to estimate normalisers on, frequent tails and random others, and the logs of weights."""
        counts = np.bincount(self.triples.of_relation(relation)[1], minlength=len(self.vectors))
        frequent = np.argsort(-counts, kind="stable")[:FREQUENT]
        frequent = frequent[counts[frequent] > 0]
        drawn = np.random.default_rng(relation).integers(len(counts), size=UNIFORM)
        others = np.setdiff1d(drawn, frequent)
        weights = np.ones(len(frequent) + len(others))
        weights[len(frequent) :] = max(len(counts) - len(frequent), 1) / max(len(others), 1)
        return torch.from_numpy(np.concatenate([frequent, others])), torch.from_numpy(np.log(weights)).float()

    @torch.no_grad()
    def normalisers(self, relation: int, heads: Ids) -> tuple[Tensor, Tensor]:
        """Return the log-normalisers of CGA over all tails and of ComplEx over unknown tails, for some heads."""
        candidates, log_weights = self.candidates(relation)
        queries = self.complex.head_queries(candidates, relation)
        cosines, scores = [], []
        for chunk in torch.from_numpy(heads).split(CHUNK // 512):
            logits = products(self._projected(chunk, relation), self.vectors[candidates]) / TEMPERATURE
            cosines.append(torch.logsumexp(logits.add_(log_weights), dim=1))
            logits = products(self.complex.entities[chunk], queries).add_(log_weights)
            scores.append(_logsumexp_of_unknown(logits, self._known_candidates(chunk, relation, candidates)))
        return torch.cat(cosines), torch.cat(scores)

    def _known_candidates(self, heads: Tensor, relation: int, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of heads and of candidates between which the graph has a triple."""
        rows, columns = (np.full(len(self.vectors), -1) for _ in range(2))
        rows[heads.numpy()], columns[candidates.numpy()] = np.arange(len(heads)), np.arange(len(candidates))
        ends = self.triples.of_relation(relation)
        row, column = rows[ends[0]], columns[ends[1]]
        inside = (row >= 0) & (column >= 0)
        return torch.from_numpy(row[inside]), torch.from_numpy(column[inside])

    def head_features(self, relation: int, heads: Ids) -> Scores:
        """Features of some entities as heads of a relation, whatever the tail: (heads, features)."""
        known = self.known_tails(relation)[heads]
        share = self.voters(relation)[heads] / self.neighbours.totals[heads]
        cosines, scores = self.normalisers(relation, heads)
        columns = (
            -cosines.numpy(),
            -scores.numpy(),
            np.zeros(len(heads)),
            self.log_further(relation)[known],
            np.log(share + NO_SHARE),
            np.log1p(known),
            np.ones(len(heads)),
        )
        return np.stack(columns, axis=1).astype(np.float32)

    def _log_further(self, relation: int) -> NDArray[np.float64]:
        """Log of the share of heads with at least as many known tails that have one more, by their number; 0 for 0."""
        at_least = np.bincount(self.known_tails(relation))[::-1].cumsum()[::-1].astype(np.float64)
        further = np.log((np.append(at_least[1:], 0.0) + 0.5) / (at_least + 1.0))
        further[0] = 0.0
        return further

    def _known_tails(self, relation: int) -> NDArray[np.int64]:
        """Number of known tails of every entity."""
        return np.bincount(self.triples.of_relation(relation)[0], minlength=len(self.vectors))

    def _voters(self, relation: int) -> Scores:
        """Nearness of each entity's neighbours that have the relation, in all."""
        has_relation = np.zeros(len(self.vectors), dtype=bool)
        has_relation[self.triples.of_relation(relation)[0]] = True
        return self.neighbours.sums(has_relation)

    # Features of a pair

    def votes(self, head: int, relation: int) -> tuple[Scores, Scores]:
        """Share of the head's neighbours for each tail, and of each tail's neighbours for the head."""
        votes, total = head_votes(self.triples.edges, self.neighbours.ids, self.neighbours.nearness, head, relation)
        back = tail_votes(*self.neighbours.reverse, self.graph.tails_of(head, relation))
        return votes / np.float32(total + SMOOTHING), back / (self.voters(relation ^ 1) + np.float32(SMOOTHING))

    @torch.no_grad()
    def _cosines(self, heads: Tensor, relation: int, tails: Tails) -> tuple[Tensor, Tensor]:
        """Scaled cosines from the heads to the tails, and from the tails to the heads: (heads, tails) each."""
        own, vectors = self.vectors[heads], self.vectors[tails]
        matrix, shift = self.affine(relation ^ 1)
        back = torch.addmm(own @ shift.t(), own @ matrix.t(), vectors.t())
        back.mul_(self.inverse_lengths(relation ^ 1)[tails] / TEMPERATURE)
        return (self._projected(heads, relation) / TEMPERATURE) @ vectors.t(), back

    def _complex_scores(self, heads: Tensor, relation: int, tails: Tails) -> tuple[Tensor, Tensor]:
        """Scores of ComplEx from the heads to the tails, and from the tails to the heads: (heads, tails) each."""
        queries = self.complex.tail_queries(heads, relation), self.complex.head_queries(heads, relation ^ 1)
        there, back = (torch.cat(queries) @ self.complex.entities[tails].t()).chunk(2)
        return there, back

    def pair_features(self, heads: Ids, relation: int, tails: Tails) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield cosines, scores of ComplEx and votes in both directions, not normalised: (heads, tails) each."""
        ids = torch.from_numpy(heads)
        yield self._cosines(ids, relation, tails)
        yield self._complex_scores(ids, relation, tails)
        votes = [[own[tails] for own in self.votes(head, relation)] for head in heads.tolist()]
        there, back = (torch.from_numpy(np.stack(own)) for own in zip(*votes, strict=True))
        yield there, back

    def features(self, head: int, relation: int, tails: Ids) -> tuple[Scores, Scores]:
        """Features of the links from a head to some tails, and from these tails to it: (tails, features) each."""
        there = np.repeat(self.head_features(relation, np.array([head])), len(tails), axis=0)
        back = self.head_features(relation ^ 1, tails)
        for column, (forward, backward) in enumerate(self.pair_features(np.array([head]), relation, tails)):
            there[:, column] += forward[0].numpy()
            back[:, column] += backward[0].numpy()
        return there, back


def _logsumexp_of_unknown(logits: Tensor, known: tuple[Tensor, Tensor]) -> Tensor:
    """Log-sum-exp of each row without the known columns; the logits are overwritten."""
    highest = logits.amax(dim=1)
    exponentials = logits.sub_(highest[:, None]).exp_()
    left = exponentials.sum(dim=1).index_add_(0, known[0], -exponentials[known])
    return highest + torch.log(left.clamp(min=LEAST_LEFT))


def products(queries: Tensor, table: Tensor) -> Tensor:
    """Return the products of queries with the rows of a table: (queries, rows).

    A query has the same numbers alone as among others: the library sums in another order for less than four.
    """
    return (F.pad(queries, (0, 0, 0, max(0, 4 - len(queries)))) @ table.t())[: len(queries)]


def cache_size(numbers: int) -> int:
    """Return for how many relations this many numbers each are cached."""
    return max(LEAST_CACHED, min(MOST_CACHED, CACHE // numbers))
