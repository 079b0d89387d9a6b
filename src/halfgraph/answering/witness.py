"""The best witness of an answer: an entity for each variable, found backwards from the answer by single edges."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.answering.explanation import Laid
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.embedding import Index
from halfgraph.query.exact import Exact
from halfgraph.query.tree import Anchor, Negate, Project, Query, Union, children, nodes

BEAM = 8  # partial witnesses that are kept
MOST_CHOICES = 64  # ways through the unions of a query that are tried
Scores = NDArray[np.float64]
Chance = Callable[[Scores], Scores]  # from the cosines of single edges to how likely the triples are


@dataclass(frozen=True)
class Bound:
    """Entities for variables, the edges that they are for, and how well these hold (the sum of logarithms)."""

    entities: Mapping[str, int]
    edges: Sequence[Project]
    score: float


@dataclass(frozen=True)
class Seeker:
    """What looks for witnesses: single edges by the model, and the graph that is known."""

    index: Index
    known: KnowledgeGraph
    chance: Chance

    def best(self, laid: Laid, entity: int) -> Bound:
        """The best witness of an entity for a query, over all ways through its unions."""
        found = [self._along(laid, edges, entity) for edges in choices(laid)]
        return max(found, key=lambda bound: bound.score)

    def _along(self, laid: Laid, edges: Sequence[Project], entity: int) -> Bound:
        """The best witness found along some edges: the target first, then each variable before those it leads to."""
        used = {laid.term(end) for edge in edges for end in (edge, edge.source)}
        beam = [Bound({laid.target: entity}, edges, 0.0)]
        ahead = self._toward(laid, edges, laid.target)[entity]
        for name in [name for name in reversed(list(laid.variables)) if name != laid.target and name in used]:
            toward = self._toward(laid, edges, name)
            upstream = self._upstream(laid.variables[name])
            grown: list[tuple[float, Bound]] = []
            for bound in beam:
                here = toward + self._onward(laid, edges, name, bound)
                guess = here + upstream
                for number in np.argsort(-guess, kind="stable")[:BEAM].tolist():
                    more = Bound({**bound.entities, name: number}, edges, bound.score + float(here[number]))
                    grown.append((bound.score + float(guess[number]), more))
            beam = [bound for _, bound in sorted(grown, key=lambda pair: -pair[0])[:BEAM]]
        best = max(beam, key=lambda bound: bound.score)
        return Bound(best.entities, edges, best.score + float(ahead))

    def _toward(self, laid: Laid, edges: Sequence[Project], name: str) -> Scores:
        """How well known entities lead to every entity as a value of a variable: (entities,)."""
        ends = [(int(edge.source.entity), int(edge.relation)) for edge in edges if _ends(laid, edge, name)]  # type: ignore[union-attr]
        return self._sum(ends)

    def _onward(self, laid: Laid, edges: Sequence[Project], name: str, bound: Bound) -> Scores:
        """How well every entity as a value of a variable leads to the values of later ones: (entities,)."""
        later = [edge for edge in edges if laid.term(edge.source) == name]
        return self._sum([(bound.entities[str(laid.term(edge))], int(edge.relation) ^ 1) for edge in later])

    def _upstream(self, node: Query) -> Scores:
        """A guess at how well what leads to a variable holds for every entity, where that is more than one edge."""
        ways: list[Query] = [way for way in children(node) or () if not isinstance(way, Anchor)] or [node]
        if all(isinstance(way, Project) and isinstance(way.source, Anchor) for way in ways):
            return np.zeros(self.known.entity_count)
        scores = np.full(self.known.entity_count, np.log(0.5))
        scores[Exact(self.known).answers(node)] = 0.0
        return scores

    def _sum(self, ends: Sequence[tuple[int, int]]) -> Scores:
        """The logarithms of how likely each entity is at the end of edges (entity, relation), summed: (entities,)."""
        if not ends:
            return np.zeros(self.known.entity_count)
        likely = self.edges_from(ends)
        for row, (head, relation) in zip(likely, ends, strict=True):
            row[self.known.tails_of(head, relation)] = 1.0
        total: Scores = np.log(likely).sum(axis=0)
        return total

    @torch.no_grad()
    def edges_from(self, ends: Sequence[tuple[int, int]]) -> Scores:
        """How likely a relation leads from an entity to every entity: (ends,) -> (ends, entities)."""
        heads, relations = (torch.tensor(column, dtype=torch.int64) for column in zip(*ends, strict=True))
        moved = self.index.encoder.projection(self.index.vectors.index_select(0, heads), relations)
        cosines = F.normalize(moved, dim=-1) @ self.index.vectors.t()
        return np.clip(self.chance(cosines.double().numpy()), 1e-6, 1 - 1e-6)


def _ends(laid: Laid, edge: Project, name: str) -> bool:
    """Whether an edge leads from a known entity to a variable."""
    return isinstance(edge.source, Anchor) and laid.term(edge) == name


def choices(laid: Laid) -> Iterator[list[Project]]:
    """The edges that a witness needs, for each way through the unions of a query; negations need none."""
    query = laid.variables[laid.target]
    unions = [node for node in nodes(query, negated=False) if isinstance(node, Union)]
    for chosen in islice(product(*(union.parts for union in unions)), MOST_CHOICES):
        part = {id(union): one for union, one in zip(unions, chosen, strict=True)}
        reached, todo = dict[int, Query](), [query]
        while todo:
            node = todo.pop()
            if id(node) not in reached:
                reached[id(node)] = node
                todo += _onward(node, part)
        yield [edge for edge in laid.edges if id(edge) in reached]


def _onward(node: Query, chosen: Mapping[int, Query]) -> Sequence[Query]:
    """The nodes that lead to a node, where a part of each union was chosen; nothing that is negated does."""
    if isinstance(node, Negate):
        return ()
    return (chosen[id(node)],) if id(node) in chosen else children(node)
