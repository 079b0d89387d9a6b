"""Prediction by links: a score in [0, 1] for every entity, computed link by link, with a witness for any answer.

A path has the score of its best intermediate entity, an intersection the product of its parts, a union that of any part
(noisy or), a negated part 1 minus its score. If only known triples were likely, these would be the exact answers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F

from halfgraph.prediction.base import Scores
from halfgraph.prediction.baselines import one_hot
from halfgraph.prediction.link_predictor import CHUNK, CosineLinks, Ids, LinkPredictor
from halfgraph.query.fold import fold
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, children, nodes, shared_variables

BEAM = 16
LARGE = 100_000  # in graphs with more entities, only proposed entities are scored as tails of missing links
PROPOSED = 4_096  # entities proposed for a variable
PINNED = 8  # entities tried for a variable that is used more than once


@dataclass(frozen=True)
class LinkExecutor:
    """Executes queries by link probabilities; as thread-safe as `links` is."""

    links: LinkPredictor | CosineLinks
    beam: int = BEAM

    def scores(self, query: Query) -> Scores:
        """Score every entity: (entities,)."""
        return reduce(np.maximum, (run.scores[id(query)] for run in self.passes(query)))

    def passes(self, query: Query) -> "Iterator[Pass]":
        """Fold the query once for each choice of entities for the variables that are used more than once."""
        proposals = self._proposals(query) if self.links.graph.entity_count > LARGE else {}
        outside = set(map(id, nodes(query, negated=False)))
        shared = [node for node in shared_variables(query) if id(node) in outside]
        meetings = {id(node): id(_meeting(query, node)) for node in shared}
        todo: list[dict[int, int]] = [{}]
        while todo:
            run = Pass(self, todo.pop(), meetings, proposals)
            fold(query, run)
            if len(run.pins) == len(shared):
                yield run
                continue
            variable = id(shared[len(run.pins)])
            entities = self.best_heads(run.scores[variable])[:PINNED].tolist() or [0]
            todo.extend({**run.pins, variable: entity} for entity in entities)

    def best_heads(self, source: Scores) -> Ids:
        """Return the best entities of a source, the best first, ties by number."""
        entities = np.flatnonzero(source)
        if len(entities) > self.beam:
            least = np.partition(source[entities], len(entities) - self.beam)[len(entities) - self.beam]
            entities = entities[source[entities] >= least]
        order = np.argsort(-source[entities], kind="stable")
        return entities[order[: self.beam]]

    @torch.no_grad()
    def _proposals(self, query: Query) -> dict[int, Ids]:
        """Return for each node the entities nearest to its variable's embedding; parts that meet have the same."""
        variables: dict[int, Query] = {}
        for node in reversed(nodes(query)):
            variable = variables.setdefault(id(node), node)
            if not isinstance(node, Anchor | Project):
                variables |= {id(part): variable for part in children(node)}
        index = self.links.index
        proposals: dict[int, Ids] = {}
        for variable in {id(node): node for node in variables.values() if not isinstance(node, Anchor)}.values():
            vectors = torch.cat(index.encoder.encode(disjuncts(without_negation(variable))))
            cosines = (index.vectors @ F.normalize(vectors, dim=1).t()).amax(dim=1)
            nearest = cosines.topk(min(PROPOSED, len(cosines))).indices.cpu().numpy()
            proposals |= {name: nearest for name, node in variables.items() if node is variable}
        return proposals


@dataclass(frozen=True)
class Pass:
    """Interpretation of one query, folded once: the scores of every node, with some variables pinned to an entity."""

    executor: LinkExecutor
    pins: Mapping[int, int]  # entity of a variable that is used more than once, by the node's id
    meetings: Mapping[int, int]  # the node where all paths from such a variable meet again
    proposals: Mapping[int, Ids]  # tails of missing links in a large graph
    scores: dict[int, Scores] = field(default_factory=dict, repr=False)  # by the node's id
    unpinned: dict[int, Scores] = field(default_factory=dict, repr=False)  # scores of pinned variables before pinning

    def anchor(self, node: Anchor) -> Scores:
        return self._keep(node, one_hot(int(node.entity), self.executor.links.graph.entity_count))

    def project(self, node: Project, source: Scores) -> Scores:
        """Maximum over all heads: known triples from any entity, missing links from the best ones."""
        if not source.any():
            return self._keep(node, np.zeros_like(source))
        relation, links = int(node.relation), self.executor.links
        evidence = links.evidence(source, relation)
        scores = evidence.known
        heads = self.executor.best_heads(source)
        before = torch.from_numpy(source[heads])[:, None]
        for tails in self._tails(node, max(1, CHUNK // len(heads))):
            likely = links.probabilities(heads, relation, evidence, tails, anchored=is_anchored(node))
            scores[tails] = np.maximum(scores[tails], likely.mul_(before).amax(dim=0).numpy())
        return self._keep(node, links.triples.keep_type(node, scores))

    def intersect(self, node: Intersect, parts: list[Scores]) -> Scores:
        return self._keep(node, self.executor.links.triples.keep_type(node, reduce(np.multiply, parts)))

    def union(self, node: Union, parts: list[Scores]) -> Scores:
        scores = 1 - reduce(np.multiply, [1 - part for part in parts])
        return self._keep(node, self.executor.links.triples.keep_type(node, scores))

    def negate(self, node: Negate, part: Scores) -> Scores:
        """1 - part; a part that uses a variable twice is executed by itself, since its variables are its own."""
        if shared_variables(node.part):
            part = self.executor.scores(node.part)
        return self._keep(node, 1 - part)

    def _tails(self, node: Project, size: int) -> Iterator[slice | Ids]:
        """Yield the entities to score as tails of missing links, in chunks."""
        if id(node) in self.proposals:
            yield self.proposals[id(node)]
            return
        count = self.executor.links.graph.entity_count
        yield from (slice(first, min(first + size, count)) for first in range(0, count, size))

    def _keep(self, node: Query, scores: Scores) -> Scores:
        """Store the scores of a node; a pinned variable keeps its one entity, with the score 1.

        The pinned entity's own score counts once, where all paths from it meet again, and not for other union parts.
        """
        for variable, entity in self.pins.items():
            if self.meetings[variable] == id(node):
                scores = scores * self.unpinned[variable][entity]
        if id(node) in self.pins:
            self.unpinned[id(node)] = scores
            entity = self.pins[id(node)]
            scores = one_hot(entity, len(scores)) if scores[entity] else np.zeros_like(scores)
        self.scores[id(node)] = scores
        return scores


def _meeting(query: Query, variable: Query) -> Query:
    """Return the first node that every path from a variable to the target goes through."""
    order = nodes(query)
    paths: dict[int, int] = {}  # number of paths from the variable to each node
    for node in order:
        paths[id(node)] = 1 if node is variable else sum(paths[id(child)] for child in children(node))
    return next(node for node in order if node is not variable and paths[id(node)] == paths[id(query)])


def is_anchored(node: Project) -> bool:
    """Return whether the query names the head of a link."""
    return isinstance(node.source, Anchor)
