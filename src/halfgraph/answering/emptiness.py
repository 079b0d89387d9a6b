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
from halfgraph.answering.store_rows import Facts, Names, Rows
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.exact import Exact
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, type_of
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.prefixes import Prefixes
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

    element: tree.Element
    variables: Sequence[str]
    node: Query | None
    type_id: int | None = None


@dataclass(frozen=True)
class PatternBuilder:
    """Builds the patterns of a query; `variables` has the variable of each node, by the node's id."""

    names: Names
    variables: Mapping[int, str]

    def build(self, query: Query) -> list[QueryPattern]:
        """Return the patterns; a union or a negation is one pattern."""
        return list({write(pattern.element): pattern for pattern in self._of(query, set())}.values())

    def _of(self, node: Query, seen: set[int]) -> Iterator[QueryPattern]:
        if id(node) in seen or isinstance(node, Anchor | Negate):
            return
        seen.add(id(node))
        name, type_id = self.variables[id(node)], type_of(node)
        match node:
            case Project():
                yield from self._of(node.source, seen)
                ends = [name] if isinstance(node.source, Anchor) else [self.variables[id(node.source)], name]
                yield QueryPattern(self._triple(node), ends, replace(node, type_id=None))
            case Intersect():
                for part in node.parts:
                    if isinstance(part, Anchor | Negate):
                        yield QueryPattern(self._element(part, name), [name], part)
                    yield from self._of(part, seen)
            case Union():
                yield QueryPattern(self._element(node, name), [name], replace(node, type_id=None))
        if type_id is not None:
            iri = self.names.graph.namer.iri(self.names.graph.types.names[type_id])
            triple = tree.Triple(tree.Variable(name), tree.Iri(tree.RDF_TYPE), tree.Iri(iri))
            yield QueryPattern(triple, [name], None, type_id)

    def _element(self, node: Anchor | Negate | Union, name: str) -> tree.Element:
        match node:
            case Anchor():
                return tree.Values((tree.Variable(name),), ((self._entity(node),),))
            case Negate(part=Anchor() as part):
                return tree.Filter(tree.Operation(tree.Variable(name), (("!=", self._entity(part)),)))
            case Negate():
                return tree.Filter(tree.Exists(self._group(node.part, name), negated=True))
            case Union():
                return tree.Union(tuple(self._group(part, name) for part in node.parts))

    def _group(self, part: Query, name: str) -> tree.Group:
        """The patterns of a part; what it shares with other parts is repeated."""
        if isinstance(part, Anchor):
            return tree.Group((self._element(part, name),))
        return tree.Group(tuple(pattern.element for pattern in self._of(part, set())))

    def _triple(self, edge: Project) -> tree.Triple:
        ends = [self._term(edge.source), self._term(edge)]
        subject, object_ = reversed(ends) if int(edge.relation) & 1 else ends
        return tree.Triple(subject, tree.Iri(self.names.relation(int(edge.relation)).entity), object_)

    def _term(self, node: Query) -> tree.Variable | tree.Iri:
        return self._entity(node) if isinstance(node, Anchor) else tree.Variable(self.variables[id(node)])

    def _entity(self, anchor: Anchor) -> tree.Iri:
        return tree.Iri(self.names.entity(int(anchor.entity)).entity)


