"""Fill the empty cells of OPTIONAL parts with their most likely values, each marked with its confidence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from halfgraph.answering.cells import Cell
from halfgraph.answering.predicted_rows import rounded
from halfgraph.answering.row_answers import RowAnswers, is_free
from halfgraph.answering.schema import KnownAnswer, PredictedAnswer
from halfgraph.errors import SparqlError, UnknownName
from halfgraph.query.rows import Given
from halfgraph.sparql.parse import Request
from halfgraph.sparql.results import entity_term
from halfgraph.sparql.row_reading import Branch, RowReading, read_rows
from halfgraph.sparql.syntax_tree import Clause, Select

MOST_FILLED = 100  # rows
LEFT_OPEN = f"Only the first {MOST_FILLED} rows of each sort have their empty cells filled."
Answer = TypeVar("Answer", KnownAnswer, PredictedAnswer)


@dataclass(frozen=True)
class Filling:
    """The OPTIONAL parts of a query that links alone can fill."""

    rows: RowAnswers
    parts: Sequence[tuple[RowReading, Branch]]

    @classmethod
    def of(cls, rows: RowAnswers, request: Request, select: Select) -> "Filling":
        """Find the OPTIONAL parts of a query."""
        groups = (one.group for one in select.where.elements if isinstance(one, Clause) and one.keyword == "OPTIONAL")
        parts: list[tuple[RowReading, Branch]] = []
        for group in groups:
            try:
                reading = read_rows(replace(request, tree=Select((), group)), rows.names.graph)
            except (SparqlError, UnknownName):  # a part of literals: there is no link to predict
                continue
            parts += [(reading, branch) for branch in reading.branches if is_free(reading, branch)]
        return cls(rows, parts)

    def fill(self, answers: Sequence[Answer], columns: Sequence[str]) -> list[Answer]:
        """Return the answers with empty cells filled, as far as they are among the first."""
        filled = list(answers)
        for number, answer in enumerate(answers[:MOST_FILLED]):
            filled[number] = replace(answer, row=self._filled(answer.row, columns))
        return filled

    def _filled(self, row: Mapping[str, Cell], columns: Sequence[str]) -> dict[str, Cell]:
        cells = dict(row)
        for reading, branch in self.parts:
            if any(name in columns and name not in row for name in branch.variables):
                cells |= self._best(reading, branch, row, columns)
        return {name: cells[name] for name in columns if name in cells}

    def _best(
        self, reading: RowReading, branch: Branch, row: Mapping[str, Cell], columns: Sequence[str]
    ) -> dict[str, Cell]:
        """Return the most likely values of the empty cells of a part, given the other cells of the row."""
        bound = dict(self._bound(reading, branch, row))
        if not bound:
            return {}
        given = Given(tuple(bound), (tuple(bound.values()),))
        found = self.rows.executor.rows(
            reading.query(replace(branch, conjunction=(*branch.conjunction, given))), 1
        ).rows
        if not found:
            return {}
        values = dict(zip(branch.variables, found[0].values, strict=True))
        empty = {name: value for name, value in values.items() if name in columns and name not in row}
        confidence, cells = rounded(found[0].probability), {}
        for name, value in empty.items():
            iri = self.rows.names.iri(value, reading.domains.get(name, "entity"))
            if iri is not None:
                cells[name] = replace(self.rows.names.cell(entity_term(iri)), confidence=confidence)
        return cells

    def _bound(self, reading: RowReading, branch: Branch, row: Mapping[str, Cell]) -> Iterator[tuple[str, int]]:
        """Yield the entities of a row that the part has too."""
        for name in branch.variables:
            if name in row and row[name].type != "literal" and reading.domains.get(name, "entity") == "entity":
                number = self.rows.names.find(row[name].value)
                if number is not None:
                    yield name, number
