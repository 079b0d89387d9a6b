"""Lineage: which uncertain facts a row needs, and the probability of it.

A row holds in some ways. A way needs facts and may exclude sets of facts; facts hold independently of each other, and
those that are known are left out. `Lineage.probability` is the probability that at least one of some ways holds. It is
exact if it takes at most `EXPANSIONS` case distinctions; otherwise ways are combined as if they were independent once
the facts that all of them need are factored out, which is never less than the best way or more than their sum.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

Event = Hashable
EXPANSIONS = 512  # case distinctions, for the ways of one row that share facts
COMPARED = 64  # ways that are compared with each other, to leave out those that need more than another


class LinkEvent(NamedTuple):
    """A missing link, in the direction of the triples."""

    head: int
    relation: int
    tail: int


class MembershipEvent(NamedTuple):
    """A missing membership of an entity in a class, or with `subclasses` in one of its subclasses."""

    entity: int
    iri: str
    subclasses: bool


class FoldedEvent(NamedTuple):
    """A part of a query that holds at an entity, whatever its own variables are; -1 for no entity."""

    part: Hashable
    entity: int
    source: int = -1  # of a path between two entities


def link_event(head: int, relation: int, tail: int) -> LinkEvent:
    """Return the event of a link, the same one for both directions of a relation."""
    return LinkEvent(head, relation, tail) if relation % 2 == 0 else LinkEvent(tail, relation ^ 1, head)


@dataclass(frozen=True)
class Way:
    """One way in which a row can hold: all of `needs` hold, and no set of `excludes` holds as a whole."""

    needs: frozenset[Event] = frozenset()
    excludes: frozenset[frozenset[Event]] = frozenset()

    def events(self) -> frozenset[Event]:
        """Return all events that the way depends on."""
        return self.needs.union(*self.excludes) if self.excludes else self.needs

    def covers(self, other: "Way") -> bool:
        """Whether this way holds wherever another one does."""
        return self.needs <= other.needs and self.excludes <= other.excludes

    def assume(self, event: Event, holds: bool) -> "Way | None":
        """Return what is left of the way once it is known whether an event holds; None if it cannot hold."""
        if holds:
            excludes = frozenset(some - {event} for some in self.excludes)
            return None if frozenset() in excludes else Way(self.needs - {event}, excludes)
        if event in self.needs:
            return None
        return Way(self.needs, frozenset(some for some in self.excludes if event not in some))


CERTAIN = Way()


class _TooManyError(Exception):
    """An exact probability would take too long."""


@dataclass
class _Expansion:
    """The exact probability of some ways, by case distinction on the events that they share."""

    lineage: "Lineage"
    left: int  # case distinctions
    memo: dict[frozenset[Way], float] = field(default_factory=dict)

    def probability(self, ways: Sequence[Way]) -> float:
        if CERTAIN in ways:
            return 1.0
        return 1 - prod(1 - self._connected(part) for part in components(ways))

    def _connected(self, ways: Sequence[Way]) -> float:
        if len(ways) == 1:
            return self.lineage.way_probability(ways[0])
        key = frozenset(ways)
        if key not in self.memo:
            self.left -= 1
            if self.left < 0:
                raise _TooManyError
            shared = Counter(event for way in ways for event in way.events())
            event, _ = shared.most_common(1)[0]
            likely = self.lineage.probabilities[event]
            cases = ((likely, True), (1 - likely, False))
            self.memo[key] = sum(share * self.probability(_assume(ways, event, case)) for share, case in cases if share)
        return self.memo[key]


@dataclass(frozen=True)
class Lineage:
    """The probability of every event."""

    probabilities: dict[Event, float] = field(default_factory=dict, repr=False)

    def probability(self, ways: Iterable[Way]) -> float:
        """Probability that at least one of some ways holds."""
        distinct = simplify(ways)
        if CERTAIN in distinct:
            return 1.0
        if len(distinct) == 1:
            return self.way_probability(distinct[0])
        return 1 - prod(1 - self._connected(part) for part in components(distinct))

    def way_probability(self, way: Way) -> float:
        """Probability of one way."""
        needed = prod(self.probabilities[event] for event in way.needs)
        if not way.excludes:
            return needed
        excluded = [some - way.needs for some in way.excludes]
        return needed * (1 - self.probability(Way(some) for some in excluded))

    def _connected(self, ways: Sequence[Way]) -> float:
        """Probability of ways that share events."""
        if len(ways) == 1:
            return self.way_probability(ways[0])
        try:
            return _Expansion(self, EXPANSIONS).probability(ways)
        except _TooManyError:
            return self._approximate(ways)

    def _approximate(self, ways: Sequence[Way]) -> float:
        """Probability of ways as if they were independent, but for the facts that all of them need."""
        common = frozenset.intersection(*(way.needs for way in ways))
        rest = [self.way_probability(Way(way.needs - common, way.excludes)) for way in ways]
        return prod(self.probabilities[event] for event in common) * (1 - prod(1 - likely for likely in rest))


def _assume(ways: Iterable[Way], event: Event, holds: bool) -> list[Way]:
    return simplify(rest for way in ways if (rest := way.assume(event, holds)) is not None)


def simplify(ways: Iterable[Way]) -> list[Way]:
    """Return the distinct ways, without those that another one covers if there are few."""
    distinct = list(dict.fromkeys(ways))
    if not 1 < len(distinct) <= COMPARED:
        return distinct
    distinct.sort(key=lambda way: len(way.needs) + len(way.excludes))
    kept: list[Way] = []
    for way in distinct:
        if not any(other.covers(way) for other in kept):
            kept.append(way)
    return kept


def components(ways: Sequence[Way]) -> list[list[Way]]:
    """Group the ways so that different groups share no event."""
    parents = list(range(len(ways)))  # a way of the same group, or the way itself

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    first: dict[Event, int] = {}
    for number, way in enumerate(ways):
        for event in way.events():
            parents[root(first.setdefault(event, number))] = root(number)
    groups: dict[int, list[Way]] = {}
    for number, way in enumerate(ways):
        groups.setdefault(root(number), []).append(way)
    return list(groups.values())
