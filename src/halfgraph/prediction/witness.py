"""Witness search: the best entities for the variables of a query, given an answer.

1. If the graph has a witness of known triples alone, that is the result.
2. Otherwise each variable gets the entity of the most probable way back from the answer, by the executor's numbers.

Negated paths are listed too, each as the most likely way in which it could hold.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.base import Scores
from halfgraph.prediction.link_executor import LinkExecutor, Pass
from halfgraph.prediction.link_predictor import LinkPredictor
from halfgraph.query.exact import Entities, Exact
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, children, has_negation, nodes

Bindings = dict[int, int]  # the entity of each node, by the node's id
OTHER_WAYS, LEAST_SHARE = 3, 0.1  # other ways that are listed, and their least share of the best one


@dataclass(frozen=True)
class Step:
    """One link of a witness, in the direction of the query's relation."""

    node: Project
    head: int
    tail: int
    known: bool
    probability: float  # 1 if known
    negated: bool = False  # the query excludes this link


@dataclass(frozen=True)
class BoundWitness:
    """The entity of each node (by `id(node)`), and the links in query order, those of negated paths last."""

    entities: Bindings
    steps: list[Step]
    others: dict[int, list[tuple[int, float]]] = field(
        default_factory=dict
    )  # other entities of a variable, probable too


def find_witness(executor: LinkExecutor, query: Query, entity: int) -> BoundWitness:
    """Return the best witness of an entity as the answer to a query."""
    known = next(_bindings([(query, entity)], {}, KnownChoices.of(executor.links.graph, query, entity)), None)
    if known is not None and not has_negation(query):
        return BoundWitness(known, _steps(executor.links, query, known, negated=False))
    run = executor.run(query)
    best = BestChoices(executor, run.scores, run.ways)
    return _with_negations(best, query, known or best.bindings(query, entity), negated=False)


def _bindings(
    todo: list[tuple[Query, int]], bound: Bindings, choices: "KnownChoices | BestChoices"
) -> Iterator[Bindings]:
    """Yield entities for all nodes below those in `todo`, depth first; `choices` lists what may lead to an entity."""
    if not todo:
        yield bound
        return
    (node, entity), *rest = todo
    here = int(node.entity) if isinstance(node, Anchor) else bound.get(id(node), entity)
    if here != entity and choices.strict:
        return
    if id(node) in bound:
        yield from _bindings(rest, bound, choices)
        return
    bound, choices = {**bound, id(node): here}, choices.at(node, entity)
    match node:
        case Project():
            for head in choices.heads(node, entity, bound):
                yield from _bindings([(node.source, head), *rest], bound, choices)
        case Intersect():
            parts = [(part, entity) for part in node.parts if not isinstance(part, Negate)]
            yield from _bindings([*parts, *rest], bound, choices)
        case Union():
            for part in choices.parts(node, entity):
                yield from _bindings([(part, entity), *rest], bound, choices)
        case _:
            yield from _bindings(rest, bound, choices)


@dataclass(frozen=True)
class KnownChoices:
    """Known triples only."""

    graph: KnowledgeGraph
    candidates: dict[int, Entities]  # of each node, by its id
    strict: bool = True  # a variable that is reached twice must be the same entity both times

    @classmethod
    def of(cls, graph: KnowledgeGraph, query: Query, entity: int) -> "KnownChoices":
        """Restrict each node to its exact answers, and outside of unions to those from which the entity is reached."""
        exact, order = Exact(graph), nodes(query, negated=False)
        candidates = {id(node): exact.answers(node) for node in order if not isinstance(node, Negate)}
        candidates[id(query)] = np.intersect1d(candidates[id(query)], [entity])
        optional = {id(below) for node in order if isinstance(node, Union) for below in nodes(node)[:-1]}
        for node in reversed(order):
            if isinstance(node, Project | Intersect) and id(node) not in optional:
                here = candidates[id(node)]
                if isinstance(node, Project):
                    reached = [graph.tails_of(int(tail), int(node.relation) ^ 1) for tail in here]
                    here = np.concatenate([*reached, np.empty(0, np.int32)])
                for part in children(node):
                    if id(part) in candidates and id(part) not in optional:
                        candidates[id(part)] = np.intersect1d(candidates[id(part)], here)
        return cls(graph, candidates)

    def at(self, _node: Query, _entity: int) -> "KnownChoices":
        return self

    def heads(self, node: Project, tail: int, bound: Bindings) -> Iterable[int]:
        before = self.graph.tails_of(tail, int(node.relation) ^ 1)
        own = [bound[id(node.source)]] if id(node.source) in bound else self.candidates[id(node.source)]
        return map(int, np.intersect1d(own, before))

    def parts(self, node: Union, entity: int) -> Iterable[Query]:
        return (part for part in node.parts if entity in self.candidates[id(part)])


