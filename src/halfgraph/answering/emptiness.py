"""Why a query has no exact answer: its smallest part without an answer, and the answers of the rest.

Parts are tried on the graph's arrays. The store confirms the result, and is asked part by part only for a query with a
cycle, where the arrays may miss the reason.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfgraph.answering.schema import EmptyReason, NamedEntity, RelaxedQuery
from halfgraph.answering.store_rows import EntityNames, GraphStore, Rows
from halfgraph.prediction.baselines import TriplesByRelation
from halfgraph.query.exact import Exact
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, nodes, type_of
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.queries import ask, select
from halfgraph.sparql.rendering import Elements, short_text
from halfgraph.sparql.syntax_tree import (
    Element,
    Exists,
    Filter,
    Group,
    Named,
    Operation,
    Select,
    UnionPattern,
    Variable,
)
from halfgraph.sparql.writer import write

MOST_PATTERNS = 40  # of a query that is explained
SECONDS = 2.0  # for the explanation
MOST_COUNTED = 10_000  # answers of the rest
FIRST = 5  # answers of the rest that are shown
HOLDS = "_holds"
Mask = NDArray[np.bool_]
P = TypeVar("P", bound="HasVariables")


class HasVariables(Protocol):
    """A pattern of a query."""

    @property
    def variables(self) -> Sequence[str]:
        """The variables of the pattern."""


@dataclass(frozen=True, eq=False)
class QueryPattern:
    """A pattern of a query: as syntax, and as a node that restricts its one variable or links its two variables."""

    element: Element
    variables: Sequence[str]
    node: Query | None
    type_id: int | None = None


@dataclass(frozen=True)
class PatternBuilder:
    """Builds the patterns of a query; `variables` has the variable of each node, by the node's id."""

    elements: Elements
    variables: Mapping[int, str]

    def build(self, query: Query) -> list[QueryPattern]:
        """Return the patterns, each once; a union or a negation is one pattern."""
        return list({pattern.element: pattern for pattern in self._of(query, set())}.values())

    def _of(self, node: Query, seen: set[int]) -> Iterator[QueryPattern]:
        if id(node) in seen or isinstance(node, Anchor | Negate):
            return
        seen.add(id(node))
        name, type_id = self.variables[id(node)], type_of(node)
        match node:
            case Project(source=source):
                yield from self._of(source, seen)
                ends = [name] if isinstance(source, Anchor) else [self.variables[id(source)], name]
                start = source if isinstance(source, Anchor) else ends[0]
                triple = self.elements.triple(start, int(node.relation), name)
                yield QueryPattern(triple, ends, replace(node, type_id=None))
            case Intersect():
                for part in node.parts:
                    if isinstance(part, Anchor | Negate):
                        yield QueryPattern(self._element(part, name), [name], part)
                    yield from self._of(part, seen)
            case Union():
                yield QueryPattern(self._element(node, name), [name], replace(node, type_id=None))
        if type_id is not None:
            yield QueryPattern(self.elements.type_of(name, type_id), [name], None, type_id)

    def _element(self, node: Anchor | Negate | Union, name: str) -> Element:
        match node:
            case Anchor():
                return self.elements.equals(name, node)
            case Negate(part=Anchor() as part):
                return Filter(Operation(Variable(name), (("!=", self.elements.entity(part)),)))
            case Negate():
                return Filter(Exists(self._group(node.part, name), negated=True))
            case Union():
                return UnionPattern(tuple(self._group(part, name) for part in node.parts))

    def _group(self, part: Query, name: str) -> Group:
        """The patterns of a part; what it shares with other parts is repeated."""
        if isinstance(part, Anchor):
            return Group((self._element(part, name),))
        return Group(tuple(pattern.element for pattern in self._of(part, set())))


