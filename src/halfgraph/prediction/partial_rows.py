"""Partial rows: a table with a column for each variable that is bound so far."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from halfgraph.prediction.facts import Ids, Likely, Mask

UNBOUND = -1  # in a column
ANY, NO_VALUE = -2, -3  # in given rows: any value; a value that the graph does not have


@dataclass(frozen=True)
class PartialRows:
    """Values of some variables, with the probability of the facts met so far and whether all of them are known."""

    columns: Mapping[str, Ids]
    scores: Likely
    known: Mask

    @classmethod
    def of(cls, bound: Mapping[str, int]) -> "PartialRows":
        """Return one row of bound variables."""
        return cls({name: np.array([value]) for name, value in bound.items()}, np.ones(1), np.ones(1, dtype=bool))

    @classmethod
    def empty(cls, names: Iterable[str]) -> "PartialRows":
        """Return a table without rows."""
        return cls({name: np.empty(0, np.int64) for name in names}, np.empty(0), np.empty(0, dtype=bool))

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: Ids) -> "PartialRows":
        """Return some of the rows, perhaps repeated."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return PartialRows(columns, self.scores[rows], self.known[rows])

    def extend(self, rows: Ids, name: str, values: Ids, scores: Likely | None = None) -> "PartialRows":
        """Return some of the rows with one more column; its facts have these probabilities, 1 if known."""
        taken = self.take(rows)
        longer = PartialRows({**taken.columns, name: values}, taken.scores, taken.known)
        return longer if scores is None else longer.times(scores)

    def times(self, scores: Likely) -> "PartialRows":
        """Multiply by the probabilities of further facts, and leave out rows that cannot hold."""
        table = PartialRows(self.columns, self.scores * scores, self.known & (scores == 1))
        return table if table.scores.all() else table.take(np.flatnonzero(table.scores))

    def best(self, order: Likely, most: int) -> "PartialRows":
        """Return at most `most` rows by an order, the best first.

        Rows of known facts alone, from which a missing one may follow, and all others have half of the places each.
        """
        ranks = np.argsort(-order, kind="stable")
        if len(self) > most:
            known, others = ranks[self.known[ranks]], ranks[~self.known[ranks]]
            room = max(most // 2, most - len(others))
            ranks = np.concatenate([known[:room], others[: most - min(room, len(known))]])
            ranks = ranks[np.argsort(-order[ranks], kind="stable")]
        return self.take(ranks)

    def agreement(self, names: Sequence[str], given: Ids) -> Mask:
        """Return for each row and each given row whether they agree: (rows, given rows)."""
        agree = np.ones((len(self), len(given)), dtype=bool)
        for name, values in zip(names, given.T, strict=True):
            column = self.columns[name][:, None]
            agree &= (column == values) | (values == ANY)
        return agree


def distinct_keys(columns: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Return the first row of each combination of values, and for each row the number of its combination."""
    keys = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low = column.min(initial=0)
        keys = np.unique(keys, return_inverse=True)[1] if len(columns) > 2 else keys
        keys = keys * (column.max(initial=0) - low + 1) + (column - low)
    _, first, rows = np.unique(keys, return_index=True, return_inverse=True)
    return first, rows


def concatenate(tables: Sequence[PartialRows]) -> PartialRows:
    """Return the rows of all tables, which have the same columns."""
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].columns}
    scores, known = (np.concatenate(own) for own in zip(*((t.scores, t.known) for t in tables), strict=True))
    return PartialRows(columns, scores, known)
