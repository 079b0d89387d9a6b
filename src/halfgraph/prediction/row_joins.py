"""Joins of a search: where a pattern leads from the bound variables of each row to one more variable."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from halfgraph.prediction.base import Scores
from halfgraph.prediction.facts import BEAM_NOTE, Facts, Ids, Likely, Mask
from halfgraph.prediction.partial_rows import PartialRows
from halfgraph.prediction.path_scores import PathScores, reverse
from halfgraph.query.rows import AnyRelation, LinkPattern, Path, Relation, Term, TypePattern

KNOWN_PATHS = 256  # entities from which the known links of a path are followed
LONG_PATHS = 8  # entities from which the scores of a path of several links are computed in one step


class RowJoin(Protocol):
    """Entities that a pattern leads to, by a key for each row."""

    @property
    def keys(self) -> Ids:
        """The key of each row: (rows,)."""

    @property
    def most(self) -> int:
        """Number of keys for which missing facts are computed."""

    def fetch(self, keys: Ids) -> None:
        """Compute what is needed for some keys together."""

    def scores(self, key: int) -> Scores:
        """Probability of every entity, 1 if known: (entities,)."""

    def chances(self, keys: Ids) -> Likely:
        """First estimate that something is missing, for some keys."""

    def known(self, keys: Ids) -> tuple[Ids, Ids]:
        """Known entities of some keys, and the position of the key of each."""

    def is_known(self, keys: Ids, entities: Ids) -> Mask:
        """Whether the entity of each key is known."""


@dataclass(frozen=True)
class RelationJoin:
    """Links of one relation, or of a bound variable for relations: a key is start * relations + relation."""

    facts: Facts
    keys: Ids

    @property
    def most(self) -> int:
        return self.facts.beam

    def split(self, keys: Ids) -> tuple[Ids, Ids]:
        starts, relations = np.divmod(keys, self.facts.graph.relation_count)
        return starts, relations

    def fetch(self, keys: Ids) -> None:
        starts, relations = self.split(keys)
        self.facts.fetch(zip(starts.tolist(), relations.tolist(), strict=True))

    def scores(self, key: int) -> Scores:
        return self.facts.tails(*divmod(key, self.facts.graph.relation_count))

    def chances(self, keys: Ids) -> Likely:
        starts, relations = self.split(keys)
        chances = np.empty(len(keys))
        for relation, own in groups(relations):
            chances[own] = self.facts.missing_tails(relation)[starts[own]]
        return chances

    def has_known(self, keys: Ids) -> Mask:
        """Whether any link is known, for some keys."""
        starts, relations = self.split(keys)
        has = np.empty(len(keys), dtype=bool)
        for relation, own in groups(relations):
            has[own] = self.facts.known_counts(relation)[starts[own]] > 0
        return has

    def known(self, keys: Ids) -> tuple[Ids, Ids]:
        starts, relations = self.split(keys)
        rows, entities = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for relation, own in groups(relations):
            positions, tails = self.facts.known_tails(starts[own], relation)
            rows.append(own[positions])
            entities.append(tails)
        return np.concatenate(rows), np.concatenate(entities)

    def is_known(self, keys: Ids, entities: Ids) -> Mask:
        starts, relations = self.split(keys)
        known = np.zeros(len(keys), dtype=bool)
        for relation, own in groups(relations):
            known[own] = self.facts.is_known(starts[own], relation, entities[own])
        return known


@dataclass(frozen=True)
class PathJoin:
    """A path from bound entities, which are the keys."""

    paths: PathScores
    path: Path
    keys: Ids

    @property
    def most(self) -> int:
        facts = self.paths.facts
        return facts.beam if self.paths.direct(self.path) else max(LONG_PATHS, facts.beam // facts.count)

    def fetch(self, keys: Ids) -> None:
        path = self.paths.direct(self.path)
        if path is not None and len(path.relations) * len(keys) <= self.paths.facts.beam:
            self.paths.facts.fetch((start, relation) for start in keys.tolist() for relation in path.relations)

    def scores(self, key: int) -> Scores:
        return self.paths.tails(self.path, key)

    def chances(self, keys: Ids) -> Likely:
        path = self.paths.direct(self.path)
        if path is None:
            return np.ones(len(keys))
        estimates = [self.paths.facts.missing_tails(relation)[keys] for relation in path.relations]
        return np.minimum(np.sum(estimates, axis=0), 1.0) if estimates else np.zeros(len(keys))

    def known(self, keys: Ids) -> tuple[Ids, Ids]:
        starts = keys.tolist()
        if len(starts) > KNOWN_PATHS:
            self.paths.facts.cut(BEAM_NOTE)
        tails = [self.paths.known_tails(self.path, key) for key in starts[:KNOWN_PATHS]]
        tails += [np.empty(0, np.int64)] * (len(starts) - len(tails))
        rows = np.repeat(np.arange(len(keys)), list(map(len, tails)))
        return rows, np.concatenate([*tails, np.empty(0, np.int64)])

    def is_known(self, keys: Ids, entities: Ids) -> Mask:
        tails = {key: self.paths.known_tails(self.path, key) for key in np.unique(keys).tolist()}
        pairs = zip(keys.tolist(), entities.tolist(), strict=True)
        return np.array([entity in tails[key] for key, entity in pairs], dtype=bool)


@dataclass(frozen=True)
class ClassJoin:
    """Members of classes, which are the keys."""

    facts: Facts
    keys: Ids
    subclasses: bool

    @property
    def most(self) -> int:
        return self.facts.beam

    def fetch(self, keys: Ids) -> None:
        pass

    def scores(self, key: int) -> Scores:
        return self.facts.members(self.facts.classes[key], self.subclasses)

    def chances(self, keys: Ids) -> Likely:
        return np.ones(len(keys))

    def known(self, keys: Ids) -> tuple[Ids, Ids]:
        members = [np.flatnonzero(self.scores(key) == 1) for key in keys.tolist()]
        rows = np.repeat(np.arange(len(keys)), list(map(len, members)))
        return rows, np.concatenate([*members, np.empty(0, np.int64)])

    def is_known(self, keys: Ids, entities: Ids) -> Mask:
        pairs = zip(keys.tolist(), entities.tolist(), strict=True)
        return np.array([self.scores(key)[entity] == 1 for key, entity in pairs], dtype=bool)


def groups(numbers: Ids) -> Iterator[tuple[int, Ids]]:
    """Yield each number with the positions where it stands."""
    small = numbers.astype(np.uint16) if numbers.max(initial=0) < 1 << 16 else numbers  # sorted by radix
    order = np.argsort(small, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(order)]):
        yield int(numbers[order[start]]), order[start:end]


def term_values(table: PartialRows, term: Term) -> Ids:
    """Return the value of a term in each row."""
    return np.full(len(table), term) if isinstance(term, int) else table.columns[term]


def excluded_relations(path: Path) -> frozenset[int]:
    """Return the relations that a variable of a path does not stand for."""
    return path.excluded if isinstance(path, AnyRelation) else frozenset()


def relation_values(table: PartialRows, path: Path) -> Ids | None:
    """Return the relation of a path in each row; None if it is a path of another sort."""
    match path:
        case Relation(number):
            return np.full(len(table), number)
        case AnyRelation(variable=str(name)):
            return table.columns[name]
    return None


def join_of(pattern: LinkPattern | TypePattern, name: str, table: PartialRows, paths: PathScores) -> RowJoin:
    """Return where a pattern leads from its other, bound variables."""
    if isinstance(pattern, TypePattern):
        return ClassJoin(paths.facts, table.columns[str(pattern.variable)], pattern.subclasses)
    backwards = pattern.source == name
    starts = term_values(table, pattern.target if backwards else pattern.source)
    relations = relation_values(table, pattern.path)
    if relations is None:
        return PathJoin(paths, reverse(pattern.path) if backwards else pattern.path, starts)
    return RelationJoin(paths.facts, starts * paths.facts.graph.relation_count + (relations ^ int(backwards)))
