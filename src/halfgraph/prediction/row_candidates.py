"""Candidate rows of one conjunction: what a search found, grouped by the selected variables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from halfgraph.prediction.facts import Ids, Likely
from halfgraph.prediction.lineage import Way
from halfgraph.prediction.partial_rows import UNBOUND, PartialRows, distinct_keys
from halfgraph.prediction.row_plan import RowPlan
from halfgraph.prediction.row_ways import MOST_WAYS, ConjunctionRows
from halfgraph.query.rows import RowQuery, Value, pattern_variables

UNCONNECTED = "Parts of the query share no variable: rows combine the best of each part."


@dataclass(frozen=True)
class Candidates:
    """The rows of one conjunction."""

    rows: ConjunctionRows
    selected: tuple[str, ...]
    own: tuple[str, ...]  # selected variables of this conjunction
    table: PartialRows
    complete: bool  # whether nothing was cut off

    @classmethod
    def of(cls, rows: ConjunctionRows, query: RowQuery) -> "Candidates":
        """Search for the rows of a conjunction."""
        cuts = rows.facts.cuts
        table = rows.search.rows({})
        if _parts(rows.plan) > 1:
            rows.facts.note(UNCONNECTED)
        own = tuple(name for name in query.selected if name in rows.plan.variables)
        return cls(rows, query.selected, own, table, rows.facts.cuts == cuts)

    @cached_property
    def _groups(self) -> tuple[Ids, Ids]:
        """The first row of each group, and the group of each row."""
        columns = [self.table.columns[name] for name in self.own]
        return distinct_keys(columns or [np.zeros(len(self.table), np.int64)])

    @cached_property
    def _rows_by_key(self) -> dict[tuple[int, ...], Ids]:
        """The rows of each group, the best first, by the values of the selected variables."""
        first, groups = self._groups
        order, ends = np.argsort(groups, kind="stable"), np.bincount(groups, minlength=len(first)).cumsum().tolist()
        return {key: order[start:end] for key, start, end in zip(self._keys(first), [0, *ends], ends, strict=False)}

    def _keys(self, rows: Ids) -> Iterator[tuple[int, ...]]:
        columns = [self.table.columns[name][rows].tolist() for name in self.own]
        return zip(*columns, strict=True) if columns else iter([()] * len(rows))

    def best(self, count: int) -> dict[tuple[Value, ...], float]:
        """Return the best groups that have a missing fact, with an estimate of their probability."""
        first, groups = self._groups
        scores = self._estimates(len(first), groups)
        best = np.argsort(-scores, kind="stable")[:count]
        best = best[scores[best] > 0]
        return dict(zip(map(self._decoded, self._keys(first[best])), scores[best].tolist(), strict=True))

    def _estimates(self, count: int, groups: Ids) -> Likely:
        """Sum the missing rows of each group; one with a known row is known, unless that is excluded."""
        known = self.table.known
        scores = np.bincount(groups, np.where(known, 0.0, self.table.scores), count)
        if not self.rows.plan.exclusions:
            scores[groups[known]] = 0.0
        return np.minimum(scores, 1.0)

    def _decoded(self, key: tuple[int, ...]) -> tuple[Value, ...]:
        values = {name: self._value(name, value) for name, value in zip(self.own, key, strict=True)}
        return tuple(values.get(name) for name in self.selected)

    def _value(self, name: str, value: int) -> Value:
        if value == UNBOUND:
            return None
        return self.rows.facts.classes[value] if self.rows.plan.domains[name] == "class" else value

    def ways(self, values: tuple[Value, ...]) -> list[Way]:
        """Return the ways of a row in this conjunction."""
        bound = self._encoded(values)
        if bound is None:
            return []
        rows = self._rows_by_key.get(tuple(bound.get(name, UNBOUND) for name in self.own))
        if rows is None and self.complete:
            return []
        if rows is None or (len(self.own) < len(self.rows.plan.variables) and not self.complete):
            return self.rows.all_ways(bound)
        columns = {name: column[rows[:MOST_WAYS]].tolist() for name, column in self.table.columns.items()}
        assignments = zip(*columns.values(), strict=True) if columns else [()]
        return [way for row in assignments for way in self.rows.ways(dict(zip(columns, row, strict=True)))]

    def prepare(self, candidates: Iterable[tuple[Value, ...]]) -> None:
        """Compute what the ways of some rows need together."""
        self.rows.prepare(bound for values in candidates if (bound := self._encoded(values)) is not None)

    def _encoded(self, values: tuple[Value, ...]) -> dict[str, int] | None:
        """Return the values of the variables that this conjunction has; None if it cannot have this row."""
        bound: dict[str, int] = {}
        for name, value in zip(self.selected, values, strict=True):
            if value is None and name in self.own and not self._may_be_unbound(name):
                return None
            if value is not None and (name not in self.own or value not in self._domain(name)):
                return None
            if value is not None:
                bound[name] = value if isinstance(value, int) else self.rows.facts.classes.index(value)
        return bound

    def _domain(self, name: str) -> "range | list[str]":
        facts = self.rows.facts
        if self.rows.plan.domains[name] == "class":
            return facts.classes
        return range(facts.graph.relation_count if self.rows.plan.domains[name] == "relation" else facts.count)

    def _may_be_unbound(self, name: str) -> bool:
        return bool((self.table.columns[name] == UNBOUND).any())


def _parts(plan: RowPlan) -> int:
    """Count the parts of a plan that share no variable."""
    groups: list[set[str]] = [{name} for name in plan.variables]
    for names in (set(pattern_variables(pattern)) for pattern in plan.patterns):
        joined: list[set[str]] = [group for group in groups if group & names]
        groups = [group for group in groups if not group & names] + [set().union(*joined, names)]
    return len(groups)
