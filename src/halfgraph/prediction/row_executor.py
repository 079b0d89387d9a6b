"""Predicted rows: the most probable rows of a query that are not known.

The graph is a tuple-independent probabilistic database: known facts are certain, every other link or class membership
has its own probability. The probability of a row is the probability that it is in the query's exact result. Each
conjunction is searched by itself; rows of different conjunctions with the same values have the ways of all of them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halfgraph.prediction.base import Scores
from halfgraph.prediction.facts import Facts
from halfgraph.prediction.lineage import Lineage, Way
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.row_candidates import Candidates
from halfgraph.prediction.row_ways import ConjunctionRows, RowContext
from halfgraph.prediction.row_witness import RowWitness, best_witness
from halfgraph.query.rows import RowQuery, Value

FURTHER = 12  # rows that are compared exactly beyond those asked for, and half of their number, up to MOST_FURTHER
MOST_FURTHER = 128
PREPARED = 32  # candidates whose missing links are computed together
MOST_CANDIDATES = 256  # that are looked at, beyond four times this number: some are known or excluded


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
        parts = [Candidates.of(ConjunctionRows.of(context, own, query.selected), query) for own in query.conjunctions]
        rows: list[CandidateRow] = []
        candidates = _by_score(parts, MOST_CANDIDATES + 4 * count)
        for number, values in enumerate(candidates):
            if number % PREPARED == 0:
                for part in parts:
                    part.prepare(candidates[number : number + PREPARED])
            row = _row(values, [way for part in parts for way in part.ways(values)], context.lineage)
            rows += [row] if row else []
            if len(rows) >= count + min(count // 2, MOST_FURTHER) + FURTHER:
                break
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


def _by_score(parts: Sequence[Candidates], count: int) -> list[tuple[Value, ...]]:
    """Return the values of the best candidates of each conjunction, by what the searches estimate for them."""
    scores: Counter[tuple[Value, ...]] = Counter()
    for part in parts:
        scores.update(part.best(count))
    return [values for values, _ in scores.most_common()]
