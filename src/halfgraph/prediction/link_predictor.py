"""How likely an edge is: certain where the graph has it, else a probability from all the evidence for it.

The evidence is the model's cosine in both directions, the vote of entities similar to the head, what rules say, how
often the tail ends the relation, and whether the query itself supposes an edge. What each weighs is fitted on held-out
triples (fitting.py).
"""

from copy import copy
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.evaluation._rank_kernels import alike, groups_of
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.encoder import Encoder
from halfgraph.prediction._kernels import pass_on, tails_each
from halfgraph.prediction.baselines import ByRelation
from halfgraph.prediction.rules import Rules
from halfgraph.query._kernels import contiguous, edges_of

Scores = NDArray[np.float32]
Ids = NDArray[np.int64]

TEMPERATURE = 0.1  # of the level: how high a head's cosines are as a whole
LEVEL_SAMPLE = 32_768  # entities that tell the level of a head; in larger graphs a sample of them
LEAST_ALIKE = 0.1  # of a source's best score: entities below do not send out a vote
NO_VOTE, NO_RULE, NO_EDGE = 1e-4, 1e-3, 1e-5  # what is added to shares before their logarithm
PIECE = 1 << 22  # probabilities in memory at a time: 16 MB
ROOM = 1 << 25  # numbers, one or three for each entity, that are remembered of relations: 128 MB
LEAST_REMEMBERED, MOST_REMEMBERED = 16, 1024  # relations


