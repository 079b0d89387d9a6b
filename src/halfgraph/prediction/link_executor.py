"""Prediction by links: the probability that an entity is an answer, computed link by link.

Links are taken to be independent. An intersection has the product of its parts, a union and the ways over intermediate
entities 1 - (1 - a)(1 - b)..., a negated part 1 minus its probability. With known triples alone these are the exact
answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F

from halfgraph.prediction._link_kernels import add_ways, known_ways
from halfgraph.prediction.base import Scores
from halfgraph.prediction.baselines import one_hot
from halfgraph.prediction.link_features import CACHE, Ids
from halfgraph.prediction.link_predictor import LARGE, LinkPredictor, Pair
from halfgraph.prediction.type_predictor import TypePredictor
from halfgraph.query.fold import fold, fold_projecting
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import (
    Anchor,
    Intersect,
    Negate,
    Project,
    Query,
    Union,
    children,
    nodes,
    shared_variables,
    type_of,
)

BEAM = 32
NEGLIGIBLE = 5e-6  # scores of intermediate entities, in all, that change no answer
PROPOSED = 4_096  # entities proposed for a variable
NOBODY = -1  # the pin of a variable that no entity is likely for
PINNED = 8  # entities tried for a variable that is used more than once


@dataclass(frozen=True)
class LinkExecutor:
    """Executes queries by link probabilities; as thread-safe as `links` is."""

    links: LinkPredictor
    types: TypePredictor
    beam: int = BEAM

    def scores(self, query: Query) -> Scores:
        """Return the probability of every entity: (entities,)."""
        return self.run(query).scores[id(query)]

    def of_type(self, node: Query, scores: Scores) -> Scores:
        """Multiply by the probability of the type that the query states for a node, if any."""
        type_id = type_of(node)
        return scores if type_id is None else scores * self.types.probabilities(type_id)

    def run(self, query: Query) -> "Pass":
        """Fold the query and return the scores of all its nodes."""
        proposals = self._proposals(query) if self.links.graph.entity_count > LARGE else {}
        meetings = {id(node): id(_meeting(query, node)) for node in shared_variables(query)}
        run = Pass(self, meetings, proposals)
        if meetings:
            fold(query, run)
        else:
            fold_projecting([query], run)
        return run

    def batch_scores(self, queries: Sequence[Query]) -> Iterator[Scores]:
        """Yield the scores of each query; the links of many are computed together."""
        size = max(1, CACHE // (self.beam * self.links.graph.entity_count))
        for first in range(0, len(queries), size):
            chunk = queries[first : first + size]
            if self.links.graph.entity_count > LARGE or any(map(shared_variables, chunk)):
                yield from map(self.scores, chunk)
            else:
                yield from fold_projecting(chunk, Pass(self, {}, {}))

    def best_heads(self, source: Scores) -> Ids:
        """Return the best entities of a source, the best first, ties by number, without negligible ones."""
        entities = np.flatnonzero(source)
        if len(entities) > self.beam:
            least = np.partition(source[entities], len(entities) - self.beam)[len(entities) - self.beam]
            entities = entities[source[entities] >= least]
        best = entities[np.argsort(-source[entities], kind="stable")[: self.beam]]
        rest = source[best][::-1].cumsum()[::-1]  # from each entity on; ways over them add at most so much
        return best[rest > NEGLIGIBLE * source[best[:1]]]

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
    """Interpretation of one query: the scores of every node.

    A variable that is used more than once is one entity on all its paths. So the node where they meet again is folded
    for one entity of the variable after another, pinned to it, and has any of these ways.
    """

    executor: LinkExecutor
    meetings: Mapping[int, int]  # the node where all paths from a variable that is used more than once meet again
    proposals: Mapping[int, Ids]  # tails of missing links in a large graph
    pins: Mapping[int, int] = field(default_factory=dict)  # the entity of a variable, by the node's id
    scores: dict[int, Scores] = field(default_factory=dict, repr=False)  # by the node's id
    ways: "dict[int, list[tuple[Scores, Pass]]]" = field(default_factory=dict, repr=False)  # of a node where paths meet

    def anchor(self, node: Anchor) -> Scores:
        return self._keep(node, one_hot(int(node.entity), self.executor.links.graph.entity_count))

    def project(self, node: Project, source: Scores) -> Scores:
        return self.projects([node], [source])[0]

    def intersect(self, node: Intersect, parts: list[Scores]) -> Scores:
        return self._keep(node, self.executor.of_type(node, reduce(np.multiply, _distinct(node.parts, parts))))

    def union(self, node: Union, parts: list[Scores]) -> Scores:
        return self._keep(node, self.executor.of_type(node, any_of(_distinct(node.parts, parts))))

    def negate(self, node: Negate, part: Scores) -> Scores:
        return self._keep(node, 1 - part)

    def projects(self, nodes: list[Project], sources: list[Scores]) -> list[Scores]:
        """Any way over known triples from any entity, or over missing links from the best ones."""
        links, heads = self.executor.links, [self.executor.best_heads(source).tolist() for source in sources]
        relations = [int(node.relation) for node in nodes]
        rows: dict[Pair, Scores] = {}
        if not self.proposals:
            rows = links.rows((head, relation) for own, relation in zip(heads, relations, strict=True) for head in own)
        scores = []
        for node, relation, source, own in zip(nodes, relations, sources, heads, strict=True):
            ways = known_ways(*links.triples.of_relation(relation), source)
            if self.proposals and own:
                self._add_proposed(ways, node, source, own)
            for head in own if rows else ():
                add_ways(ways, rows[head, relation], source[head])
            scores.append(self._keep(node, self.executor.of_type(node, ways)))
        return scores

    def _add_proposed(self, ways: Scores, node: Project, source: Scores, heads: list[int]) -> None:
        """Add the ways over missing links to the entities that are proposed, in a large graph."""
        tails = self.proposals[id(node)]
        proposed = ways[tails]
        rows = self.executor.links.probabilities(np.array(heads), int(node.relation), tails)
        for head, row in zip(heads, rows, strict=True):
            add_ways(proposed, row, source[head])
        ways[tails] = proposed

    def _keep(self, node: Query, scores: Scores) -> Scores:
        """Store the scores of a node."""
        if id(node) in self.pins:
            pin = self.pins[id(node)]
            scores = np.zeros_like(scores) if pin == NOBODY else one_hot(pin, len(scores))
        else:
            free = [variable for variable, meeting in self.meetings.items() if meeting == id(node)]
            free = [variable for variable in free if variable not in self.pins]
            if free:
                scores = self._meet(node, free[0])
        self.scores[id(node)] = scores
        return scores

    def _meet(self, node: Query, variable: int) -> Scores:
        """Any of the ways over one entity of a variable to the node where its paths meet."""
        source, ways = self.scores[variable], []
        for entity in self.executor.best_heads(source)[:PINNED].tolist():
            run = replace(self, pins={**self.pins, variable: entity}, scores={}, ways={})
            ways.append((fold(node, run) * source[entity], run))
        self.ways[id(node)] = ways
        if not ways:  # a union may have other parts
            return fold(node, replace(self, pins={**self.pins, variable: NOBODY}, scores={}, ways={}))
        return any_of([scores for scores, _ in ways])


def _meeting(query: Query, variable: Query) -> Query:
    """Return the first node that every path from a variable to the target goes through."""
    order = nodes(query)
    paths: dict[int, int] = {}  # number of paths from the variable to each node
    for node in order:
        paths[id(node)] = 1 if node is variable else sum(paths[id(child)] for child in children(node))
    return next(node for node in order if node is not variable and paths[id(node)] == paths[id(query)])


def _distinct(parts: Sequence[Query], scores: Sequence[Scores]) -> list[Scores]:
    """Return the scores of parts, those of equal parts once: they need the same triples, and are not independent."""
    contents = [own.tobytes() for own in scores]
    if len(set(contents)) == len(contents):  # equal parts have equal scores; hashing a query is slow
        return list(scores)
    return list(dict(zip(zip(parts, contents, strict=True), scores, strict=True)).values())


def any_of(parts: Sequence[Scores]) -> Scores:
    """Probability that at least one of some independent events holds."""
    return parts[0] if len(parts) == 1 else 1 - reduce(np.multiply, [1 - part for part in parts])
