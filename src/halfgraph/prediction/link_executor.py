"""The meaning `Scored`: one score in [0, 1] for every entity, edge by edge, with the best witness of any answer.

A path has the score of its best intermediate entity, an intersection that of all its parts, a union of any, and a
negated part what it leaves. With certain edges alone these are the exact answers, as 1 and 0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import itemgetter

import numpy as np
import torch
import torch.nn.functional as F

from halfgraph.prediction.link_predictor import PIECE, Edges, Ids, Scores, one
from halfgraph.query.fold import fold
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, children, nodes, shared_variables

BEAM = 16
LARGE = 100_000  # entities above which the query's vectors propose those that likely edges may lead to
PROPOSED = 4_096  # entities proposed for a variable
PINNED = 8  # entities tried for a variable that is used more than once
Norm = Callable[[Scores, Scores], Scores]


def _lukasiewicz(first: Scores, second: Scores) -> Scores:
    return np.maximum(first + second - 1, 0)


NORMS: dict[str, Norm] = {"product": np.multiply, "minimum": np.minimum, "lukasiewicz": _lukasiewicz}


@dataclass(frozen=True)
class Step:
    """An edge of a witness."""

    node: Project
    head: int
    tail: int
    known: bool
    probability: float  # of the edge; 1 where it is known
    negated: bool = False  # an edge that should not be there


@dataclass(frozen=True)
class Witness:
    """The best way to an answer: an entity for each node, by the node's id, and the edges between them."""

    entities: dict[int, int]
    steps: list[Step]
    score: float