@dataclass(frozen=True)
class BestChoices:
    """The one best choice by the executor's scores."""

    executor: LinkExecutor
    scores: Mapping[int, Scores]  # by the node's id
    ways: Mapping[int, list[tuple[Scores, Pass]]]  # over each entity of a variable that is used more than once
    strict: bool = False
    others: dict[int, list[tuple[int, float]]] = field(default_factory=dict)  # other ways, by the variable's id

    def bindings(self, query: Query, entity: int) -> Bindings:
        return next(_bindings([(query, entity)], {}, self))

    def at(self, node: Query, entity: int) -> "BestChoices":
        """Take the most probable way for the nodes below one where paths from a variable meet again."""
        if not self.ways.get(id(node)):
            return self
        run = max(self.ways[id(node)], key=lambda way: float(way[0][entity]))[1]
        ways = {**self.ways, id(node): [], **run.ways}
        return replace(self, scores={**self.scores, **run.scores}, ways=ways).at(node, entity)

    def heads(self, node: Project, tail: int, bound: Bindings) -> Iterable[int]:
        """The head of the most probable way: known triples from any entity, missing links from the best ones."""
        if id(node.source) in bound:
            return [bound[id(node.source)]]
        source, links, relation = self.scores[id(node.source)], self.executor.links, int(node.relation)
        known = links.graph.tails_of(tail, relation ^ 1).astype(np.int64)
        heads = self.executor.best_heads(source)
        if not len(known) and not len(heads):
            return [0]
        likely = links.probabilities(heads, relation, np.array([tail]))[:, 0] if len(heads) else np.empty(0)
        heads, ways = np.concatenate([known, heads]), np.concatenate([source[known], source[heads] * likely])
        order = np.argsort(-ways, kind="stable")
        if not isinstance(node.source, Anchor):
            others = [(int(heads[row]), float(ways[row])) for row in order[1 : 1 + OTHER_WAYS]]
            self.others[id(node.source)] = [way for way in others if way[1] >= LEAST_SHARE * ways[order[0]]]
        return [int(heads[order[0]])]

    def parts(self, node: Union, entity: int) -> Iterable[Query]:
        return [max(node.parts, key=lambda part: float(self.scores[id(part)][entity]))]


def _with_negations(best: BestChoices, query: Query, bound: Bindings, *, negated: bool) -> BoundWitness:
    """Return the witness with the most likely links of its negated paths."""
    steps = _steps(best.executor.links, query, bound, negated=negated)
    entities = dict(bound)
    for node in nodes(query, negated=False):
        if isinstance(node, Intersect) and id(node) in bound:
            for part in node.parts:
                if isinstance(part, Negate):
                    inner = best.bindings(part.part, bound[id(node)])
                    denied = _with_negations(best, part.part, inner, negated=not negated)
                    entities = {**denied.entities, id(part): bound[id(node)], **entities}
                    steps += denied.steps
    return BoundWitness(entities, steps, best.others)


def _steps(links: LinkPredictor, query: Query, bound: Bindings, *, negated: bool) -> list[Step]:
    """Return the links between bound entities."""
    steps = []
    for node in nodes(query, negated=False):
        if isinstance(node, Project) and id(node) in bound:
            head, tail, relation = bound[id(node.source)], bound[id(node)], int(node.relation)
            known, probability = tail in links.graph.tails_of(head, relation), links.probability(head, relation, tail)
            steps.append(Step(node, head, tail, known, probability, negated))
    return steps
