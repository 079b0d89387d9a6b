"""Extension of partial rows by one variable: by joins with bound variables, by given rows, or by proposals."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from halfgraph.prediction.base import Scores
from halfgraph.prediction.facts import BEAM_NOTE, Facts, Ids, Likely
from halfgraph.prediction.partial_rows import PartialRows, concatenate, distinct_keys
from halfgraph.prediction.row_joins import RowJoin, groups, term_values
from halfgraph.query.rows import LinkPattern

TABLE = 2_048  # partial rows that are kept
TAILS = 256  # missing tails of one head
CROSSED = 1 << 18  # rows made at a time from all pairs of rows and values


def by_joins(table: PartialRows, name: str, joins: Sequence[RowJoin], base: Scores | None, facts: Facts) -> PartialRows:
    """Bind a variable by joins: by missing facts too for the best combinations of keys, else by known facts alone."""
    first, rows = distinct_keys([join.keys for join in joins])
    keys = np.stack([join.keys[first] for join in joins])
    best = np.zeros(keys.shape[1])
    np.maximum.at(best, rows, table.scores)
    chances = np.max([join.chances(own) for join, own in zip(joins, keys, strict=True)], axis=0)
    order = np.argsort(-best * chances, kind="stable")
    most = min(join.most for join in joins)
    if len(order) > most:
        facts.cut(BEAM_NOTE)
    by_key, ends = np.argsort(rows, kind="stable"), np.bincount(rows).cumsum()
    for join, own in zip(joins, keys, strict=True):
        join.fetch(own[order[:most]])
    chosen = [(key, by_key[ends[key - 1] if key else 0 : ends[key]]) for key in order[:most].tolist()]
    tables = list(_by_missing(table, name, joins, keys, base, chosen, facts))
    rest = np.isin(rows, order[most:])
    if rest.any():
        tables.append(_by_known(table.take(np.flatnonzero(rest)), name, joins, keys[:, rows[rest]], base))
    return concatenate(tables)


def _by_missing(
    table: PartialRows,
    name: str,
    joins: Sequence[RowJoin],
    keys: Ids,
    base: Scores | None,
    chosen: Sequence[tuple[int, Ids]],
    facts: Facts,
) -> Iterator[PartialRows]:
    """Yield the rows of some combinations of keys with their values, known ones and the best others."""
    least, found = 0.0, np.empty(0)  # probability of the last of the best rows so far
    for key, rows in chosen:
        scores = None if base is None else base
        for join, own in zip(joins, keys[:, key].tolist(), strict=True):
            scores = join.scores(own) if scores is None else scores * join.scores(own)
        assert scores is not None
        values = _best_values(scores, least / table.scores[rows].max(), facts)
        pairs = np.repeat(rows, len(values)), np.tile(values, len(rows))
        extended = table.extend(pairs[0], name, pairs[1], scores[pairs[1]].astype(np.float64))
        found = np.concatenate([found, extended.scores[~extended.known]])
        if len(found) > TABLE:
            found = -np.partition(-found, TABLE)[:TABLE]
            least = float(found.min())
        yield extended


def _best_values(scores: Scores, least: float, facts: Facts) -> Ids:
    """Return the known values, and the best others that are likelier than `least`."""
    likely = np.flatnonzero(scores > least)
    if len(likely) <= TAILS:
        return likely
    known = likely[scores[likely] == 1]
    others = likely[scores[likely] < 1]
    if len(others) > TAILS:
        facts.cut(BEAM_NOTE)
        others = others[np.argpartition(-scores[others], TAILS)[:TAILS]]
    return np.concatenate([known, others])


def _by_known(table: PartialRows, name: str, joins: Sequence[RowJoin], keys: Ids, base: Scores | None) -> PartialRows:
    """Bind a variable by known facts; keys: (joins, rows)."""
    rows, values = joins[0].known(keys[0])
    for join, own in zip(joins[1:], keys[1:], strict=True):
        known = join.is_known(own[rows], values)
        rows, values = rows[known], values[known]
    return table.extend(rows, name, values, None if base is None else base[values].astype(np.float64))


def by_proposal(
    table: PartialRows,
    name: str,
    relations: Sequence[str],
    base: Scores | None,
    promise: Callable[..., Likely],
    facts: Facts,
) -> PartialRows:
    """Bind a variable that no pattern joins to a bound entity by the most promising entities.

    `promise` says how likely each entity is to be in a predicted row, given values of some `relations` (variables).
    """
    values_of = (
        np.stack([table.columns[own] for own in relations]) if relations else np.zeros((1, len(table)), np.int64)
    )
    first, rows = distinct_keys(list(values_of))
    distinct = values_of[:, first]
    tables = []
    for number, values in enumerate(distinct.T.tolist()):
        own = np.flatnonzero(rows == number)
        most = max(1, min(TABLE // distinct.shape[1] + 1, CROSSED // len(own)))
        chosen = _promising(promise(dict(zip(relations, values, strict=False))), base, most, facts)
        pairs = np.repeat(own, len(chosen)), np.tile(chosen, len(own))
        tables.append(
            table.extend(pairs[0], name, pairs[1], None if base is None else base[pairs[1]].astype(np.float64))
        )
    return concatenate(tables)


def _promising(promise: Likely, base: Scores | None, most: int, facts: Facts) -> Ids:
    """Return the best entities, some of those that are known to fit and some of the others."""
    if base is None:
        return _top(np.arange(len(promise)), promise, most, facts)
    order = promise * base
    known, others = np.flatnonzero(base == 1), np.flatnonzero((base > 0) & (base < 1))
    return np.concatenate([_top(known, order, most, facts), _top(others, order, most, facts)])


def _top(entities: Ids, order: Likely, most: int, facts: Facts) -> Ids:
    if len(entities) <= most:
        return entities
    facts.cut(BEAM_NOTE)
    return entities[np.argpartition(-order[entities], most)[:most]]


def by_relations(
    table: PartialRows, name: str, ready: Sequence[LinkPattern], relations: Ids, facts: Facts
) -> PartialRows:
    """Bind a variable for relations: by all of them, or by known and promising ones if both ends are bound."""
    most = CROSSED // (4 * max(1, len(relations)))
    if len(table) > most:
        facts.cut(BEAM_NOTE)
        table = table.best(table.scores, most)
    rows, values = np.repeat(np.arange(len(table)), len(relations)), np.tile(relations, len(table))
    extended = table.extend(rows, name, values)
    if not ready:
        return extended
    promise = extended.scores.copy()
    known = np.ones(len(extended), dtype=bool)
    for pattern in ready:
        heads, tails = term_values(extended, pattern.source), term_values(extended, pattern.target)
        for relation, own in groups(values):
            is_known = facts.is_known(heads[own], relation, tails[own])
            ends = facts.missing_tails(relation)[heads[own]] * facts.missing_tails(relation ^ 1)[tails[own]]
            promise[own] *= np.where(is_known, 1.0, ends)
            known[own] &= is_known
    others = _top(np.flatnonzero(~known), promise, facts.beam, facts)
    return extended.take(np.concatenate([np.flatnonzero(known), others]))


def by_classes(table: PartialRows, name: str, count: int) -> PartialRows:
    """Bind a variable for classes by all of them."""
    rows, values = np.repeat(np.arange(len(table)), count), np.tile(np.arange(count), len(table))
    return table.extend(rows, name, values)


def by_given(table: PartialRows, name: str, variables: Sequence[str], rows: Ids) -> PartialRows:
    """Bind a variable by given rows that agree with the bound variables; rows: (rows, variables)."""
    bound = [column for column, own in enumerate(variables) if own in table.columns]
    here = variables.index(name)
    distinct = np.unique(rows[:, [*bound, here]], axis=0)
    pieces = []
    size = max(1, CROSSED // max(1, len(distinct)))
    for first in range(0, len(table), size):
        piece = table.take(np.arange(first, min(first + size, len(table))))
        own, given = np.nonzero(piece.agreement([variables[column] for column in bound], distinct[:, :-1]))
        values = distinct[given, -1]
        pieces.append(piece.extend(own, name, values))
    return concatenate(pieces)
