"""Scores of patterns in rows where all of their variables are bound."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from halfgraph.prediction.facts import BEAM_NOTE, Facts, Ids, Likely
from halfgraph.prediction.partial_rows import ANY, NO_VALUE, UNBOUND, PartialRows
from halfgraph.prediction.path_scores import PathScores
from halfgraph.prediction.row_joins import PathJoin, excluded_relations, groups, relation_values, term_values
from halfgraph.query.rows import Domain, Given, LinkPattern, Pattern, TypePattern, Value


@dataclass(frozen=True)
class PatternScores:
    """Scores of the patterns of one plan."""

    paths: PathScores
    domains: Mapping[str, Domain]
    given: frozenset[str]  # variables that only given rows have: None is no value of theirs
    _given: dict[Given, Ids] = field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        return self.paths.facts

    def scores(self, table: PartialRows, pattern: Pattern) -> Likely:
        """Probability of a pattern in each row: (rows,)."""
        match pattern:
            case Given(variables):
                agree = table.agreement(variables, self.encoded(pattern))
                return np.asarray(agree.any(axis=1), np.float64)
            case TypePattern(term, iri, variable, subclasses):
                entities = term_values(table, term)
                return self._memberships(entities, iri, table.columns[variable] if variable else None, subclasses)
            case LinkPattern():
                return self._links(table, pattern)
        raise TypeError(f"{type(pattern).__name__} has no scores")

    def encoded(self, given: Given) -> Ids:
        """Return given rows as numbers: (rows, variables)."""
        if given not in self._given:
            rows = [[self._code(*cell) for cell in zip(row, given.variables, strict=True)] for row in given.rows]
            self._given[given] = np.array(rows, np.int64).reshape(len(rows), len(given.variables))
        return self._given[given]

    def _code(self, value: Value, name: str) -> int:
        if value is None:
            return UNBOUND if name in self.given else ANY
        if self.domains[name] == "class":
            return self.facts.classes.index(str(value)) if value in self.facts.classes else NO_VALUE
        return value if isinstance(value, int) else NO_VALUE

    def _links(self, table: PartialRows, pattern: LinkPattern) -> Likely:
        heads, tails = term_values(table, pattern.source), term_values(table, pattern.target)
        relations = relation_values(table, pattern.path)
        if relations is None:
            return self._path(PathJoin(self.paths, pattern.path, heads), tails)
        scores = np.zeros(len(table))
        for relation, own in groups(relations):
            if relation not in excluded_relations(pattern.path):
                scores[own] = self.facts.pair_scores(heads[own], relation, tails[own])
        return scores

    def _path(self, join: PathJoin, tails: Ids) -> Likely:
        """Probability of a path from each key to its tail; beyond the best keys, known ones only."""
        every = list(dict.fromkeys(join.keys.tolist()))
        scores = np.zeros(len(tails))
        if len(every) > join.most:
            self.facts.cut(BEAM_NOTE)
            scores = join.is_known(join.keys, tails).astype(np.float64)
        for key in every[: join.most]:
            own = join.keys == key
            scores[own] = join.scores(key)[tails[own]]
        return scores

    def _memberships(self, entities: Ids, iri: str | None, classes: Ids | None, subclasses: bool) -> Likely:
        if iri is not None or classes is None:
            return self.facts.members(str(iri), subclasses)[entities].astype(np.float64)
        scores = np.zeros(len(entities))
        for number, own in groups(classes):
            scores[own] = self.facts.members(self.facts.classes[number], subclasses)[entities[own]]
        return scores
