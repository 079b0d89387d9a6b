"""Two baselines without training: popularity and neighbour vote.

Both are interpretations of a query: each node yields one score for every entity (entities,).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction._link_kernels import pass_on, same_tail_ranges, similar_entities
from halfgraph.prediction.base import QueryPredictor, Scores
from halfgraph.query._kernels import contiguous, edges_of
from halfgraph.query.fold import fold
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, type_of

POPULARITY, NEIGHBOUR_VOTE = "popularity", "neighbour vote"
VOTE = 0.3  # weight of the votes of similar entities, against 1 for a known triple
PRIOR = 0.01  # weight of the share of the relation's triples with this tail
FLOOR = 0.001  # score of an entity on a path that does not lead to it, so that other paths still count
LEAST_SOURCE = 0.1  # entities below this share of the best score do not vote


@dataclass(frozen=True)
class TriplesByRelation:
    """The triples of a graph grouped by relation, each group sorted by head."""

    graph: KnowledgeGraph
    heads: NDArray[np.int32]
    tails: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "TriplesByRelation":
        order = np.argsort(graph.relations, kind="stable")
        starts = np.searchsorted(graph.relations[order], np.arange(graph.relation_count + 1))
        return cls(graph, contiguous(graph.heads()[order]), contiguous(graph.tails[order]), starts)

    def of_relation(self, relation: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        rows = slice(self.starts[relation], self.starts[relation + 1])
        return self.heads[rows], self.tails[rows]

    @cached_property
    def edges(self) -> tuple[Any, ...]:
        """The graph's arrays for compiled loops."""
        return edges_of(self.graph)

    @cached_property
    def same_tails(self) -> tuple[Any, ...]:
        """The ranges of `same_tail_ranges`."""
        return tuple(map(contiguous, same_tail_ranges(self.edges)))

    def scratch(self) -> tuple[Scores, NDArray[np.int64]]:
        """Allocate what compiled loops write to, for one thread; the first array is 0 before and after each use."""
        count = max(len(self.tails), self.graph.entity_count)
        return np.zeros(count, np.float32), np.empty(count, np.int64)

    def votes(self, source: Scores, relation: int, scratch: tuple[Any, Any]) -> tuple[Scores, Scores]:
        """Follow a relation: best score of a head with a known triple, and share of votes of similar heads."""
        least = np.float32(LEAST_SOURCE * source.max())
        similarity = similar_entities(self.edges, self.same_tails, source, least, *scratch)
        known, votes = pass_on(*self.of_relation(relation), source, similarity)
        return known, votes

    def keep_type(self, node: Query, scores: Scores) -> Scores:
        """Set the scores of entities of another type than the query states to 0."""
        type_id = type_of(node)
        if type_id is None:
            return scores
        first, last = self.graph.types.starts[type_id : type_id + 2]
        kept = np.zeros_like(scores)
        kept[first:last] = scores[first:last]
        return kept


@dataclass(frozen=True)
class Popularity:
    """Interpretation: number of triples of the last relation with this tail; product and maximum where paths meet."""

    triples: TriplesByRelation

    def anchor(self, node: Anchor) -> Scores:
        return one_hot(int(node.entity), self.triples.graph.entity_count)

    def project(self, node: Project, source: Scores) -> Scores:
        tails = self.triples.of_relation(int(node.relation))[1]
        return self.triples.keep_type(node, np.bincount(tails, minlength=len(source)).astype(np.float32))

    def intersect(self, node: Intersect, parts: list[Scores]) -> Scores:
        return self.triples.keep_type(node, reduce(np.multiply, parts))

    def union(self, node: Union, parts: list[Scores]) -> Scores:
        return self.triples.keep_type(node, reduce(np.maximum, parts))

    def negate(self, node: Negate, part: Scores) -> Scores:  # noqa: ARG002
        return np.ones_like(part)  # popularity is no evidence against an answer


@dataclass(frozen=True)
class NeighbourVote(Popularity):
    """Interpretation: a known triple counts 1, any other the share of votes of entities similar to its head.

    Every triple of the relation votes too, by its number. Where paths meet, each counts at least FLOOR.
    """

    scratch: tuple[Any, Any]

    def project(self, node: Project, source: Scores) -> Scores:
        top = float(source.max())
        if top <= 0.0:
            return source
        known, votes = self.triples.votes(source, int(node.relation), self.scratch)
        tails = self.triples.of_relation(int(node.relation))[1]
        shares = np.bincount(tails, minlength=len(source)) / max(len(tails), 1)
        scores = np.maximum(known, top * (VOTE * votes + PRIOR * shares)).astype(np.float32)
        return self.triples.keep_type(node, scores)

    def intersect(self, node: Intersect, parts: list[Scores]) -> Scores:
        return super().intersect(node, [part + np.float32(FLOOR) for part in parts])

    def negate(self, node: Negate, part: Scores) -> Scores:  # noqa: ARG002
        return np.float32(1.0) - np.minimum(part, np.float32(1.0))


def one_hot(entity: int, count: int) -> Scores:
    """Return 1 for one entity and 0 for all others."""
    scores = np.zeros(count, dtype=np.float32)
    scores[entity] = 1.0
    return scores


def popularity(graph: KnowledgeGraph) -> QueryPredictor:
    """Build the popularity baseline of a graph."""
    interpretation = Popularity(TriplesByRelation.of(graph))
    return QueryPredictor(POPULARITY, lambda: lambda query: fold(query, interpretation))


def neighbour_vote(graph: KnowledgeGraph) -> QueryPredictor:
    """Build the neighbour-vote baseline of a graph."""
    triples = TriplesByRelation.of(graph)
    triples.same_tails  # noqa: B018  computed once, before threads ask for it

    def scorer() -> Callable[[Query], Scores]:
        interpretation = NeighbourVote(triples, triples.scratch())
        return lambda query: fold(query, interpretation)

    return QueryPredictor(NEIGHBOUR_VOTE, scorer)
