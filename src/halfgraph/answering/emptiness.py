"""Why a query has no exact answer: its smallest part without an answer, and the answers of the rest.

Parts are tried on the graph's arrays. The store confirms the result, and is asked part by part only for a query with a
cycle, where the arrays may miss the reason.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.cells import NamedEntity
from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.explanation_schema import EmptyReason, RelaxedQuery
from halfgraph.answering.store_rows import GraphStore, Rows
from halfgraph.prediction.baselines import TriplesByRelation
from halfgraph.query.patterns import Edge, Either, Equals, Not, OfType, Pattern, named_patterns, variables
from halfgraph.query.tree import Anchor, Query, anchors
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.rendering import Elements, short_text
from halfgraph.sparql.syntax_tree import Ask, Call, Group, Named, Select, Variable, select
from halfgraph.sparql.writer import write

MOST_PATTERNS = 40  # of a query that is explained
SECONDS = 2.0  # for the explanation
MOST_COUNTED = 10_000  # answers of the rest
FIRST = 5  # answers of the rest that are shown
MATCHES = "_matches"
Mask = NDArray[np.bool_]
T = TypeVar("T")
Holds = Callable[[Sequence[Pattern]], bool | None]  # whether patterns have a match; None after the time limit


@dataclass(frozen=True)
class Propagation:
    """Tests whether patterns have a match in the graph, by propagating candidate entities along the links.

    Exact unless the patterns form a cycle; a cycle without a match may seem to have one.
    """

    triples: TriplesByRelation
    masks: dict[int, Mask] = field(default_factory=dict)  # entities that a pattern of one variable allows, by its id

    def holds(self, patterns: Sequence[Pattern]) -> bool:
        """Whether every variable keeps a candidate."""
        return all(mask.any() for mask in self.candidates(patterns).values())

    def candidates(self, patterns: Sequence[Pattern]) -> dict[str, Mask]:
        """Return the candidates of each variable."""
        count = self.triples.graph.entity_count
        masks = {name: np.ones(count, dtype=bool) for name in variables(tuple(patterns))}
        links: list[Edge] = []
        for pattern in patterns:
            if isinstance(pattern, Edge) and isinstance(pattern.source, str):
                links.append(pattern)
            else:
                if id(pattern) not in self.masks:
                    self.masks[id(pattern)] = self._allowed(pattern)
                masks[pattern.target if isinstance(pattern, Edge) else pattern.variable] &= self.masks[id(pattern)]
        while sum(self._propagate(edge, masks) for edge in links):
            pass
        return masks

    def _allowed(self, pattern: Pattern) -> Mask:
        """The entities that a pattern of one variable allows."""
        graph = self.triples.graph
        mask = np.zeros(graph.entity_count, dtype=bool)
        match pattern:
            case Edge(source=Anchor(entity=entity)):
                mask[graph.tails_of(int(entity), pattern.relation)] = True
            case OfType():
                mask[slice(*graph.types.starts[pattern.type_id : pattern.type_id + 2])] = True
            case Equals():
                mask[int(pattern.anchor.entity)] = True
            case Either():
                for group in pattern.groups:
                    mask |= self.candidates(group)[pattern.variable]
            case Not():
                mask = ~self.candidates(pattern.group)[pattern.variable]
        return mask

    def _propagate(self, edge: Edge, masks: dict[str, Mask]) -> bool:
        """Keep the candidates that have the link at both ends; return whether any was removed."""
        heads, tails = self.triples.of_relation(edge.relation)
        source, target = masks[str(edge.source)], masks[edge.target]
        linked = source[heads] & target[tails]
        before = int(source.sum()) + int(target.sum())
        for mask, ends in ((source, heads), (target, tails)):
            kept = np.zeros_like(mask)
            kept[ends[linked]] = True
            mask &= kept
        return int(source.sum()) + int(target.sum()) < before


@dataclass(frozen=True)
class Emptiness:
    """Finds out why a query has no exact answer."""

    store: GraphStore
    names: EntityNames
    triples: TriplesByRelation
    seconds: float = SECONDS

    def why(self, query: Query, target: str) -> EmptyReason | None:
        """Return the reason; None if that takes too long, or if the patterns alone are not the reason."""
        if any(self.names.described(int(anchor.entity))[0].startswith("_:") for anchor in anchors(query)):
            return None  # a query cannot name a blank node
        patterns, until = named_patterns(query), time.perf_counter() + self.seconds
        if len(patterns) > MOST_PATTERNS:
            return None
        for test in (Propagation(self.triples).holds, lambda part: self._ask(part, until)):
            holds = _until(until, test)
            if holds(patterns) is False and (part := smallest_failing(patterns, holds)) is not None:
                rest = _rest(patterns, part, target, holds)
                rows = self._confirm(part, rest, target, until)
                if rows is not None:
                    return self._reason(part, rest, rows)
        return None

    @cached_property
    def _elements(self) -> Elements:
        return Elements(self.names.graph)

    def _ask(self, part: Sequence[Pattern], until: float) -> bool:
        if not is_bound(part):
            return True
        limit = self.store.time_limit and max(until - time.perf_counter(), 1e-3)
        return self.store.holds(Ask(self._elements.group(tuple(part))), limit)

    def _confirm(self, part: Sequence[Pattern], rest: Sequence[Pattern], target: str, until: float) -> Rows | None:
        """Return the answers of the rest; None if the part has a match in the store, which may know more."""
        if not rest:
            return None if self._ask(part, until) else Rows([], [])
        match = Group((select(map(self._elements.element, part), limit=1),))
        check = Select((Named(Call("COUNT", ()), Variable(MATCHES)),), Group((match,)))
        elements = [Group((check,)), *map(self._elements.element, rest)]
        rows = self.store.rows(select(elements, [target, MATCHES], distinct=True, limit=MOST_COUNTED))
        return None if any(row[MATCHES]["value"] != "0" for row in rows.bindings[:1]) else rows

    def _reason(self, part: Sequence[Pattern], rest: Sequence[Pattern], rows: Rows) -> EmptyReason:
        prefixes = Prefixes.of(self.names.graph)
        failing, others = (list(map(self._elements.element, patterns)) for patterns in (part, rest))
        first = self.names.known(Rows(rows.variables[:1], rows.bindings[:FIRST]))
        some = [NamedEntity(answer.entity, answer.label) for answer in first]
        relaxed = short_text(select(others, rows.variables[:1], distinct=True), prefixes)
        without = RelaxedQuery(relaxed, len(rows.bindings), some) if rest else None
        texts = [write(element, prefixes.short) for element in failing]
        return EmptyReason(texts, short_text(select(failing), prefixes), without)


def _until(deadline: float, holds: Callable[[Sequence[Pattern]], bool]) -> Holds:
    """The same test, which returns None after the deadline."""
    return lambda part: holds(part) if time.perf_counter() < deadline else None


def is_bound(patterns: Sequence[Pattern]) -> bool:
    """Whether every variable occurs in a pattern that is not a negation; a negation alone is not a question."""
    positive = variables(tuple(pattern for pattern in patterns if not isinstance(pattern, Not)))
    return set(variables(tuple(patterns))) <= set(positive)


def _rest(patterns: Sequence[Pattern], part: Sequence[Pattern], target: str, holds: Holds) -> list[Pattern]:
    """The query without the part, or else without one pattern of it, if that has answers."""
    for left_out in (part, *([pattern] for pattern in part)):
        removed = set(map(id, left_out))
        rest = connected([pattern for pattern in patterns if id(pattern) not in removed], target)
        if rest and is_bound(rest) and holds(rest):
            return rest
    return []


def smallest_failing(patterns: Sequence[T], holds: Callable[[Sequence[T]], bool | None]) -> list[T] | None:
    """Return a part without a match, all smaller parts of which have one; None if that takes too long.

    A single pattern without a match is found first; else patterns are left out one by one while the rest has none.
    """
    for pattern in patterns:
        if holds([pattern]) is False:
            return [pattern]
    part = list(patterns)
    for pattern in patterns:
        rest = [other for other in part if other is not pattern]
        match = holds(rest)
        if match is None:
            return None
        if not match:
            part = rest
    return part


def connected(patterns: Sequence[Pattern], target: str) -> list[Pattern]:
    """Return the patterns that shared variables connect to the target, in their order."""
    reached: set[str] = {target}
    kept: set[int] = set()
    while new := [one for one in patterns if id(one) not in kept and reached & set(variables((one,)))]:
        kept |= set(map(id, new))
        reached |= set(variables(tuple(new)))
    return [pattern for pattern in patterns if id(pattern) in kept]
