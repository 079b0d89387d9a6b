"""Predicted rows: the most probable rows of a query that are not known.

The graph is a tuple-independent probabilistic database: known facts are certain, every other link or class membership
has its own probability. The probability of a row is the probability that it is in the query's exact result. Each
conjunction is searched by itself; rows of different conjunctions with the same values have the ways of all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from halfgraph.prediction.base import Scores
from halfgraph.prediction.facts import Facts, Ids
from halfgraph.prediction.lineage import Lineage, Way
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.partial_rows import UNBOUND, PartialRows
from halfgraph.prediction.row_plan import RowPlan
from halfgraph.prediction.row_ways import MOST_WAYS, ConjunctionRows, RowContext
from halfgraph.prediction.row_witness import RowWitness, best_witness
from halfgraph.query.rows import RowQuery, Value, pattern_variables

FURTHER = 32  # candidates that are looked at beyond twice the number that is asked for
UNCONNECTED = "Parts of the query share no variable: rows combine the best of each part."


@dataclass(frozen=True)
class CandidateRow:
    """A predicted row: the values of the selected variables, its probability, and the ways in which it can hold."""

    values: tuple[Value, ...]
    probability: float
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class RowResult:
    """Predicted rows, best first, the probabilities of their facts, and sentences on what was cut off."""

    rows: list[CandidateRow]
    lineage: Lineage
    notes: list[str]


@dataclass(frozen=True)
class RowExecutor:
    """Predicts the rows of queries; as thread-safe as the executor is."""

    executor: LinkExecutor
    class_scores: Callable[[str, bool], Scores]  # by IRI, and whether subclasses count
    classes: Callable[[], Sequence[str]]  # IRIs of all classes

    def rows(self, query: RowQuery, count: int) -> RowResult:
        """Return the most probable rows that are not known, at most `count`."""
        context = self._context(query)
        searches = [
            _Candidates.of(ConjunctionRows.of(context, own, query.selected), query) for own in query.conjunctions
        ]
        found: dict[tuple[Value, ...], None] = {}
        for own in searches:
            found |= dict.fromkeys(own.best(2 * count + FURTHER))
        ways = {values: [way for own in searches for way in own.ways(values)] for values in found}
        rows = [row for values in found if (row := _row(values, ways[values], context.lineage))]
        rows.sort(key=lambda row: (-row.probability, tuple(map(str, row.values))))
        return RowResult(rows[:count], context.lineage, context.facts.notes)

    def any_probability(self, query: RowQuery) -> float:
        """Probability that there is any row; 1 if a known one was found."""
        context = self._context(query)
        ways = [way for own in query.conjunctions for way in ConjunctionRows.of(context, own, ()).all_ways({})]
        return context.lineage.probability(ways) if all(way.needs for way in ways) else 1.0

    def witness(self, query: RowQuery, values: tuple[Value, ...]) -> RowWitness | None:
        """Return the most probable values of all variables for a row, with their facts; None if it cannot hold."""
        return best_witness(self._context(query), query, values)

    def _context(self, query: RowQuery) -> RowContext:
        return RowContext.of(Facts(self.executor, self.class_scores, self.classes), query.domains)


def _row(values: tuple[Value, ...], ways: Sequence[Way], lineage: Lineage) -> CandidateRow | None:
    """Return a candidate row; None if it is known or impossible."""
    distinct = tuple(dict.fromkeys(ways))
    if not distinct or not all(way.needs for way in distinct):
        return None
    probability = lineage.probability(distinct)
    return CandidateRow(values, probability, distinct) if probability > 0 else None


@dataclass(frozen=True)
class _Candidates:
    """The rows of one conjunction, grouped by the selected variables."""

    rows: ConjunctionRows
    selected: tuple[str, ...]
    own: tuple[str, ...]  # selected variables of this conjunction
    table: PartialRows
    groups: dict[tuple[int, ...], Ids]  # rows of the table by the values of the selected variables, the best first
    complete: bool  # whether nothing was cut off

    @classmethod
    def of(cls, rows: ConjunctionRows, query: RowQuery) -> "_Candidates":
        cuts = rows.facts.cuts
        table = rows.search.rows({})
        if _parts(rows.plan) > 1:
            rows.facts.note(UNCONNECTED)
        own = tuple(name for name in query.selected if name in rows.plan.variables)
        return cls(rows, query.selected, own, table, dict(_groups(table, own)), rows.facts.cuts == cuts)

    def best(self, count: int) -> list[tuple[Value, ...]]:
        """Return the best groups that have a missing fact."""
        scores = {}
        for key, rows in self.groups.items():
            missing = rows[~self.table.known[rows]]
            if len(missing):
                scores[key] = -min(1.0, float(self.table.scores[missing].sum()))
        return [self._decoded(key) for key in sorted(scores, key=scores.__getitem__)[:count]]

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
        rows = self.groups.get(tuple(bound.get(name, UNBOUND) for name in self.own))
        if rows is None and self.complete:
            return []
        if rows is None or (len(self.own) < len(self.rows.plan.variables) and not self.complete):
            return self.rows.all_ways({name: value for name, value in bound.items() if value != UNBOUND})
        columns = {name: column[rows[:MOST_WAYS]].tolist() for name, column in self.table.columns.items()}
        assignments = zip(*columns.values(), strict=True) if columns else [()]
        return [way for row in assignments for way in self.rows.ways(dict(zip(columns, row, strict=True)))]

    def _encoded(self, values: tuple[Value, ...]) -> dict[str, int] | None:
        """Return the values of the variables that this conjunction has; None if it has others than are bound."""
        bound: dict[str, int] = {}
        for name, value in zip(self.selected, values, strict=True):
            if (name in self.own) == (value is None) and not (value is None and self._may_be_unbound(name)):
                return None
            if isinstance(value, str):
                if value not in self.rows.facts.classes:
                    return None
                bound[name] = self.rows.facts.classes.index(value)
            elif value is not None:
                bound[name] = value
        return bound

    def _may_be_unbound(self, name: str) -> bool:
        return name in self.own and bool((self.table.columns[name] == UNBOUND).any())


def _groups(table: PartialRows, names: Sequence[str]) -> Iterator[tuple[tuple[int, ...], Ids]]:
    """Yield the rows with the same values of some variables."""
    if not len(table):
        return
    if not names:
        yield (), np.arange(len(table))
        return
    columns = np.stack([table.columns[name] for name in names])
    distinct, rows = np.unique(columns, axis=1, return_inverse=True)
    by_group = np.split(np.argsort(rows, kind="stable"), np.bincount(rows).cumsum()[:-1])
    yield from zip(map(tuple, distinct.T.tolist()), by_group, strict=True)


def _parts(plan: RowPlan) -> int:
    """Count the parts of a plan that share no variable."""
    groups: list[set[str]] = [{name} for name in plan.variables]
    for names in (set(pattern_variables(pattern)) for pattern in plan.patterns):
        joined: list[set[str]] = [group for group in groups if group & names]
        groups = [group for group in groups if not group & names] + [set().union(*joined, names)]
    return len(groups)
