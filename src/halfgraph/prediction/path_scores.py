"""Scores of paths: the probability that a path leads to each entity, from scores of where it starts.

Ways over different intermediate entities are combined as if independent, as the link executor does. A path that is
repeated any number of times may have at most `MISSING_LINKS` missing steps; known links are followed to the end, and
of the ways over them the best one counts.
"""

from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from halfgraph.prediction._link_kernels import add_ways, best_known_ways, known_ways
from halfgraph.prediction.base import Scores
from halfgraph.prediction.baselines import one_hot
from halfgraph.prediction.facts import SURE, Facts, Ids
from halfgraph.prediction.link_executor import any_of
from halfgraph.query.rows import AnyRelation, Path, PathChoice, PathRepeat, PathSequence, Relation

MISSING_LINKS = 4  # missing steps of a repeated path
FARTHEST = 10_000  # known steps of a repeated path


@dataclass(frozen=True)
class Direct:
    """A path of one link, of any of some relations, or with `reflexive` of no link."""

    relations: tuple[int, ...]
    reflexive: bool = False


def direct(path: Path, relations: Ids) -> Direct | None:
    """Return a path as a choice of relations; None if it may have several links. `relations` are all forward ones."""
    match path:
        case Relation(number):
            return Direct((number,))
        case AnyRelation(_, excluded, inverse):
            return Direct(tuple(number ^ inverse for number in relations.tolist() if number not in excluded))
        case PathChoice(parts):
            some = [direct(part, relations) for part in parts]
            if all(some):
                every = dict.fromkeys(number for part in some if part for number in part.relations)
                return Direct(tuple(every), any(part.reflexive for part in some if part))
        case PathSequence((part,)) | PathRepeat(part, 1, 1):
            return direct(part, relations)
        case PathRepeat(part, 0, 1):
            own = direct(part, relations)
            return own and replace(own, reflexive=True)
    return None


def reverse(path: Path) -> Path:
    """Return the path from its end to its start."""
    match path:
        case Relation(number):
            return Relation(number ^ 1)
        case AnyRelation():
            return replace(path, inverse=not path.inverse)
        case PathSequence(parts):
            return PathSequence(tuple(map(reverse, reversed(parts))))
        case PathChoice(parts):
            return PathChoice(tuple(map(reverse, parts)))
        case PathRepeat(part, least, most):
            return PathRepeat(reverse(part), least, most)


@dataclass
class PathScores:
    """Scores of paths for one query."""

    facts: Facts
    _tails: dict[tuple[Path, int], Scores] = field(default_factory=dict)
    _direct: dict[Path, Direct | None] = field(default_factory=dict)

    def direct(self, path: Path) -> Direct | None:
        """Return a path as a choice of relations; None if it may have several links."""
        if path not in self._direct:
            self._direct[path] = direct(path, self.facts.relations)
        return self._direct[path]

    def tails(self, path: Path, head: int) -> Scores:
        """Probability that a path leads from an entity to each entity, 1 if known: (entities,)."""
        if isinstance(path, Relation):
            return self.facts.tails(head, path.id)
        if (path, head) not in self._tails:
            self._tails[path, head] = self.project(path, one_hot(head, self.facts.count))
        return self._tails[path, head]

    def project(self, path: Path, source: Scores, *, missing: bool = True) -> Scores:
        """Probability that a path leads to each entity from one that has its source score: (entities,).

        Without `missing`, over known links only.
        """
        own = self.direct(path)
        if own is not None:
            ways = self._project_direct(own, source, missing)
        elif not missing:
            return self.known(path, source)
        else:
            match path:
                case PathSequence(parts):
                    return reduce(lambda scores, part: self.project(part, scores), parts, source)
                case PathChoice(parts):
                    ways = any_of([self.project(part, source) for part in parts])
                case PathRepeat(part, least, most):
                    ways = self._repeat(part, least, most, source)
        return self._marked(ways, self.known(path, (source == 1).astype(np.float32)))

    def _marked(self, ways: Scores, known: Scores) -> Scores:
        """Leave probability 1 to what is known."""
        ways = np.minimum(ways, SURE)
        ways[known == 1] = 1.0
        return ways

    def _project_direct(self, path: Direct, source: Scores, missing: bool) -> Scores:
        triples = self.facts.links.triples
        known = [known_ways(*triples.of_relation(relation), source) for relation in path.relations]
        ways = any_of(known) if known else np.zeros_like(source)
        if missing:
            self._add_missing(path, source, ways)
        return any_of([ways, source]) if path.reflexive else ways

    def _add_missing(self, path: Direct, source: Scores, ways: Scores) -> None:
        """Add the ways over missing links from the best heads."""
        heads = self.facts.executor.best_heads(source)[: self.facts.beam].tolist()
        pairs = [(head, relation) for head in heads for relation in path.relations]
        if len(path.relations) > 1 and len(pairs) > self.facts.beam:
            estimates = {relation: self.facts.missing_tails(relation) for relation in path.relations}
            pairs.sort(key=lambda pair: -float(source[pair[0]] * estimates[pair[1]][pair[0]]))
            pairs = pairs[: self.facts.beam]
        self.facts.fetch(pairs)
        for head, relation in pairs:
            add_ways(ways, self.facts.row(head, relation), source[head])

    def _repeat(self, path: Path, least: int, most: int | None, source: Scores) -> Scores:
        for _ in range(least):
            source = self.project(path, source)
        if most is not None:
            best = source
            for _ in range(most - least):
                source = self.project(path, source)
                best = np.maximum(best, source)
            return best
        self.facts.note(f"Repeated paths are predicted with at most {MISSING_LINKS} missing links.")
        scores = self._closure(path, source)
        for _ in range(MISSING_LINKS - least):
            further = self._closure(path, np.maximum(scores, self._missing_step(path, scores)))
            if (further == scores).all():
                break
            scores = further
        return scores

    def _missing_step(self, path: Path, source: Scores) -> Scores:
        own = self.direct(path)
        if own is None:
            return self.project(path, source)
        ways = np.zeros_like(source)
        self._add_missing(own, source, ways)
        return np.minimum(ways, SURE)

    # Known links only, the best way counts

    def known(self, path: Path, source: Scores) -> Scores:
        """Best source score of an entity from which known links lead to each entity: (entities,)."""
        own = self.direct(path)
        if own is not None:
            best = source.copy() if own.reflexive else np.zeros_like(source)
            for relation in own.relations:
                best_known_ways(*self.facts.links.triples.of_relation(relation), source, best)
            return best
        match path:
            case PathSequence(parts):
                return reduce(lambda scores, part: self.known(part, scores), parts, source)
            case PathChoice(parts):
                return reduce(np.maximum, [self.known(part, source) for part in parts])
            case PathRepeat(part, least, most):
                for _ in range(least):
                    source = self.known(part, source)
                return self._closure(part, source, FARTHEST if most is None else most - least)
        raise TypeError(f"{type(path).__name__} is no path")

    def _closure(self, path: Path, source: Scores, most: int = FARTHEST) -> Scores:
        for _ in range(most):
            further = np.maximum(source, self.known(path, source))
            if (further == source).all():
                break
            source = further
        return source

    def known_tails(self, path: Path, head: int) -> Ids:
        """Return the entities that known links lead to from an entity."""
        if isinstance(path, Relation):
            return self.facts.known_of(head, path.id)
        return np.flatnonzero(self.known(path, one_hot(head, self.facts.count)))
