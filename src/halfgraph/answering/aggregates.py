"""Aggregates: the expected value of COUNT and SUM when predicted rows count with their probability.

By linearity, an expected value is the exact one plus the sum of the probabilities of the rows that are not known. The
other aggregates have no such rule; their most likely missing rows are listed instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from halfgraph.answering.row_answers import Key, RowAnswers, Solutions, binding_of, key_of
from halfgraph.answering.schema import KnownAnswer, PredictedAnswer
from halfgraph.prediction.lineage import Way
from halfgraph.sparql.filters import AT_ONCE
from halfgraph.sparql.row_reading import RowReading
from halfgraph.sparql.syntax_tree import Call, Modifiers, Named, Variable


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of the projection: its column, function and the column of its argument in the rows below it."""

    column: str
    function: str
    argument: str  # empty for COUNT(*)
    is_distinct: bool

    @property
    def is_linear(self) -> bool:
        """Whether its expected value is a sum over rows."""
        is_count = self.function == "COUNT" and (self.argument != "" or not self.is_distinct)
        return is_count or (self.function == "SUM" and not self.is_distinct)


@dataclass(frozen=True)
class Grouping:
    """A query with aggregates: the columns of its groups and its aggregates."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    shows_keys: bool  # whether the projection has every key, so that groups can be told apart

    @classmethod
    def of(cls, reading: RowReading) -> "Grouping":
        """Return the groups and aggregates of a query."""
        arguments = dict(reading.measures)
        named = [part for part in reading.select.projection if isinstance(part, Named)]
        aggregates = [
            Aggregate(
                part.variable.name, str(part.expression.function), arguments[part.expression], part.expression.distinct
            )
            for part in named
            if isinstance(part.expression, Call) and part.expression in arguments
        ]
        keys, shown = (set(map(_name, parts)) for parts in (reading.keys, reading.select.projection))
        return cls(tuple(map(_name, reading.keys)), tuple(aggregates), keys <= shown)

    @property
    def columns(self) -> list[str]:
        """The columns of the rows below the aggregates."""
        return list(dict.fromkeys([*self.keys, *(one.argument for one in self.aggregates if one.argument)]))


def _name(column: Variable | Named) -> str:
    return column.name if isinstance(column, Variable) else column.variable.name


@dataclass(frozen=True)
class AggregateAnswers:
    """Known groups with expected values, groups that only predictions make, and likely rows behind the others."""

    known: list[KnownAnswer]
    predicted: list[PredictedAnswer]
    missing_rows: list[PredictedAnswer] | None
    notes: list[str]


def aggregate(
    rows: RowAnswers, reading: RowReading, columns: Sequence[str], known: Sequence[KnownAnswer], top: int
) -> AggregateAnswers:
    """Return what predictions add to the groups of a query."""
    grouping = Grouping.of(reading)
    solutions = rows.solutions(reading, AT_ONCE)
    groups: dict[Key, Solutions] = {}
    for row in solutions.rows:
        group = groups.setdefault(key_of(row.binding, grouping.keys), Solutions([], solutions.lineage, []))
        group.rows.append(row)
    linear = [one for one in grouping.aggregates if one.is_linear] if grouping.shows_keys else []
    linear = [one for one in linear if one.is_distinct or reading.is_countable]
    more: dict[Key, dict[str, float]] = {key: {} for key in groups}
    for one in linear:
        sums = _distinct(rows, reading, one, solutions) if one.is_distinct else _sums(one, groups)
        for key, value in sums.items():
            more[key][one.column] = value
    answers = [_with_expected(answer, more.get(_known_key(answer, grouping)), linear) for answer in known]
    modifiers = reading.select.modifiers
    is_cut = modifiers.having or modifiers.offset or len(known) == modifiers.limit  # then other groups may be known
    predicted = [] if is_cut else _new_groups(rows, grouping, columns, known, groups, more)
    missing = _likely_rows(rows, grouping, solutions)[:top] if len(linear) < len(grouping.aggregates) else None
    return AggregateAnswers(answers, predicted[:top], missing, solutions.notes)


def _distinct(rows: RowAnswers, reading: RowReading, one: Aggregate, solutions: Solutions) -> dict[Key, float]:
    """Return for each group the expected number of values of an argument that are not known in it."""
    calls = {name: call.arguments[0] for call, name in reading.measures if name}
    columns, column, argument = [*map(_name, reading.keys), one.argument], Variable(one.argument), calls[one.argument]
    part = column if argument == column else Named(argument, column)
    modifiers = Modifiers(values=reading.select.modifiers.values)
    below = replace(reading.select, projection=(*reading.keys, part), modifiers=modifiers)
    merged = solutions.merged(columns)
    found = rows.known_among(replace(reading, select=below), columns, merged)
    known = {key_of(binding, columns) for binding in found}
    sums: dict[Key, float] = {}
    for key, (_, probability) in merged.items():
        group = key[: len(reading.keys)]
        is_new = key not in known and key[-1:] != (None,)
        sums[group] = sums.get(group, 0.0) + probability * is_new
    return sums


def _sums(one: Aggregate, groups: Mapping[Key, Solutions]) -> dict[Key, float]:
    """Return for each group the sum of its rows' probabilities, times the value of the argument for SUM."""
    return {key: _sum(one, group) for key, group in groups.items()}


def _likely_rows(rows: RowAnswers, grouping: Grouping, solutions: Solutions) -> list[PredictedAnswer]:
    """Return the rows below the aggregates, the most probable first."""
    merged = solutions.merged(grouping.columns).values()
    return [rows.answer(grouping.columns, binding, probability) for binding, probability in merged]


def _sum(one: Aggregate, group: Solutions) -> float:
    total = 0.0
    for row in group.rows:
        if not one.argument or one.argument in row.binding:
            value = _number(row.binding[one.argument]["value"]) if one.function == "SUM" else 1.0
            total += value * row.probability
    return total


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _known_key(answer: KnownAnswer, grouping: Grouping) -> Key:
    return key_of(binding_of(answer.row), grouping.keys)


def _with_expected(answer: KnownAnswer, more: Mapping[str, float] | None, linear: Sequence[Aggregate]) -> KnownAnswer:
    """Add expected values to a known group: the exact ones and what predictions add."""
    columns = [one.column for one in linear if one.column in answer.row]
    values = {name: _number(answer.row[name].value) for name in columns}
    expected = {name: round(value + (more or {}).get(name, 0.0), 4) for name, value in values.items()}
    return replace(answer, expected=expected) if expected else answer


def _new_groups(
    rows: RowAnswers,
    grouping: Grouping,
    columns: Sequence[str],
    known: Sequence[KnownAnswer],
    groups: Mapping[Key, Solutions],
    more: Mapping[Key, Mapping[str, float]],
) -> list[PredictedAnswer]:
    """Return the groups that no known row makes, the most probable first."""
    if not grouping.keys or not grouping.shows_keys:
        return []
    before = {_known_key(answer, grouping) for answer in known}
    answers = []
    for key in groups.keys() - before:
        ways: list[Way] = [way for row in groups[key].rows for way in row.ways]
        probability = groups[key].lineage.probability(ways)
        shown = [name for name in columns if name in grouping.keys]
        answer = rows.answer(shown, groups[key].rows[0].binding, probability)
        answers.append(replace(answer, expected={name: round(value, 4) for name, value in more[key].items()}))
    return sorted(answers, key=lambda answer: (-answer.score, answer.entity))
