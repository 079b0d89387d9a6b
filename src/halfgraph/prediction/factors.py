"""Factors of a variable: what a query asks of one entity alone, as a probability for every entity.

A variable that is not selected and hangs on one other variable is folded into a factor of that variable: some entity
stands for it. If its part of the query leads to named entities, the factor has a score for every entity, the same as
the link executor gives. Otherwise the scores are those by known links alone, and `values` computes single entities.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from halfgraph.prediction.base import Scores
from halfgraph.prediction.facts import SURE, Facts, Ids
from halfgraph.prediction.lineage import Event, FoldedEvent, MembershipEvent, link_event
from halfgraph.prediction.path_scores import PathScores, reverse
from halfgraph.query.rows import Path, Relation

MOST_ANCHORS = 32  # given values from which missing links are followed
NESTED = 4  # entities for which a variable that hangs on a hanging one is computed
GUESS = np.float32(0.1)  # first estimate of a path that is not computed yet


@dataclass(frozen=True)
class ClassFactor:
    """The entity has a class."""

    iri: str
    subclasses: bool = False


@dataclass(frozen=True)
class GivenFactor:
    """The entity is one of the values."""

    values: frozenset[int]


@dataclass(frozen=True)
class LinkFactor:
    """A path leads to the entity, from a named entity or from one that stands for a folded variable."""

    path: Path
    end: "int | Fold"


Factor = ClassFactor | GivenFactor | LinkFactor


@dataclass(frozen=True)
class Fold:
    """A variable that stands for any entity with all of the factors."""

    factors: frozenset[Factor] = frozenset()

    def is_anchored(self) -> bool:
        """Whether some factor leads to few named entities."""
        return any(map(is_anchored, self.factors))


def is_anchored(factor: Factor) -> bool:
    """Whether a factor leads to few named entities, so that few entities are likely."""
    match factor:
        case GivenFactor(values):
            return len(values) <= MOST_ANCHORS
        case LinkFactor(_, Fold() as fold):
            return fold.is_anchored()
    return isinstance(factor, LinkFactor)


def is_open(factor: Factor) -> bool:
    """Whether the factor is computed for single entities only."""
    return isinstance(factor, LinkFactor) and not is_anchored(factor)


def sort_key(factors: Iterable[Factor]) -> str:
    """Return a text by which sets of factors are sorted, whatever the order of their members."""
    return str(sorted(map(_factor_key, factors)))


def _factor_key(factor: Factor) -> str:
    match factor:
        case GivenFactor(values):
            return f"{sorted(values)}"
        case LinkFactor(path, Fold(factors)):
            return f"{path} {sort_key(factors)}"
    return repr(factor)


@dataclass
class Factors:
    """Scores of factors for one query."""

    paths: PathScores
    _scores: dict[Factor, Scores] = field(default_factory=dict)
    _sources: dict[Fold, Scores] = field(default_factory=dict)
    _values: dict[tuple[Factor, int], float] = field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        return self.paths.facts

    def scores(self, factor: Factor) -> Scores:
        """Probability of every entity; of an open factor by known links only: (entities,)."""
        if factor not in self._scores:
            self._scores[factor] = self._computed(factor)
        return self._scores[factor]

    def _computed(self, factor: Factor) -> Scores:
        match factor:
            case ClassFactor(iri, subclasses):
                return self.facts.members(iri, subclasses)
            case GivenFactor(values):
                mask = np.zeros(self.facts.count, np.float32)
                mask[list(values)] = 1.0
                return mask
            case LinkFactor(path, int(entity)):
                return self.paths.tails(path, entity)
            case LinkFactor(path, Fold() as fold):
                source = self.source(fold)
                return self.paths.project(path, source, missing=fold.is_anchored())
        raise TypeError(f"{type(factor).__name__} is no factor")

    def product(self, factors: frozenset[Factor]) -> Scores | None:
        """Probability of every entity by all factors that are not open; None if there is none: (entities,)."""
        scores = [self.scores(factor) for factor in factors if not is_open(factor)]
        return reduce(np.multiply, scores) if scores else None

    def source(self, fold: Fold) -> Scores:
        """Probability of every entity to stand for a folded variable: (entities,)."""
        if fold not in self._sources:
            self._sources[fold] = self._source(fold, self.facts.beam if fold.is_anchored() else 0)
        return self._sources[fold]

    def _source(self, fold: Fold, most: int, near: Scores | None = None) -> Scores:
        """Multiply the factors; open ones are computed for the best entities, by the scores of `near` too."""
        closed = self.product(fold.factors)
        scores = np.ones(self.facts.count, np.float32) if closed is None else closed
        for factor in filter(is_open, fold.factors):
            promising = scores if near is None else scores * near
            scores = scores * (self._improved(factor, promising, most) if most else self.scores(factor))
        return scores

    def _improved(self, factor: Factor, source: Scores, most: int) -> Scores:
        """Compute an open factor for the best entities of a source that are not known to have it."""
        scores = self.scores(factor).copy()
        best = self.facts.executor.best_heads(source * self.estimate(factor) * (scores < 1))[:most]
        scores[best] = self.values(factor, best)
        return scores

    def estimate(self, factor: Factor) -> Scores:
        """First estimate of an open factor for every entity: (entities,)."""
        assert isinstance(factor, LinkFactor)
        back = reverse(factor.path)
        missing = self.facts.missing_tails(back.id) if isinstance(back, Relation) else GUESS
        return np.maximum(self.scores(factor), missing)

    def values(self, factor: Factor, entities: Ids) -> Scores:
        """Probabilities of some entities: (n,)."""
        if not is_open(factor):
            return self.scores(factor)[entities]
        new = [entity for entity in entities.tolist() if (factor, entity) not in self._values]
        self._compute(factor, new)
        return np.array([self._values[factor, entity] for entity in entities.tolist()], np.float32)

    def _compute(self, factor: Factor, entities: list[int]) -> None:
        assert isinstance(factor, LinkFactor)
        assert isinstance(factor.end, Fold)
        fold, known, back = factor.end, self.scores(factor), reverse(factor.path)
        if isinstance(back, Relation):
            self.facts.fetch((entity, back.id) for entity in entities if known[entity] < 1)
        for entity in entities:
            if known[entity] == 1:
                self._values[factor, entity] = 1.0
                continue
            tails = self.paths.tails(back, entity)
            source = self._source(fold, NESTED, tails) if any(map(is_open, fold.factors)) else self.source(fold)
            self._values[factor, entity] = any_entity(tails * source)

    def exists(self, fold: Fold) -> float:
        """Probability that any entity stands for a folded variable; 1 if a known one does."""
        if (self.source(fold) == 1).any():
            return 1.0
        return any_entity(self._source(fold, self.facts.beam))

    def event(self, factor: Factor, entity: int) -> Event | None:
        """Return the event of a factor at an entity, with its probability noted; None if it is known."""
        if isinstance(factor, LinkFactor) and isinstance(factor.end, int) and isinstance(factor.path, Relation):
            likely = self.facts.link(factor.end, factor.path.id, entity)
            return None if likely == 1 else link_event(factor.end, factor.path.id, entity)
        likely = float(self.values(factor, np.array([entity]))[0])
        if likely == 1:
            return None
        event: Event = FoldedEvent(factor, entity)
        if isinstance(factor, ClassFactor):
            event = MembershipEvent(entity, factor.iri, factor.subclasses)
        self.facts.probabilities[event] = likely
        return event


def any_entity(scores: Scores) -> float:
    """Probability that any of some independent events holds, below 1 since none is known."""
    return float(min(1 - np.prod(1 - scores.astype(np.float64)), SURE))
