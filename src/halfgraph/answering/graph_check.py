"""What may be wrong with a graph: unlikely triples, types that clash with a relation, likely duplicates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from halfgraph.answering.cells import NamedEntity, percent
from halfgraph.answering.duplicates import DuplicatePair, likely_duplicates
from halfgraph.answering.engine import Engine
from halfgraph.answering.graph_completion import require_links
from halfgraph.answering.type_clashes import TypeClash, type_clashes
from halfgraph.graph.statements import OWL
from halfgraph.prediction.unlikely_triples import CheckedTriple, unlikely_triples

SAME_AS = NamedEntity(f"{OWL}sameAs", "same as")
Check = Literal["unlikely", "type", "duplicate"]
CHECKS: tuple[Check, ...] = ("unlikely", "type", "duplicate")
ENDS = ("subject", "object")


@dataclass(frozen=True)
class Finding:
    """A triple that may be wrong, or two entities that may be the same; the score is that of its check.

    The score of an unlikely triple is its confidence without itself, of a type its share at this end of the relation,
    and of duplicates the similarity of their labels times that of their links.
    """

    check: Check
    subject: NamedEntity
    predicate: NamedEntity
    object: NamedEntity
    score: float
    reason: str


@dataclass(frozen=True)
class GraphCheck:
    """The checks of a graph with a run, each with its worst findings first."""

    engine: Engine

    def __post_init__(self) -> None:
        require_links(self.engine, "check")

    def run(self, check: Check, limit: int, progress: Callable[[int, int], None] = lambda *_: None) -> list[Finding]:
        """Return the first findings of one check; `progress` is that of unlikely triples."""
        if check == "unlikely":
            trained = self.engine.graph.train
            found = unlikely_triples(self.engine.predictors.links, trained, limit, progress=progress)
            return [self._unlikely(one) for one in found]
        if check == "type":
            clashes = type_clashes(self.engine.graph, self.engine.view)
            return [self._clash(one) for one in clashes[:limit]]
        pairs = likely_duplicates(self.engine.graph, self.engine.predictors.links.neighbours)
        return [self._duplicate(one) for one in pairs[:limit]]

    def _triple(self, head: int, relation: int, tail: int) -> tuple[NamedEntity, NamedEntity, NamedEntity]:
        names = self.engine.names
        return names.entity(head), names.relation(relation), names.entity(tail)

    def _unlikely(self, one: CheckedTriple) -> Finding:
        places = f"ranked {one.tail_place:,} as object, {one.head_place:,} as subject"
        reason = f"confidence {percent(one.probability)} without it, {places}"
        ends = self._triple(one.head, one.relation, one.tail)
        return Finding("unlikely", *ends, round(one.probability, 6), reason)

    def _clash(self, one: TypeClash) -> Finding:
        name = self.engine.names.type_name
        where = f"as in {one.count:,} of {one.total:,} triples of this relation"
        reason = f"its {ENDS[one.end]} is {name(one.type_id)}, {where}; usual is {name(one.usual)}"
        return Finding("type", *self._triple(one.head, one.relation, one.tail), round(one.share, 6), reason)

    def _duplicate(self, one: DuplicatePair) -> Finding:
        first, second = (self.engine.names.entity(own) for own in one[:2])
        reason = f"labels {one.label:.0f}% alike, links {one.nearness:.0%} alike"
        return Finding("duplicate", first, SAME_AS, second, round(one.label / 100 * one.nearness, 6), reason)
