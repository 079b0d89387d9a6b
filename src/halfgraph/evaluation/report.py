"""Tables of figures, for the terminal, Markdown and HTML."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from halfgraph.errors import FolderError
from halfgraph.evaluation.measures import HARD, TYPES
from halfgraph.evaluation.questions import ORDER
from halfgraph.evaluation.ranking import HITS
from halfgraph.evaluation.results import Row, baseline_remarks
from halfgraph.graph.files import write_atomically
from halfgraph.query.structures import structure_named

Cell = str | int | float | None
CALIBRATION_ERROR = "Expected calibration error: mean gap between confidence and share of right answers"
FEW = 4  # at most this many rows are shown as columns


@dataclass(frozen=True)
class Table:
    """A table with a title; `digits` is the number of decimals."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    digits: int = 2
    brief: bool = True  # also shown on the terminal
    best: Sequence[tuple[int, int]] = ()  # row and column of each best figure

    def text(self, row: int, column: int) -> str:
        """Format a cell."""
        cell = self.rows[row][column]
        if isinstance(cell, float):
            return f"{cell:.{self.digits}f}"
        return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return all tables that compare the rows."""
    every = [
        summary(rows),
        _by_name(rows, "ROC AUC by query type, %", ("auc",), TYPES, 100),
        _by_name(rows, "Average percentile rank by query type, %", ("apr",), TYPES, 100),
        _by_name(rows, "Filtered MRR of hard answers by structure", ("mrr",), ORDER, digits=3),
        *(
            _by_name(rows, f"Hits@{most} of hard answers", ("hits", str(most)), ORDER, digits=3, brief=most == 3)
            for most in HITS
        ),
        by_missing(rows),
        _by_name(rows, "Filtered MRR of easy answers (known ones)", ("easy",), ORDER, digits=3),
        replace(  # neither high nor low is better
            _by_name(rows, "Share of hard answers that tie with a non-answer", ("ties",), ORDER, digits=3, brief=False),
            best=(),
        ),
    ]
    return [table for table in every if table.rows]


def summary(rows: Sequence[Row]) -> Table:
    """Table of the means over query types and structures, with margins."""
    figures: list[tuple[str, tuple[str, ...], int, int]] = [
        ("AUC all %", ("macro", "auc", "all"), 100, 2),
        ("AUC H-Neg %", ("macro", "auc", "hard"), 100, 2),
        ("APR all %", ("macro", "apr", "all"), 100, 2),
        ("APR H-Neg %", ("macro", "apr", "hard"), 100, 2),
        ("MRR", ("macro", "mrr"), 1, 3),
        *((f"Hits@{most}", ("macro", "hits", str(most)), 1, 3) for most in HITS),
    ]
    used = [figure for figure in figures if any(row.get(*figure[1]) is not None for row in rows)]
    cells: list[list[Cell]] = [
        [_with_margin(row, path, scale, digits) for _, path, scale, digits in used] for row in rows
    ]
    values = [[row.get(*path) for _, path, _, _ in used] for row in rows]
    names = [row.name + ("" if len(row.seeds) < 2 else f" ({len(row.seeds)} seeds)") for row in rows]
    table = Table("Means over query types and structures", [], [])
    return _arranged(table, names, [name for name, *_ in used], cells, values)


def _with_margin(row: Row, path: tuple[str, ...], scale: int, digits: int) -> str:
    value, margin = row.get(*path), row.margin(*path)
    if value is None:
        return ""
    return f"{scale * value:.{digits}f}" + ("" if margin is None else f" ±{scale * margin:.{digits}f}")


def _best(values: Sequence[float | None]) -> list[int]:
    """Return the positions of the highest value; none if there is nothing to compare with."""
    known = [value for value in values if value is not None]
    return [position for position, value in enumerate(values) if value == max(known)] if len(known) > 1 else []


def _by_name(
    rows: Sequence[Row],
    title: str,
    path: tuple[str, ...],
    order: Sequence[str],
    scale: int = 1,
    *,
    digits: int = 2,
    brief: bool = True,
) -> Table:
    """Table of a figure by query type or structure, with its mean."""
    names = [name for name in order if any(row.get(*path, name) is not None for row in rows)]
    values = [[row.get(*path, name) for name in names] for row in rows]
    for own in values:
        known = [value for value in own if value is not None]
        own.append(sum(known) / len(known) if len(known) == len(names) and names else None)
    cells: list[list[Cell]] = [[None if value is None else scale * value for value in own] for own in values]
    table = Table(title, [], [], digits, brief)
    heads = [*map(short_name, names), "mean"]
    return _arranged(table, [row.name for row in rows], heads, cells, values) if names else table


def _arranged(
    table: Table,
    names: Sequence[str],
    heads: Sequence[str],
    cells: Sequence[Sequence[Cell]],
    values: Sequence[Sequence[float | None]],
) -> Table:
    """Fill a table with cells by row and heading and mark the best of each heading; few rows become columns."""
    best = [(line, column) for column in range(len(heads)) for line in _best([own[column] for own in values])]
    if len(names) > FEW:
        lines: list[list[Cell]] = [[name, *own] for name, own in zip(names, cells, strict=True)]
        shifted = [(line, column + 1) for line, column in best]
        return replace(table, columns=["", *heads], rows=lines, best=shifted)
    across: list[list[Cell]] = [[head, *(own[column] for own in cells)] for column, head in enumerate(heads)]
    return replace(table, columns=["", *names], rows=across, best=[(column, line + 1) for line, column in best])


def short_name(name: str) -> str:
    """Return the short name of a query type: pi-hard for 3-inter_chain-hard."""
    base = name.removesuffix(HARD)
    return structure_named(base).short + name[len(base) :]


def by_missing(rows: Sequence[Row]) -> Table:
    """Table of the MRR by structure and number of missing triples, with the number of answers."""
    numbers = sorted({number for row in rows for number in row.figures.get("by_missing", {})})
    names = [name for name in ORDER if any(row.get("mrr", name) is not None for row in rows)]
    lines: list[list[Cell]] = []
    for number in numbers:
        for row in (row for row in rows if number in row.figures.get("by_missing", {})):
            own = [row.get("by_missing", number, "mrr", name) for name in names]
            answers = sum(row.figures["by_missing"][number]["answers"].values())
            lines.append([row.name, int(number), answers, *own])
    columns = ["", "missing", "answers", *names]
    return Table("Filtered MRR of hard answers by the number of missing triples they need", columns, lines, 3)


def error_table(rows: Sequence[Row]) -> Table:
    """Expected calibration error by structure; no rows if none was measured."""
    own = [row for row in rows if "calibration" in row.figures]
    names = [name for name in ORDER if any(row.get("calibration", "ece", name) is not None for row in own)]
    lines = [[name, *(row.get("calibration", "ece", name) for row in own)] for name in names]
    return Table(CALIBRATION_ERROR, ["", *(row.name for row in own)], lines, digits=3)


def explain_margins(rows: Sequence[Row]) -> str:
    """Say what ± means in these rows."""
    parts = []
    if any(row.spread is None and row.figures.get("intervals") for row in rows):
        parts.append("half of the 95 % confidence interval (bootstrap over questions)")
    if any(row.spread is not None for row in rows):
        parts.append("the standard deviation over seeds, if there are several")
    return f"± is {', '.join(parts)}." if parts else ""


def notes(rows: Sequence[Row]) -> list[str]:
    """Return remarks on the tables."""
    sizes = {row.name: max(row.figures["questions"].values(), default=0) for row in rows}
    most = max(sizes.values(), default=0)
    fewer = [f"{name} on {size:,}" for name, size in sizes.items() if size < most]
    texts = [explain_margins(rows), *baseline_remarks(rows)]
    if fewer:
        texts.insert(0, f"At most {most:,} questions of each structure; {', '.join(fewer)} of each at random.")
    return [text for text in texts if text]


def markdown(title: str, rows: Sequence[Row], lead: Iterable[str] = ()) -> str:
    """Return all tables as Markdown."""
    parts = [f"# {title}", *lead, *notes(rows)]
    parts += [f"## {table.title}\n\n{markdown_table(table)}" for table in tables(rows)]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """Return a table as Markdown, the best figures in bold."""
    best = set(table.best)
    head = [f"| {' | '.join(column.replace('|', '/') for column in table.columns)} |"]
    head.append("|" + "|".join("---" if column == 0 else "---:" for column in range(len(table.columns))) + "|")
    for line in range(len(table.rows)):
        cells = [table.text(line, column) for column in range(len(table.columns))]
        marked = [f"**{cell}**" if (line, column) in best else cell for column, cell in enumerate(cells)]
        head.append(f"| {' | '.join(marked)} |")
    return "\n".join(head)


def require_writable(path: Path) -> None:
    """Create the parent folder; raise FolderError if the file cannot be written, before hours of measuring."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error
    if path.is_dir():
        raise _unwritable(path, "it is a folder")


def write_report(path: Path, text: str) -> None:
    """Write a report so that the file has the old text or the new one, never a part of it."""
    require_writable(path)
    write_atomically(path, text)


def _unwritable(path: Path, why: str) -> FolderError:
    return FolderError(path, f"cannot be written: {why}", advice="Choose another place.")