@dataclass(frozen=True)
class Propagation:
    """Tests whether patterns have a match in the graph, by propagating candidate entities along the links.

    Exact unless the patterns form a cycle; a cycle without a match may seem to have one.
    """

    triples: TriplesByRelation
    masks: dict[int, Mask] = field(default_factory=dict)  # entities that a pattern of one variable allows, by its id

    def holds(self, patterns: Sequence[QueryPattern]) -> bool:
        """Whether every variable keeps a candidate."""
        names = {name for pattern in patterns for name in pattern.variables}
        candidates = {name: np.ones(self.triples.graph.entity_count, dtype=bool) for name in names}
        links = [pattern for pattern in patterns if len(pattern.variables) == 2]
        for pattern in patterns:
            if len(pattern.variables) == 1:
                candidates[pattern.variables[0]] &= self._mask(pattern)
        removed = True
        while removed:
            removed = sum(self._propagate(pattern, candidates) for pattern in links) > 0
        return all(mask.any() for mask in candidates.values())

    def _mask(self, pattern: QueryPattern) -> Mask:
        if id(pattern) not in self.masks:
            graph = self.triples.graph
            mask = np.zeros(graph.entity_count, dtype=bool)
            if pattern.node is None:
                assert pattern.type_id is not None
                mask[slice(*graph.types.starts[pattern.type_id : pattern.type_id + 2])] = True
            elif isinstance(pattern.node, Negate):
                mask[Exact(graph).answers(pattern.node.part)] = True
                mask = ~mask
            else:
                mask[Exact(graph).answers(pattern.node)] = True
            self.masks[id(pattern)] = mask
        return self.masks[id(pattern)]

    def _propagate(self, pattern: QueryPattern, candidates: dict[str, Mask]) -> bool:
        """Keep the candidates that have the link at both ends; return whether any was removed."""
        assert isinstance(pattern.node, Project)
        source, target = (candidates[name] for name in pattern.variables)
        heads, tails = self.triples.of_relation(int(pattern.node.relation))
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

    def why(self, query: Query, variables: Mapping[int, str]) -> EmptyReason | None:
        """Return the reason; None if that takes too long, or if the patterns alone are not the reason.

        `variables` has the variable of each node, by the node's id.
        """
        if any(isinstance(node, Anchor) and self._is_blank(int(node.entity)) for node in nodes(query)):
            return None  # a query cannot name a blank node
        patterns = PatternBuilder(Elements(self.names.graph), variables).build(query)
        if len(patterns) > MOST_PATTERNS:
            return None
        target, until = variables[id(query)], time.perf_counter() + self.seconds
        for test in (Propagation(self.triples).holds, lambda part: self._ask(part, until)):
            holds = _until(until, test)
            if holds(patterns) is False and (part := smallest_failing(patterns, holds)) is not None:
                rest = _rest(patterns, part, target, holds)
                rows = self._confirm(part, rest, target, until)
                if rows is not None:
                    return self._reason(part, rest, rows)
        return None

    def _is_blank(self, entity: int) -> bool:
        return self.names.entity(entity).entity.startswith("_:")

    def _ask(self, part: Sequence[QueryPattern], until: float) -> bool:
        if not is_bound(part):
            return True
        limit = self.store.time_limit and max(until - time.perf_counter(), 1e-3)
        return self.store.holds(ask(_elements(part)), limit)

    def _confirm(
        self, part: Sequence[QueryPattern], rest: Sequence[QueryPattern], target: str, until: float
    ) -> Rows | None:
        """Return the answers of the rest; None if the part has a match in the store, which may know more."""
        if not rest:
            return None if self._ask(part, until) else Rows([], [])
        check = Select((Named(Exists(Group(tuple(_elements(part)))), Variable(HOLDS)),), Group(()))
        rows = self.store.rows(
            select([Group((check,)), *_elements(rest)], [target, HOLDS], distinct=True, limit=MOST_COUNTED)
        )
        return None if any(row[HOLDS]["value"] == "true" for row in rows.bindings[:1]) else rows

    def _reason(self, part: Sequence[QueryPattern], rest: Sequence[QueryPattern], rows: Rows) -> EmptyReason:
        prefixes = Prefixes.of(self.names.graph)
        first = self.names.known(Rows(rows.variables[:1], rows.bindings[:FIRST]))
        some = [NamedEntity(answer.entity, answer.label) for answer in first]
        relaxed = short_text(select(_elements(rest), rows.variables[:1], distinct=True), prefixes)
        return EmptyReason(
            [write(pattern.element, prefixes.short) for pattern in part],
            short_text(select(_elements(part)), prefixes),
            RelaxedQuery(relaxed, len(rows.bindings), some) if rest else None,
        )


def is_bound(patterns: Sequence[QueryPattern]) -> bool:
    """Whether every variable occurs in a pattern that is not a negation; a negation alone is not a question."""
    positive = {name for pattern in patterns if not isinstance(pattern.node, Negate) for name in pattern.variables}
    return all(name in positive for pattern in patterns for name in pattern.variables)


def _elements(patterns: Sequence[QueryPattern]) -> list[Element]:
    return [pattern.element for pattern in patterns]


def _rest(
    patterns: Sequence[QueryPattern],
    part: Sequence[QueryPattern],
    target: str,
    holds: Callable[[Sequence[QueryPattern]], bool | None],
) -> list[QueryPattern]:
    """The query without the part, or else without one pattern of it, if that has answers."""
    for left_out in (part, *([pattern] for pattern in part)):
        rest = connected([pattern for pattern in patterns if pattern not in left_out], target)
        if rest and is_bound(rest) and holds(rest):
            return rest
    return []


def _until(deadline: float, holds: Callable[[Sequence[P]], bool]) -> Callable[[Sequence[P]], bool | None]:
    """The same test, which returns None after the deadline."""
    return lambda part: holds(part) if time.perf_counter() < deadline else None


def smallest_failing(patterns: Sequence[P], holds: Callable[[Sequence[P]], bool | None]) -> list[P] | None:
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


def connected(patterns: Sequence[P], target: str) -> list[P]:
    """Return the patterns that shared variables connect to the target, in their order."""
    reached, kept = {target}, set[int]()
    while True:
        new = [pattern for pattern in patterns if id(pattern) not in kept and reached & set(pattern.variables)]
        if not new:
            return [pattern for pattern in patterns if id(pattern) in kept]
        kept |= {id(pattern) for pattern in new}
        reached |= {name for pattern in new for name in pattern.variables}