@dataclass
class Scored:
    """A meaning of one query at a time; one thread at a time may use it."""

    edges: Edges
    beam: int = BEAM
    norm: str = "product"
    yields: dict[int, Scores] = field(default_factory=dict, repr=False)  # the scores of each node, for witnesses
    pins: dict[int, int] = field(default_factory=dict, repr=False)  # the entity of a variable used more than once
    own: dict[int, Scores] = field(default_factory=dict, repr=False)  # its scores before it was pinned
    meetings: dict[int, int] = field(default_factory=dict, repr=False)  # the node where all ways from it meet again
    proposed: dict[int, Ids] = field(default_factory=dict, repr=False)  # where likely edges may lead, in a large graph

    def scores(self, query: Query) -> Scores:
        """The score of every entity: (entities,)."""
        found: Scores | None = None
        for scores, _ in self._ways(query):
            found = scores.copy() if found is None else np.maximum(found, scores, out=found)
        assert found is not None, "a query has at least one way"
        return found

    def _ways(self, query: Query) -> Iterator[tuple[Scores, dict[int, int]]]:
        """The scores for each choice of entities for the variables used more than once, and that choice."""
        self.proposed = self._proposed(query) if len(self.edges.vectors) > LARGE else {}
        here = set(map(id, nodes(query, negated=False)))
        shared = [node for node in shared_variables(query) if id(node) in here]
        self.meetings = {id(node): id(_meeting(query, node)) for node in shared}
        todo: list[dict[int, int]] = [{}]
        while todo:
            self.pins = todo.pop()
            self.yields.clear()
            self.own.clear()
            scores = fold(query, self)
            if len(self.pins) == len(shared):
                yield scores, self.pins
                continue
            variable = id(shared[len(self.pins)])
            entities = self._beam(self.yields[variable])[:PINNED].tolist() or [0]
            todo.extend({**self.pins, variable: entity} for entity in entities)

    def anchor(self, node: Anchor) -> Scores:
        """The entity itself."""
        return self._kept(node, one(int(node.entity), len(self.edges.vectors)))

    def project(self, node: Project, source: Scores) -> Scores:
        """The best of all ways along a relation: over known edges from any entity, over likely ones from the beam."""
        if not source.any():
            return self._kept(node, np.zeros_like(source))
        relation = int(node.relation)
        evidence = self.edges.evidence(source, relation)
        found = evidence.passed
        if np.isfinite(self.edges.scale.bias):
            heads = self._beam(source)
            before = torch.from_numpy(source[heads])[:, None]
            for columns in self._columns(node, max(1, PIECE // len(heads))):
                likely = torch.sigmoid_(self.edges.log_odds(heads, relation, evidence, columns, asked=_asked(node)))
                best = self._along(before, likely).amax(dim=0).numpy()
                found[columns] = np.maximum(found[columns], best)
        return self._kept(node, self._of_type(node, found))

    def intersect(self, node: Intersect, parts: list[Scores]) -> Scores:
        """All parts, by the norm."""
        return self._kept(node, self._of_type(node, reduce(NORMS[self.norm], parts)))

    def union(self, node: Union, parts: list[Scores]) -> Scores:
        """Any part, by the norm's dual."""
        norm = NORMS[self.norm]
        return self._kept(node, self._of_type(node, 1 - reduce(norm, [1 - part for part in parts])))

    def negate(self, node: Negate, part: Scores) -> Scores:
        """What a part leaves; no variable of it is used elsewhere, so where one is used twice it is asked by itself."""
        if shared_variables(node.part):
            part = Scored(self.edges, self.beam, self.norm).scores(node.part)
        return self._kept(node, 1 - part)

    def _columns(self, node: Project, size: int) -> Iterator[slice | Ids]:
        """The entities that likely edges of a node may lead to, in pieces."""
        if id(node) in self.proposed:
            yield self.proposed[id(node)]
            return
        count = len(self.edges.vectors)
        yield from (slice(first, min(first + size, count)) for first in range(0, count, size))

    @torch.no_grad()
    def _proposed(self, query: Query) -> dict[int, Ids]:
        """For each node the entities nearest to the vector of its variable; parts that meet have the same."""
        top: dict[int, Query] = {}
        for node in reversed(nodes(query)):
            variable = top.setdefault(id(node), node)
            if not isinstance(node, Anchor | Project):
                top |= {id(part): variable for part in children(node)}
        found: dict[int, Ids] = {}
        for variable in {id(node): node for node in top.values() if not isinstance(node, Anchor)}.values():
            vectors = torch.cat(self.edges.encoder.encode(disjuncts(without_negation(variable)))).float().cpu()
            cosines = (self.edges.vectors @ F.normalize(vectors, dim=1).t()).amax(dim=1)
            nearest = cosines.topk(min(PROPOSED, len(cosines))).indices.numpy()
            found |= {place: nearest for place, node in top.items() if node is variable}
        return found

    def witness(self, query: Query, entity: int) -> Witness:
        """The best way to an entity, as an answer to a query."""
        score, self.pins = max(((float(scores[entity]), pins) for scores, pins in self._ways(query)), key=itemgetter(0))
        self.yields.clear()
        fold(query, self)
        entities: dict[int, int] = {}
        steps: list[Step] = []
        todo: list[tuple[Query, int, bool]] = [(query, entity, False)]
        while todo:
            node, here, negated = todo.pop()
            if id(node) in entities:
                continue  # a variable used more than once has one witness
            entities[id(node)] = int(node.entity) if isinstance(node, Anchor) else here
            match node:
                case Project():
                    step = self._step(node, here, negated, entities.get(id(node.source)))
                    steps.append(step)
                    todo.append((node.source, step.head, negated))
                case Intersect():
                    todo.extend((part, here, negated) for part in reversed(node.parts))
                case Union():
                    best = max(node.parts, key=lambda part: self.yields[id(part)][here])
                    todo.append((best, here, negated))
                case Negate():
                    todo.append((node.part, here, not negated))
        return Witness(entities, steps, score)

    def _step(self, node: Project, tail: int, negated: bool, head: int | None) -> Step:
        """The best edge to an entity: over a known one from any entity, or over a likely one from the beam.

        From the head given, if the witness has an entity for it already.
        """
        graph, source, relation = self.edges.graph, self.yields[id(node.source)], int(node.relation)
        known = graph.tails_of(tail, relation ^ 1).astype(np.int64)
        best = int(known[source[known].argmax()]) if len(known) else int(source.argmax())
        score = float(source[best]) if len(known) else 0.0
        if np.isfinite(self.edges.scale.bias) and source.any():
            heads, evidence = self._beam(source), self.edges.evidence(source, relation)
            odds = self.edges.log_odds(heads, relation, evidence, np.array([tail]), asked=_asked(node))
            likely = torch.sigmoid(odds)[:, 0]
            ways = self._along(torch.from_numpy(source[heads]), likely)
            if float(ways.max()) > score:
                best = int(heads[int(ways.argmax())])
        best = best if head is None else head
        if tail in graph.tails_of(best, relation):
            return Step(node, best, tail, True, 1.0, negated)
        likelihood = 0.0
        if np.isfinite(self.edges.scale.bias):
            likelihood = self.edges.probability(best, relation, tail, asked=_asked(node))
        return Step(node, best, tail, False, likelihood, negated)

    def _beam(self, source: Scores) -> Ids:
        """The best entities of a source, the best first, ties by number."""
        places = np.flatnonzero(source)
        if len(places) > self.beam:
            least = np.partition(source[places], len(places) - self.beam)[len(places) - self.beam]
            places = places[source[places] >= least]
        order = np.argsort(-source[places], kind="stable")
        return places[order[: self.beam]]

    def _along(self, before: torch.Tensor, likely: torch.Tensor) -> torch.Tensor:
        """The score after likely edges, in the room of theirs."""
        if self.norm == "product":
            return likely.mul_(before)
        return torch.from_numpy(NORMS[self.norm](before.numpy(), likely.numpy()))

    def _of_type(self, node: Project | Intersect | Union, scores: Scores) -> Scores:
        """The scores, nothing being left to entities of another type than the query says."""
        return self.edges.known.of_type(node, scores)

    def _kept(self, node: Query, scores: Scores) -> Scores:
        """The scores, remembered for witnesses; all or nothing where one entity is to be tried.

        How likely that entity is counts once, where the ways from it meet again: not for another part of a union.
        """
        for variable, pinned in self.pins.items():
            if self.meetings[variable] == id(node):
                scores = NORMS[self.norm](scores, self.own[variable][pinned])
        if id(node) in self.pins:
            self.own[id(node)] = scores
            pinned = self.pins[id(node)]
            scores = one(pinned, len(scores)) if scores[pinned] else np.zeros_like(scores)
        self.yields[id(node)] = scores
        return scores


def _meeting(query: Query, variable: Query) -> Query:
    """The first node that every way from a variable to the target goes through."""
    order = nodes(query)
    ways: dict[int, int] = {}  # how many ways there are from the variable to each node
    for node in order:
        ways[id(node)] = 1 if node is variable else sum(ways[id(child)] for child in children(node))
    return next(node for node in order if node is not variable and ways[id(node)] == ways[id(query)])


def _asked(node: Project) -> bool:
    """Whether the query itself names where the edge begins."""
    return isinstance(node.source, Anchor)
