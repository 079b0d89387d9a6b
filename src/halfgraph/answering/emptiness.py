"""Why a query has no exact answer: the smallest part of it that has none, and what the rest returns."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from halfgraph.answering.explanation import Laid, shown
from halfgraph.answering.schema import EmptyReason, NamedEntity, RelaxedQuery
from halfgraph.answering.store_rows import Facts, Names
from halfgraph.query.tree import Anchor, Negate, Project, Query, Union, nodes, type_of
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.queries import ask, select, variables_in
from halfgraph.sparql.rendering import Elements, short_text
from halfgraph.sparql.syntax_tree import Element, Exists, Filter, Group
from halfgraph.sparql.syntax_tree import Union as UnionPattern
from halfgraph.sparql.writer import write

MOST_PATTERNS = 40  # of a query that is searched
SECONDS = 2.0  # that the search may take
MOST_COUNTED = 10_000  # answers of the rest
SHOWN = 5  # of which are shown
T = TypeVar("T")
Holds = Callable[[Sequence[Element]], bool | None]  # whether patterns match; None if the time is over


@dataclass(frozen=True)
class QueryPatterns:
    """The patterns of a query, by the names of its variables."""

    laid: Laid
    elements: Elements

    def patterns(self) -> list[Element]:
        """Return the patterns, each once; a union or a negation is one."""
        return list(dict.fromkeys(self._of(self.laid.variables[self.laid.target], set())))

    def has_blank_node(self) -> bool:
        """Whether the query has a blank node, which patterns of their own cannot share."""
        anchors = (node for node in nodes(self.laid.variables[self.laid.target]) if isinstance(node, Anchor))
        entities = (self.elements.graph.entities.name(int(anchor.entity)) for anchor in anchors)
        return any(name.startswith("_:") for name in (*entities, *self.laid.variables))

    def _of(self, node: Query, seen: set[int]) -> Iterator[Element]:
        """Yield the patterns of a node and of what leads to it."""
        if id(node) in seen or isinstance(node, Anchor):
            return
        seen.add(id(node))
        match node:
            case Union():
                yield UnionPattern(tuple(Group(tuple(self._branch(part, node))) for part in node.parts))
            case Negate():
                yield Filter(Exists(Group(tuple(self._of(node.part, seen))), negated=True))
            case Project():
                yield from self._of(node.source, seen)
                yield self.elements.triple(self._term(node.source), int(node.relation), self._term(node))
            case _:
                anchors = (part for part in node.parts if isinstance(part, Anchor))
                yield from (self.elements.equals(self.name(node), anchor) for anchor in anchors)
                yield from (element for part in node.parts for element in self._of(part, seen))
        if (type_id := type_of(node)) is not None:
            yield self.elements.type_of(self.name(node), type_id)

    def _branch(self, part: Query, node: Query) -> Iterator[Element]:
        """Yield one branch of a union; what it shares with others is repeated."""
        if isinstance(part, Anchor):
            yield self.elements.equals(self.name(node), part)
        else:
            yield from self._of(part, set())

    def _term(self, node: Query) -> Anchor | str:
        return node if isinstance(node, Anchor) else self.name(node)

    def name(self, node: Query) -> str:
        """Return the name of a node's variable in a query."""
        return shown(str(self.laid.term(node))).removeprefix("?")


@dataclass(frozen=True)
class Emptiness:
    """Finds out why a query has no exact answer."""

    facts: Facts
    names: Names
    seconds: float = SECONDS

    def why(self, laid: Laid) -> EmptyReason | None:
        """Return the reason; None if it takes too long to find, or if no single patterns are the reason."""
        query = QueryPatterns(laid, Elements(self.names.graph))
        if query.has_blank_node():
            return None
        patterns, until = query.patterns(), time.perf_counter() + self.seconds
        if len(patterns) > MOST_PATTERNS:
            return None

        def holds(some: Sequence[Element]) -> bool | None:
            left = until - time.perf_counter()
            return None if left <= 0 else self.facts.holds(ask(some), self.facts.time_limit and left)

        part = smallest_failing(patterns, holds) if holds(patterns) is False else None
        if part is None:
            return None
        prefixes = Prefixes.of(self.names.graph)
        relaxed = self._without(patterns, part, query.name(laid.variables[laid.target]), holds)
        return EmptyReason([write(one, prefixes.short) for one in part], short_text(select(part), prefixes), relaxed)

    def _without(
        self, patterns: Sequence[Element], part: Sequence[Element], target: str, holds: Holds
    ) -> RelaxedQuery | None:
        """Return the query without the part, or else without one pattern of it, with its answers."""
        for left_out in (part, *([pattern] for pattern in part)):
            rest = connected([pattern for pattern in patterns if pattern not in left_out], target)
            if rest and holds(rest):
                return self._counted(rest, target)
        return None

    def _counted(self, rest: Sequence[Element], target: str) -> RelaxedQuery:
        """Return a query of some patterns with the number of its answers and the first of them."""
        limited = select(rest, [target], distinct=True, limit=MOST_COUNTED)
        rows = self.facts.rows(limited, self.facts.time_limit)
        first = self.names.known(type(rows)(rows.variables, rows.bindings[:SHOWN]))
        text = short_text(select(rest, [target], distinct=True), Prefixes.of(self.names.graph))
        return RelaxedQuery(text, len(rows.bindings), [NamedEntity(one.entity, one.label) for one in first])


def smallest_failing(patterns: Sequence[T], holds: Callable[[Sequence[T]], bool | None]) -> list[T] | None:
    """Return a part that does not match, all smaller parts of which do; None if that takes too long.

    One pattern alone that fails is found first; else patterns are left out one by one as long as the rest fails.
    """
    for pattern in patterns:
        if holds([pattern]) is False:
            return [pattern]
    part = list(patterns)
    for pattern in patterns:
        rest = [one for one in part if one != pattern]
        answer = holds(rest)
        if answer is None:
            return None
        if not answer:
            part = rest
    return part


def connected(patterns: Sequence[Element], target: str) -> list[Element]:
    """Return the patterns that are connected to the target by shared variables, in their order."""
    reached, kept = {target}, set[Element]()
    while True:
        more = {pattern for pattern in patterns if not reached.isdisjoint(variables_in(pattern))} - kept
        if not more:
            return [pattern for pattern in patterns if pattern in kept]
        kept |= more
        reached |= {variable for pattern in more for variable in variables_in(pattern)}