@dataclass(frozen=True)
class Scale:
    """What the evidence for an edge weighs, in log-odds."""

    bias: float = 0.0
    cosine: float = 0.0  # of the head moved along the relation, with the tail
    back: float = 0.0  # of the tail moved along the inverse, with the head
    level: float = 0.0  # how high the cosines of the head are as a whole
    vote: float = 0.0  # the logarithm of the share of votes of similar heads
    rules: float = 0.0  # the logarithm of how likely rules make the edge
    popularity: float = 0.0  # the logarithm of the share of the relation's edges that lead to the tail
    ends: float = 0.0  # whether any does
    often: float = 0.0  # the logarithm of how many do
    breadth: float = 0.0  # the logarithm of how many tails of the head are known
    asked: float = 0.0  # whether the query names the head and no tail is known: who asks supposes that there is one
    offsets: tuple[float, ...] = ()  # for each relation, where there is enough data

    def to_dict(self) -> dict[str, Any]:
        """The weights, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Scale":
        """The weights that `to_dict` gave."""
        return cls(**{**values, "offsets": tuple(values["offsets"])})

    @classmethod
    def certain(cls) -> "Scale":
        """Weights by which only known edges count."""
        return cls(bias=-np.inf)

    def offset(self, relation: int) -> float:
        """What a relation adds."""
        return self.offsets[relation] if self.offsets else 0.0


@dataclass(frozen=True)
class Evidence:
    """What is known of the edges from a source along a relation: a number for every entity."""

    passed: Scores  # the best score of a head from which a known edge leads here
    vote: Scores  # logarithms of shares
    rules: Scores  # the same of probabilities
    popularity: Scores  # (3, entities): what `popularity`, `ends` and `often` weigh


@dataclass
class Edges:
    """The edges of a graph, known and likely; one thread at a time may use it (see `another`)."""

    graph: KnowledgeGraph
    encoder: Encoder
    scale: Scale
    vectors: torch.Tensor = field(repr=False)  # (entities, d), of length one
    known: ByRelation = field(repr=False)
    arrays: tuple[Any, ...] = field(repr=False)
    groups: tuple[Any, ...] = field(repr=False)
    sample: torch.Tensor = field(repr=False)  # the vectors that tell a level

    def __post_init__(self) -> None:
        self._make_room()
        self.popularity = lru_cache(_remembered(3 * len(self.vectors)))(self._popularity)
        self.lengths = lru_cache(_remembered(len(self.vectors)))(self._lengths)
        self.turns = lru_cache(_remembered(self.vectors.shape[1] ** 2))(self._turns)
        self.rules = lru_cache(maxsize=4096)(partial(Rules.of, self.known, self.arrays))

    @classmethod
    @torch.no_grad()
    def of(cls, encoder: Encoder, graph: KnowledgeGraph, scale: Scale) -> "Edges":
        """The edges of a graph, likely ones by a model of it."""
        vectors = encoder.entities.embeddings().detach().float().cpu().contiguous()
        arrays = edges_of(graph)
        groups = tuple(map(contiguous, groups_of(arrays)))
        step = -(-len(vectors) // LEVEL_SAMPLE)
        return cls(graph, encoder, scale, vectors, ByRelation.of(graph), arrays, groups, vectors[::step])

    def another(self, scale: Scale | None = None) -> "Edges":
        """The same edges for another thread, or with other weights; what was computed once is shared."""
        other = copy(self)
        other.scale = self.scale if scale is None else scale
        other._make_room()
        return other

    def _make_room(self) -> None:
        """Nothing; there is room of its own for votes."""
        count = len(self.known.tails)
        self._room = (np.zeros(count, np.float32), np.empty(count, np.int64))

    def _popularity(self, relation: int) -> Scores:
        """How many of a relation's edges lead to each entity: the logarithm of the share, if any, of the number."""
        tails = self.known.edges(relation)[1]
        counts = np.bincount(tails, minlength=len(self.vectors))
        shares = counts / max(len(tails), 1)
        return np.stack([np.log(shares + NO_EDGE), counts > 0, np.log1p(counts)]).astype(np.float32)

    @torch.no_grad()
    def _lengths(self, relation: int) -> torch.Tensor:
        """One over the length of every entity's vector moved along a relation."""
        turn, start = self.turns(relation)
        pieces = (torch.addmm(start, piece, turn).norm(dim=1) for piece in self.vectors.split(PIECE // 64))
        return 1.0 / torch.cat(list(pieces)).clamp(min=1e-6)

    def _moved(self, vectors: torch.Tensor, relation: int) -> torch.Tensor:
        """The vectors moved along a relation: (n, d)."""
        relations = torch.full((len(vectors),), relation, device=self.encoder.device)
        moved: torch.Tensor = self.encoder.projection(vectors.to(self.encoder.device), relations)
        return moved.float().cpu()

    def evidence(self, source: Scores, relation: int) -> Evidence:
        """What the graph says of a relation's edges from a source, which has some score above 0."""
        least = np.float32(LEAST_ALIKE * source.max())
        likeness = alike(self.arrays, self.groups, source, least, *self._room)
        passed, votes = pass_on(*self.known.edges(relation), source, likeness)
        best = np.flatnonzero(source >= least)
        said = self.rules(relation).say(self.arrays, best, source[best] / source.max(), self._room)
        logarithms = (np.log(votes + np.float32(NO_VOTE)), np.log(said + np.float32(NO_RULE)))
        return Evidence(passed, *logarithms, self.popularity(relation))

    @torch.no_grad()
    def cosines(self, heads: Ids, relation: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The heads moved along a relation at length one, and how high their cosines are: (n, d), (n,)."""
        turn, start = self.turns(relation)
        moved = F.normalize(torch.addmm(start, self.vectors[torch.from_numpy(heads)], turn), dim=1)
        return moved, torch.logsumexp(moved @ self.sample.t() / TEMPERATURE, dim=1)

    @torch.no_grad()
    def back(self, heads: Ids, relation: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The cosine of a tail moved along the inverse with each head, as a product with the tail's own vector.

        (n, d) and (n, 1): their product and sum are still to be divided by the length of the moved tail.
        """
        turn, start = self.turns(relation ^ 1)
        own = self.vectors[torch.from_numpy(heads)]
        return own @ turn.t(), own @ start.t()

    @torch.no_grad()
    def _turns(self, relation: int) -> tuple[torch.Tensor, torch.Tensor]:
        """A projection as what it is, a matrix and a vector: (d, d), (1, d)."""
        start = self._moved(torch.zeros(1, self.vectors.shape[1]), relation)
        return self._moved(torch.eye(self.vectors.shape[1]), relation) - start, start

    @torch.no_grad()
    def log_odds(
        self, heads: Ids, relation: int, evidence: Evidence, columns: slice | Ids | None = None, *, asked: bool = False
    ) -> torch.Tensor:
        """The log-odds of the edge from each head, which the query may name, to each entity, or to some.

        (heads, entities).
        """
        scale, places = self.scale, slice(None) if columns is None else columns
        of_tail = np.array([scale.popularity, scale.ends, scale.often], np.float32) @ evidence.popularity[:, places]
        of_tail += scale.vote * evidence.vote[places] + scale.rules * evidence.rules[places]
        of_tail += np.float32(scale.bias + scale.offset(relation))
        moved, level = self.cosines(heads, relation)
        known = tails_each(self.arrays, heads, relation)
        of_head = scale.breadth * np.log1p(known) + scale.asked * (asked & (known == 0))
        of_head = scale.level * level + torch.from_numpy(of_head.astype(np.float32))
        vectors = self.vectors[places]
        found = torch.addmm(torch.from_numpy(of_tail), moved * scale.cosine, vectors.t())
        if scale.back:
            turned, start = self.back(heads, relation)
            found.addcmul_(
                torch.addmm(start, turned, vectors.t()), self.lengths(relation ^ 1)[places], value=scale.back
            )
        return found.add_(of_head[:, None])

    @torch.no_grad()
    def features(self, head: int, relation: int) -> NDArray[np.float32]:
        """What is known of the edge from a head that is asked for, to every entity, in the order of the weights.

        (entities, 10).
        """
        heads = np.array([head])
        evidence = self.evidence(one(head, len(self.vectors)), relation)
        moved, level = self.cosines(heads, relation)
        turned, start = self.back(heads, relation)
        back = (self.vectors @ turned[0] + start[0]) * self.lengths(relation ^ 1)
        known = tails_each(self.arrays, heads, relation)
        cosine, of_head = (self.vectors @ moved[0]).numpy(), (np.log1p(known), known == 0)
        of_tail = (evidence.vote, evidence.rules, *evidence.popularity)
        columns = (cosine, back.numpy(), level.numpy(), *of_tail, *of_head)
        return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.float32)

    def probability(self, head: int, relation: int, tail: int, *, asked: bool = False) -> float:
        """How likely one edge is, the graph apart."""
        evidence = self.evidence(one(head, len(self.vectors)), relation)
        odds = self.log_odds(np.array([head]), relation, evidence, np.array([tail]), asked=asked)
        return float(torch.sigmoid(odds))


def _remembered(size: int) -> int:
    """For how many relations so many numbers are remembered."""
    return max(LEAST_REMEMBERED, min(MOST_REMEMBERED, ROOM // size))


def one(entity: int, count: int) -> Scores:
    """1 for one entity, 0 for all others."""
    scores = np.zeros(count, dtype=np.float32)
    scores[entity] = 1.0
    return scores
