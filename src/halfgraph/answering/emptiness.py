"""Why a query has no exact answer: the smallest part of it that has none, and what the rest returns."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from halfgraph.answering.explanation import Laid, shown
from halfgraph.answering.schema import EmptyReason, NamedEntity, RelaxedQuery
from halfgraph.answering.store_rows import Facts, Names
from halfgraph.query.tree import Anchor, Negate, Project, Query, Union, type_of
from halfgraph.sparql.prefixes import Prefixes

MOST_PATTERNS = 40  # of a query that is looked into
SECONDS = 2.0  # that the looking may take
MOST_COUNTED = 10_000  # answers of the rest
SOME = 5  # of which are shown
_VARIABLE = re.compile(r"\?\w+|_:\w+")


@dataclass(frozen=True)
class Spelling:
    """The patterns of a query as SPARQL, by the names of its variables."""

    laid: Laid
    names: Names
    prefixes: Prefixes

    def patterns(self) -> list[str]:
        """The patterns, each once; a union or a negation is one."""
        return list(dict.fromkeys(self._of(self.laid.variables[self.laid.target], set())))

    def _of(self, node: Query, seen: set[int]) -> Iterator[str]:
        """The patterns of a node and of what leads to it."""
        if id(node) in seen or isinstance(node, Anchor):
            return
        seen.add(id(node))
        match node:
            case Union():
                yield " UNION ".join(f"{{ {self._group(part, node)} }}" for part in node.parts)
            case Negate():
                yield f"FILTER NOT EXISTS {{ {' '.join(self._of(node.part, seen))} }}"
            case Project():
                yield from self._of(node.source, seen)
                yield self._triple(node)
            case _:
                yield from (self._equal(part, node) for part in node.parts if isinstance(part, Anchor))
                yield from (text for part in node.parts for text in self._of(part, seen))
        if (type_id := type_of(node)) is not None:
            yield f"{self._term(node)} a {self._short(self.names.graph.types.names[type_id])} ."

    def _group(self, part: Query, node: Query) -> str:
        """One of several choices; what it has in common with others is said again."""
        return self._equal(part, node) if isinstance(part, Anchor) else " ".join(self._of(part, set()))

    def _equal(self, anchor: Anchor, node: Query) -> str:
        return f"VALUES {self._term(node)} {{ {self._term(anchor)} }}"

    def _triple(self, edge: Project) -> str:
        """An edge as a triple pattern, in the direction of the triples."""
        ends = [self._term(edge.source), self._term(edge)]
        subject, object_ = reversed(ends) if int(edge.relation) & 1 else ends
        return f"{subject} {self._short(self.names.graph.relations.name(int(edge.relation) // 2))} {object_} ."

    def _term(self, node: Query) -> str:
        term = self.laid.term(node)
        return shown(term) if isinstance(term, str) else self._short(self.names.graph.entities.name(term))

    def _short(self, name: str) -> str:
        return self.prefixes.short(self.names.graph.namer.iri(name))

    def query(self, form: str, patterns: Sequence[str], after: str = "") -> str:
        """A query of some patterns, with the prefixes that it uses."""
        body = " ".join(patterns)
        words = [word for word in re.findall(r"<[^>]*>|[\w.-]*:[^\s{}]*", body) if not word.startswith("_:")]
        head = " ".join(self.prefixes.declarations(words))
        return f"{head} {form} {{ {body} }}{after}".strip()


@dataclass(frozen=True)
class Emptiness:
    """What finds out why a query has no exact answer."""

    facts: Facts
    names: Names
    seconds: float = SECONDS

    def why(self, laid: Laid) -> EmptyReason | None:
        """The reason; None where it would take too long to find, or where single patterns are not the reason."""
        spelling = Spelling(laid, self.names, Prefixes.of(self.names.graph))
        patterns, until = spelling.patterns(), time.perf_counter() + self.seconds
        if len(patterns) > MOST_PATTERNS or any("_:" in pattern for pattern in patterns):
            return None

        def holds(some: Sequence[str]) -> bool | None:
            left = until - time.perf_counter()
            if left <= 0:
                return None
            return self.facts.holds(spelling.query("ASK", some), self.facts.time_limit and left)

        if holds(patterns) is not False:
            return None
        part = smallest_failing(patterns, holds)
        if part is None:
            return None
        without = self._without(spelling, patterns, part, shown(laid.target), holds)
        return EmptyReason(part, spelling.query("SELECT *", part), without)

    def _without(
        self,
        spelling: Spelling,
        patterns: Sequence[str],
        part: Sequence[str],
        target: str,
        holds: Callable[[Sequence[str]], bool | None],
    ) -> RelaxedQuery | None:
        """What the query returns without the part, or else without one pattern of it."""
        for left_out in (part, *([pattern] for pattern in part)):
            rest = connected([pattern for pattern in patterns if pattern not in left_out], target)
            if rest and holds(rest):
                return self._counted(spelling, rest, target)
        return None

    def _counted(self, spelling: Spelling, rest: Sequence[str], target: str) -> RelaxedQuery:
        """How many answers some patterns have, and some of them."""
        text = spelling.query(f"SELECT DISTINCT {target}", rest)
        rows = self.facts.rows(f"{text} LIMIT {MOST_COUNTED}", self.facts.time_limit)
        found = [
            NamedEntity(one.entity, one.label)
            for one in self.names.known(type(rows)(rows.variables, rows.bindings[:SOME]))
        ]
        return RelaxedQuery(text, len(rows.bindings), found)


def smallest_failing(patterns: Sequence[str], holds: Callable[[Sequence[str]], bool | None]) -> list[str] | None:
    """A part that has no answer, all smaller parts of which have some; None where that takes too long.

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


def connected(patterns: Sequence[str], target: str) -> list[str]:
    """The patterns that the target is tied to through shared variables, in their order; none where none has it."""
    reached, kept = {target}, set[str]()
    while True:
        more = {pattern for pattern in patterns if pattern not in kept and reached & set(_VARIABLE.findall(pattern))}
        if not more:
            return [pattern for pattern in patterns if pattern in kept]
        kept |= more
        reached |= {variable for pattern in more for variable in _VARIABLE.findall(pattern)}
