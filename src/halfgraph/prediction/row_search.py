"""Search for rows: a table of partial rows, extended by one variable after another.

A variable is bound by all known facts, and by missing ones from the best rows (a beam). The best rows are kept, those
of known facts alone too, since a later fact may be the missing one. Their order is by the probability of the facts so
far, times an estimate of what is still to come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from halfgraph.prediction.base import Scores
from halfgraph.prediction.factors import Factors, is_anchored, is_open
from halfgraph.prediction.facts import BEAM_NOTE, Facts, Ids, Likely, Mask
from halfgraph.prediction.partial_rows import PartialRows, concatenate, distinct_keys
from halfgraph.prediction.pattern_scores import PatternScores
from halfgraph.prediction.row_extension import (
    TABLE,
    by_classes,
    by_given,
    by_joins,
    by_proposal,
    by_relations,
)
from halfgraph.prediction.row_joins import RelationJoin, excluded_relations, join_of
from halfgraph.prediction.row_plan import RowPlan
from halfgraph.query.rows import (
    Given,
    LinkPattern,
    Pattern,
    Relation,
    TypePattern,
    path_variables,
    pattern_variables,
)

SELDOM = 1e-6  # least estimate of what is to come


@dataclass
class RowSearch:
    """The search for rows of one plan."""

    plan: RowPlan
    factors: Factors
    _bases: dict[str, Scores | None] = field(default_factory=dict)

    _patterns_by_bound: dict[frozenset[str], PatternScores] = field(default_factory=dict)
    _given_only: frozenset[str] = frozenset()

    @property
    def facts(self) -> Facts:
        return self.factors.facts

    def rows(self, bound: Mapping[str, int]) -> PartialRows:
        """Return the best rows, given values of some variables; those of known facts alone too."""
        self._given_only = self.plan.given_only - set(bound)
        tables = [self._run(bound, first) for first in self._starts(bound)]
        if len(tables) == 1:
            return tables[0]
        table = concatenate(tables)
        return table.take(np.sort(distinct_keys(list(table.columns.values()))[0]))

    @property
    def patterns(self) -> PatternScores:
        """Scores of patterns, given which variables only given rows can bind."""
        new = PatternScores(self.factors.paths, self.plan.domains, self._given_only)
        return self._patterns_by_bound.setdefault(self._given_only, new)

    def _run(self, bound: Mapping[str, int], first: str | None) -> PartialRows:
        done = set(bound)
        table = self._settle(PartialRows.of(bound), self.plan.patterns, done)
        for fold in self.plan.exists:
            table = table.times(np.array([self.factors.exists(fold)]))
        for name in bound:
            table = self._times_own(table, name)
        if not len(table):
            return PartialRows.empty(self.plan.variables)
        while left := [name for name in self.plan.variables if name not in done]:
            name = first if first in left else min(left, key=lambda own: self._cost(own, done))
            table = self._extended(table, name, done)
            done.add(name)
            if not len(table):
                return PartialRows.empty(self.plan.variables)
            table = self._cut(table, done)
        return self._closed(table)

    def _times_own(self, table: PartialRows, name: str) -> PartialRows:
        """Multiply by what is asked of a bound variable alone."""
        if self.plan.domains.get(name) == "relation" and name in self.plan.variables:
            return table.times(np.isin(table.columns[name], self._relations(name)).astype(np.float64))
        base = self._base(name) if name in self.plan.factors else None
        return table if base is None else table.times(base[table.columns[name]].astype(np.float64))

    def _starts(self, bound: Mapping[str, int]) -> list[str | None]:
        """Return the variables to begin with: both ends of a link if no entity is named, so that both are tried."""
        done = set(bound)
        left = [name for name in self.plan.variables if name not in done]
        if not left or any(map(self._is_anchored, left)):
            return [None]
        first = min(left, key=lambda name: self._cost(name, done))
        near = self._near(first)
        if self.plan.domains[first] != "entity" or not done.isdisjoint(near):
            return [None]
        starts: list[str | None] = [first, *(name for name in near if self.plan.domains[name] == "entity")]
        return starts[:2]

    def _patterns(self, name: str) -> list[LinkPattern | TypePattern | Given]:
        return [pattern for pattern in self.plan.patterns if name in pattern_variables(pattern)]

    def _near(self, name: str) -> list[str]:
        """Return the other variables in the patterns of a variable."""
        return list(
            dict.fromkeys(own for near in self._patterns(name) for own in pattern_variables(near) if own != name)
        )

    # What is asked of one variable

    def _relations(self, name: str) -> Ids:
        """Return the relations that a variable may stand for."""
        paths = [own.path for own in self.plan.links if name in path_variables(own.path)]
        excluded = frozenset().union(*map(excluded_relations, paths))
        return np.setdiff1d(self.facts.relations, list(excluded)).astype(np.int64)

    def _base(self, name: str) -> Scores | None:
        """Probability of every entity as the value of a variable, but for open factors: (entities,)."""
        if name not in self._bases:
            self._bases[name] = self.factors.product(self.plan.factors.get(name, frozenset()))
        return self._bases[name]

    def _is_anchored(self, name: str) -> bool:
        given = any(name in pattern.variables for pattern in self.plan.givens)
        return given or any(map(is_anchored, self.plan.factors.get(name, ())))

    def _cost(self, name: str, done: set[str]) -> float:
        """Estimated number of values of a variable for each row; the variable with the least is bound next."""
        patterns = self._patterns(name)
        ready = [own for own in patterns if done.issuperset(set(pattern_variables(own)) - {name})]
        costs = [self._fan_out(pattern, name) for pattern in ready]
        costs += [float(len(own.rows)) for own in patterns if isinstance(own, Given) and self._generates(own, name)]
        domain = self.plan.domains[name]
        if domain != "entity":
            return min([*costs, float(len(self.facts.relations if domain == "relation" else self.facts.classes))])
        base = self._base(name)
        share = 1.0 if base is None else float((base == 1).sum() + 1) / self.facts.count
        if not costs and not self._is_anchored(name):
            return self.facts.count * (1 + share)
        return min([*costs, float(self.facts.count)]) * share

    def _fan_out(self, pattern: Pattern, name: str) -> float:
        match pattern:
            case LinkPattern(source, Relation(number), _):
                return self.facts.fan_out(number ^ int(source == name))
            case Given(_, rows):
                return float(len(rows))
        return 4.0 if self.plan.domains[name] != "entity" else 64.0

    # Extension

    def _extended(self, table: PartialRows, name: str, done: set[str]) -> PartialRows:
        """Bind one more variable, and multiply by all facts that this settles."""
        patterns = self._patterns(name)
        ready = [own for own in patterns if done.issuperset(set(pattern_variables(own)) - {name})]
        given = next((own for own in patterns if isinstance(own, Given) and self._generates(own, name)), None)
        links = [own for own in ready if isinstance(own, LinkPattern)]
        joined = [own for own in ready if not isinstance(own, Given) and not _is_loop(own)]
        if given is not None:
            table = self._times_own(by_given(table, name, given.variables, self.patterns.encoded(given)), name)
        elif self.plan.domains[name] == "relation":
            table = by_relations(table, name, links, self._relations(name), self.facts)
        elif self.plan.domains[name] == "class":
            table = by_classes(table, name, len(self.facts.classes))
        elif joined:
            joins = [join_of(own, name, table, self.factors.paths) for own in joined]
            table = by_joins(table, name, joins, self._base(name), self.facts)
            ready = [own for own in ready if own not in joined]
        else:
            relations = [own for own in _relation_variables(patterns) if own in done]
            promise = lambda values: self._promise(name, values)  # noqa: E731
            table = by_proposal(table, name, relations, self._base(name), promise, self.facts)
        return self._settle(table, ready, done | {name})

    def _generates(self, given: Given, name: str) -> bool:
        """Whether a variable can be bound by given rows: none allows any value, unless no other pattern has it."""
        column = given.variables.index(name) if name in given.variables else -1
        alone = name in self._given_only
        return column >= 0 and (alone or all(row[column] is not None for row in given.rows))

    def _settle(self, table: PartialRows, patterns: Iterable[Pattern], done: set[str]) -> PartialRows:
        """Multiply by the facts of patterns whose variables are all bound."""
        for pattern in patterns:
            if done.issuperset(pattern_variables(pattern)) and len(table):
                table = table.times(self.patterns.scores(table, pattern))
        return table

    # Order

    def _cut(self, table: PartialRows, done: set[str]) -> PartialRows:
        if len(table) > TABLE:
            self.facts.cut(BEAM_NOTE)
        return table.best(table.scores * self._future(table, done), TABLE)

    def _promise(self, name: str, relations: Mapping[str, int]) -> Likely:
        """Estimate for every entity as the value of a variable, of what is to come in a predicted row."""
        columns = {
            name: np.arange(self.facts.count),
            **{own: np.full(self.facts.count, n) for own, n in relations.items()},
        }
        table = PartialRows(columns, np.ones(self.facts.count), np.ones(self.facts.count, dtype=bool))
        return self._future(table, set(columns))

    def _future(self, table: PartialRows, done: set[str]) -> Likely:
        """Estimate the probability of what is not bound yet; a row of known facts must have a missing one there."""
        likely, share = np.ones(len(table)), np.zeros(len(table))
        parts = [*self._future_links(table, done), *self._future_factors(table)]
        for sure, missing in parts:
            own = np.maximum(np.where(sure, 1.0, missing), SELDOM)
            likely *= own
            share = np.maximum(share, missing / own)
        return np.where(table.known, likely * np.maximum(share, SELDOM), likely) if parts else likely

    def _future_links(self, table: PartialRows, done: set[str]) -> Iterable[tuple[Mask, Likely]]:
        """Yield for links with one bound end whether a known one goes on, and the chance of a missing one."""
        for pattern in self.plan.links:
            relations = [path_variables(pattern.path)] if not done.issuperset(path_variables(pattern.path)) else []
            ends = [term for term in (pattern.source, pattern.target) if isinstance(term, str) and term not in done]
            if len(ends) == 1 and not relations and pattern.source != pattern.target:
                join = join_of(pattern, ends[0], table, self.factors.paths)
                if isinstance(join, RelationJoin):
                    yield join.has_known(join.keys), join.chances(join.keys)

    def _future_factors(self, table: PartialRows) -> Iterable[tuple[Mask, Likely]]:
        """Yield the same for open factors of bound variables."""
        for name, factors in self.plan.factors.items():
            if name in table.columns:
                for factor in filter(is_open, factors):
                    sure = self.factors.scores(factor)[table.columns[name]] == 1
                    yield sure, np.where(sure, 0.0, self.factors.estimate(factor)[table.columns[name]])

    def _closed(self, table: PartialRows) -> PartialRows:
        """Multiply by the open factors, computed for the best rows."""
        for name, factors in self.plan.factors.items():
            for factor in filter(is_open, factors):
                entities, rows = np.unique(table.columns[name], return_inverse=True)
                order = np.full(len(entities), len(table))
                np.minimum.at(order, rows, np.arange(len(table)))
                scores = self.factors.scores(factor)[entities].astype(np.float64)
                best = np.argsort(order, kind="stable")
                best = best[scores[best] < 1]
                if len(best) > self.facts.beam:
                    self.facts.cut(
                        f"Variables that hang on others were predicted for the best {self.facts.beam} entities."
                    )
                best = best[: self.facts.beam]
                scores[best] = self.factors.values(factor, entities[best])
                table = table.times(scores[rows])
        return table.take(np.argsort(-table.scores, kind="stable"))


def _is_loop(pattern: Pattern) -> bool:
    return isinstance(pattern, LinkPattern) and pattern.source == pattern.target


def _relation_variables(patterns: Iterable[Pattern]) -> list[str]:
    """Return the variables for relations of some patterns."""
    links = [pattern for pattern in patterns if isinstance(pattern, LinkPattern)]
    return list(dict.fromkeys(name for pattern in links for name in path_variables(pattern.path)))
