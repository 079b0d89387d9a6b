"""Two ways to answer without training, so that nobody is fooled: popularity, and the vote of similar entities.

Both are meanings of a query: a node yields one score for every entity (entities,).
"""

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.evaluation._rank_kernels import alike, groups_of, tail_counts, vote
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.answerers import MeaningAnswerer, Scores
from halfgraph.query._kernels import contiguous, edges_of
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, type_of

POPULARITY, NEIGHBOUR_VOTE = "popularity", "neighbour vote"
LIKENESS = 0.3  # what the vote of similar entities counts, against 1 for an edge that is there
PRIOR = 0.01  # what the share of the relation's edges that lead to an entity counts
FLOOR = 0.001  # what an entity has on a path that does not lead to it: other paths may still speak for it
LEAST = 0.1  # of a variable's best score: entities below do not send out a vote


@dataclass(frozen=True)
class ByRelation:
    """The edges of a graph, relation by relation, each sorted by head."""

    graph: KnowledgeGraph
    heads: NDArray[np.int32]
    tails: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "ByRelation":
        """The edges of a graph."""
        order = np.argsort(graph.relations, kind="stable")
        starts = np.searchsorted(graph.relations[order], np.arange(graph.relation_count + 1))
        return cls(graph, contiguous(graph.heads()[order]), contiguous(graph.tails[order]), starts)

    def edges(self, relation: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The heads and the tails of a relation."""
        place = slice(self.starts[relation], self.starts[relation + 1])
        return self.heads[place], self.tails[place]

    def of_type(self, node: Query, scores: Scores) -> Scores:
        """The scores, nothing being left to entities of another type than the query says."""
        type_id = type_of(node)
        if type_id is None:
            return scores
        first, last = self.graph.types.starts[type_id : type_id + 2]
        kept = np.zeros_like(scores)
        kept[first:last] = scores[first:last]
        return kept


@dataclass(frozen=True)
class Popularity:
    """How often an entity is a tail of the relation that leads to the target; a product where paths meet."""

    known: ByRelation

    def anchor(self, node: Anchor) -> Scores:
        """The entity itself."""
        return _only(int(node.entity), self.known.graph.entity_count)

    def project(self, node: Project, source: Scores) -> Scores:  # noqa: ARG002  wherever the path comes from
        """How often each entity is a tail."""
        counts = tail_counts(self.known.edges(int(node.relation))[1], self.known.graph.entity_count)
        return self.known.of_type(node, counts)

    def intersect(self, node: Intersect, parts: list[Scores]) -> Scores:
        """The product, as if the paths were independent."""
        return self.known.of_type(node, reduce(np.multiply, parts))

    def union(self, node: Union, parts: list[Scores]) -> Scores:
        """The best."""
        return self.known.of_type(node, reduce(np.maximum, parts))

    def negate(self, node: Negate, part: Scores) -> Scores:  # noqa: ARG002
        """The same for all: that a path is popular does not make it wrong."""
        return np.ones_like(part)


@dataclass(frozen=True)
class NeighbourVote:
    """An edge counts 1 if it is there, else a share of the votes of entities similar to its head."""

    known: ByRelation
    edges: tuple[Any, ...]
    groups: tuple[Any, Any]
    room: tuple[Any, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        count = len(self.known.tails)
        object.__setattr__(self, "room", (np.zeros(count, np.float32), np.empty(count, np.int64)))

    def anchor(self, node: Anchor) -> Scores:
        """The entity itself."""
        return _only(int(node.entity), self.known.graph.entity_count)

    def project(self, node: Project, source: Scores) -> Scores:
        """Edges that are there, or votes: of entities similar to the source, and of all by their number."""
        top = float(source.max())
        if top <= 0.0:
            return source
        likeness = alike(self.edges, self.groups, source, np.float32(LEAST * top), *self.room)
        heads, tails = self.known.edges(int(node.relation))
        return self.known.of_type(node, vote(heads, tails, source, likeness, top, LIKENESS, PRIOR))

    def intersect(self, node: Intersect, parts: list[Scores]) -> Scores:
        """The product, with a floor for each path."""
        return self.known.of_type(node, reduce(np.multiply, [part + np.float32(FLOOR) for part in parts]))

    def union(self, node: Union, parts: list[Scores]) -> Scores:
        """The best."""
        return self.known.of_type(node, reduce(np.maximum, parts))

    def negate(self, node: Negate, part: Scores) -> Scores:  # noqa: ARG002
        """What is left to one."""
        return np.float32(1.0) - np.minimum(part, np.float32(1.0))


def _only(entity: int, count: int) -> Scores:
    """1 for one entity, 0 for all others."""
    scores = np.zeros(count, dtype=np.float32)
    scores[entity] = 1.0
    return scores


def popularity(graph: KnowledgeGraph) -> MeaningAnswerer:
    """Popularity on a graph, as an answerer."""
    known = ByRelation.of(graph)
    return MeaningAnswerer(POPULARITY, lambda: Popularity(known))


def neighbour_vote(graph: KnowledgeGraph) -> MeaningAnswerer:
    """The neighbour vote on a graph, as an answerer."""
    known, edges = ByRelation.of(graph), edges_of(graph)
    groups = tuple(map(contiguous, groups_of(edges)))
    return MeaningAnswerer(NEIGHBOUR_VOTE, lambda: NeighbourVote(known, edges, (groups[0], groups[1])))