@dataclass(frozen=True)
class Propagation:
    """Tests whether patterns have a match in the graph, by propagating candidate entities along the links.

    Exact unless the patterns form a cycle; a cycle without a match may seem to have one.
    """

    graph: KnowledgeGraph
    heads: NDArray[np.int32]
    masks: dict[int, Mask] = field(default_factory=dict)  # entities that a pattern of one variable allows, by its id

    def holds(self, patterns: Sequence[QueryPattern]) -> bool:
        """Whether every variable keeps a candidate."""
        names = {name for pattern in patterns for name in pattern.variables}
        candidates = {name: np.ones(self.graph.entity_count, dtype=bool) for name in names}
        links = [pattern for pattern in patterns if len(pattern.variables) == 2]
        for pattern in patterns:
            if len(pattern.variables) == 1:
                candidates[pattern.variables[0]] &= self._mask(pattern)
        while any([self._propagate(pattern, candidates) for pattern in links]):
            pass
        return all(mask.any() for mask in candidates.values())

    def _mask(self, pattern: QueryPattern) -> Mask:
        if id(pattern) not in self.masks:
            mask = np.zeros(self.graph.entity_count, dtype=bool)
            if pattern.node is None:
                assert pattern.type_id is not None
                mask[slice(*self.graph.types.starts[pattern.type_id : pattern.type_id + 2])] = True
            elif isinstance(pattern.node, Negate):
                mask[Exact(self.graph).answers(pattern.node.part)] = True
                mask = ~mask
            else:
                mask[Exact(self.graph).answers(pattern.node)] = True
            self.masks[id(pattern)] = mask
        return self.masks[id(pattern)]

    def _propagate(self, pattern: QueryPattern, candidates: dict[str, Mask]) -> bool:
        """Keep the candidates that have the link at both ends; return whether any was removed."""
        assert isinstance(pattern.node, Project)
        source, target = (candidates[name] for name in pattern.variables)
        rows = self.graph.relations == int(pattern.node.relation)
        heads, tails = self.heads[rows], self.graph.tails[rows]
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

    facts: Facts
    names: Names
    graph: KnowledgeGraph
    seconds: float = SECONDS

    def why(self, query: Query, variables: Mapping[int, str]) -> EmptyReason | None:
        """Return the reason; None if that takes too long, or if the patterns alone are not the reason."""
        patterns = PatternBuilder(self.names, variables).build(query)
        anonymous = any(isinstance(node, tree.Iri) and node.value.startswith("_:") for node in _syntax(patterns))
        if len(patterns) > MOST_PATTERNS or anonymous:  # a blank node of the graph cannot be named in a query
            return None
        until = time.perf_counter() + self.seconds
        for test in (Propagation(self.graph, self.graph.heads()).holds, lambda part: self._ask(part, until)):
            holds = _until(until, test)
            if holds(patterns) is False and (part := smallest_failing(patterns, holds)) is not None:
                rest = _rest(patterns, part, variables[id(query)], holds)
                if rows := self._confirm(part, rest, variables[id(query)], until):
                    return self._reason(part, rest, rows)
        return None

    def _ask(self, part: Sequence[QueryPattern], until: float) -> bool:
        limit = self.facts.time_limit and max(until - time.perf_counter(), 1e-3)
        return self.facts.holds(write(tree.Ask(_group(part))), limit)

    def _confirm(
        self, part: Sequence[QueryPattern], rest: Sequence[QueryPattern], target: str, until: float
    ) -> Rows | None:
        """Return the answers of the rest; None if the part has a match in the store, which knows more than the graph."""
        if not rest:
            return None if self._ask(part, until) else Rows([], [])
        check = tree.Select((tree.Named(tree.Exists(_group(part)), tree.Variable(HOLDS)),), tree.Group(()))
        select = _select((target, HOLDS), rest, before=[tree.Group((check,))], limit=MOST_COUNTED)
        rows = self.facts.rows(write(select), self.facts.time_limit)
        return None if any(row[HOLDS]["value"] == "true" for row in rows.bindings[:1]) else rows

    def _reason(self, part: Sequence[QueryPattern], rest: Sequence[QueryPattern], rows: Rows) -> EmptyReason:
        first = self.names.known(Rows(rows.variables[:1], rows.bindings[:FIRST]))
        some = [NamedEntity(answer.entity, answer.label) for answer in first]
        without = RelaxedQuery(self._text(_select(rows.variables[:1], rest)), len(rows.bindings), some) if rest else None
        return EmptyReason([self._text(pattern.element) for pattern in part], self._text(_select((), part)), without)

    def _text(self, node: tree.Node) -> str:
        """Return a query or a pattern for people to read; a query declares its prefixes."""
        prefixes, used = Prefixes.of(self.names.graph), list[str]()

        def short(iri: str) -> str:
            used.append(prefixes.short(iri))
            return used[-1]

        text = write(node, short)
        return " ".join([*prefixes.declarations(used), text]) if isinstance(node, tree.Form) else text


def _syntax(patterns: Sequence[QueryPattern]) -> Iterator[tree.Node]:
    return (node for pattern in patterns for node in tree.walk(pattern.element))


def _group(patterns: Sequence[QueryPattern]) -> tree.Group:
    return tree.Group(tuple(pattern.element for pattern in patterns))


def _select(
    variables: Sequence[str], patterns: Sequence[QueryPattern], before: Sequence[tree.Element] = (), **modifiers: int
) -> tree.Select:
    """SELECT DISTINCT of some variables, or SELECT * of all."""
    where = tree.Group((*before, *_group(patterns).elements))
    distinct = "DISTINCT" if variables else ""
    return tree.Select(tuple(map(tree.Variable, variables)), where, distinct, modifiers=tree.Modifiers(**modifiers))


def _rest(
    patterns: Sequence[QueryPattern],
    part: Sequence[QueryPattern],
    target: str,
    holds: Callable[[Sequence[QueryPattern]], bool | None],
) -> list[QueryPattern]:
    """The query without the part, or else without one pattern of it, if that has answers."""
    for left_out in (part, *([pattern] for pattern in part)):
        rest = connected([pattern for pattern in patterns if pattern not in left_out], target)
        if rest and holds(rest):
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
