"""Ways of paths: the sets of missing links over which a path leads from an entity to others, all of them listed.

This is exact and takes small graphs: ways multiply with every step. It gives up beyond `MOST_WAYS`. `best_links` finds
the most likely way alone, in a graph of any size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np

from halfgraph.prediction.base import Scores
from halfgraph.prediction.baselines import one_hot
from halfgraph.prediction.facts import SURE
from halfgraph.prediction.lineage import Event, link_event
from halfgraph.prediction.path_scores import Direct, PathScores, reverse
from halfgraph.query.rows import Path, PathChoice, PathRepeat, PathSequence

Needs = frozenset[Event]
Links = list[tuple[int, int, int]]  # head, relation, tail
MOST_ENTITIES, MOST_WAYS = 32, 512  # of a graph; from one entity
HEADS = 16  # from which a repeated path is tried to go on by a missing link


class _TooManyWaysError(Exception):
    """The ways cannot be listed."""


@dataclass
class _Reached:
    """Ways to each entity; none needs more than another one to the same entity."""

    ways: dict[int, set[Needs]] = field(default_factory=dict)
    count: int = 0

    def add(self, tail: int, way: Needs) -> bool:
        """Add a way, and return whether no other one covers it."""
        known = self.ways.setdefault(tail, set())
        if any(other <= way for other in known):
            return False
        worse = {other for other in known if way < other}
        self.ways[tail] = (known - worse) | {way}
        self.count += 1
        if self.count > MOST_WAYS:
            raise _TooManyWaysError
        return True

    def items(self) -> Iterator[tuple[int, Needs]]:
        return ((tail, way) for tail, ways in list(self.ways.items()) for way in list(ways))


@dataclass
class PathWays(PathScores):
    """Scores and ways of paths for one query."""

    _ways: dict[tuple[Path, int], dict[int, set[Needs]] | None] = field(default_factory=dict)

    def tails(self, path: Path, head: int) -> Scores:
        """Probability that a path leads from an entity to each entity, by all ways if they can be listed."""
        ways = None if self.direct(path) else self.ways(path, head)
        if ways is None:
            return super().tails(path, head)
        scores = np.zeros(self.facts.count, np.float32)
        for tail, some in ways.items():
            likely = [prod(self.facts.probabilities[event] for event in way) for way in some]
            scores[tail] = 1.0 if frozenset() in some else min(1 - prod(1 - own for own in likely), SURE)
        return scores

    def ways(self, path: Path, head: int) -> dict[int, set[Needs]] | None:
        """Return all ways from an entity, by the entity that they lead to; None if they are too many to list."""
        if (path, head) not in self._ways:
            try:
                listed = None if self.facts.count > MOST_ENTITIES else self._listed(path, head).ways
            except _TooManyWaysError:
                listed = None
            self._ways[path, head] = listed
        return self._ways[path, head]

    def _listed(self, path: Path, head: int) -> _Reached:
        reached, own = _Reached(), self.direct(path)
        if own is not None:
            self._add_direct(own, head, reached)
            return reached
        match path:
            case PathSequence(parts):
                reached.add(head, frozenset())
                for part in parts:
                    reached = self._step(part, reached)
            case PathChoice(parts):
                for part in parts:
                    for tail, way in self._again(part, head):
                        reached.add(tail, way)
            case PathRepeat(part, least, most):
                reached.add(head, frozenset())
                for _ in range(least):
                    reached = self._step(part, reached)
                self._add_repetitions(part, reached, most and most - least)
        return reached

    def _again(self, path: Path, head: int) -> list[tuple[int, Needs]]:
        ways = self.ways(path, head)
        if ways is None:
            raise _TooManyWaysError
        return [(tail, way) for tail, some in ways.items() for way in some]

    def _add_direct(self, path: Direct, head: int, reached: _Reached) -> None:
        if path.reflexive:
            reached.add(head, frozenset())
        for relation in path.relations:
            scores = self.facts.tails(head, relation)
            for tail in np.flatnonzero(scores).tolist():
                known = scores[tail] == 1
                likely = known or self.facts.link(head, relation, tail) > 0
                if likely:
                    reached.add(tail, frozenset() if known else frozenset({link_event(head, relation, tail)}))

    def _step(self, path: Path, reached: _Reached) -> _Reached:
        further = _Reached()
        for middle, way in reached.items():
            for tail, rest in self._again(path, middle):
                further.add(tail, way | rest)
        return further

    def _add_repetitions(self, path: Path, reached: _Reached, most: int | None) -> None:
        """Add the ways of repetitions, until there are no new ones."""
        new, repetition = list(reached.items()), 0
        while new and (most is None or repetition < most):
            longer = [(tail, way | rest) for middle, way in new for tail, rest in self._again(path, middle)]
            new, repetition = [way for way in longer if reached.add(*way)], repetition + 1

    # The most likely way

    def best_links(self, path: Path, head: int, tail: int) -> Links:
        """Return the links of the most likely way of a path between two entities."""
        own = self.direct(path)
        if own is not None:
            if own.reflexive and head == tail:
                return []
            return [max(((head, number, tail) for number in own.relations), key=lambda link: self.facts.link(*link))]
        match path:
            case PathSequence((first, *others)):
                rest = PathSequence(tuple(others))
                likely = self.tails(first, head) * self.tails(reverse(rest), tail)
                middle = int(likely.argmax())
                return self.best_links(first, head, middle) + self.best_links(rest, middle, tail)
            case PathChoice(parts):
                best = max(parts, key=lambda part: self.tails(part, head)[tail])
                return self.best_links(best, head, tail)
            case PathRepeat(part, least, _):
                return [] if head == tail and least == 0 else self._best_repeated(part, head, tail)
        raise TypeError(f"{type(path).__name__} is no path")

    def _best_repeated(self, path: Path, head: int, tail: int) -> Links:
        """Return known links, at most one missing step, and known links again."""
        repeated, count = PathRepeat(path, 0, None), self.facts.count
        before = np.flatnonzero(self.known(repeated, one_hot(head, count)))
        after = self.known(reverse(repeated), one_hot(tail, count))
        if after[head] and head != tail:
            return self._known_links(path, head, tail)
        likely = {first: self.tails(path, first) * after for first in before[:HEADS].tolist()}
        first = max(likely, key=lambda entity: float(likely[entity].max()))
        last = int(likely[first].argmax())
        missing = self.best_links(path, first, last)
        return self._known_links(path, head, first) + missing + self._known_links(path, last, tail)

    def _known_links(self, path: Path, head: int, tail: int) -> Links:
        """Return the links of a shortest known repetition of a path, breadth first."""
        before: dict[int, int] = {head: head}
        new = [head]
        while new and tail not in before:
            steps = [(entity, int(further)) for entity in new for further in self.known_tails(path, entity)]
            new = []
            for entity, further in steps:
                if further not in before:
                    before[further] = entity
                    new.append(further)
        entities = [tail]
        while entities[-1] != head:
            entities.append(before[entities[-1]])
        pairs = zip(reversed(entities[1:]), reversed(entities[:-1]), strict=True)
        return [link for first, last in pairs for link in self.best_links(path, first, last)]
