"""Tables of figures, for the terminal, Markdown and HTML."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from halfgraph.errors import FolderError
from halfgraph.evaluation.measures import HARD, TYPES
from halfgraph.evaluation.questions import ORDER
from halfgraph.evaluation.ranking import HITS
from halfgraph.evaluation.reliability import SURE
from halfgraph.evaluation.results import Row, baseline_remarks
from halfgraph.graph.files import write_atomically
from halfgraph.query.structures import structure_named

Cell = str | int | float | None
CALIBRATION_ERROR = "Expected calibration error, on queries drawn from the known triples"
GIVEN_MISSING = "Expected calibration error on these questions, given that an answer is missing"
SURE_LINKS = f"Missing links that are at least {SURE:.0%} sure, estimated for the whole graph"
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
        cell = self.rows[row][column]
        if isinstance(cell, float):
            return f"{cell:.{self.digits}f}"
        return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return all tables that compare the rows."""
    ties = _by_name(rows, "Share of hard answers that tie with a non-answer", ("ties",), ORDER, digits=3, brief=False)
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
        replace(ties, best=()),  # neither high nor low is better
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
    cells = [[_with_margin(row, path, scale, digits) for _, path, scale, digits in used] for row in rows]
    values = [[row.get(*path) for _, path, _, _ in used] for row in rows]
    names = [row.name + ("" if len(row.seeds) < 2 else f" ({len(row.seeds)} seeds)") for row in rows]
    return _compare("Means over query types and structures", names, [name for name, *_ in used], cells, values)


def _with_margin(row: Row, path: tuple[str, ...], scale: int, digits: int) -> str:
    value, margin = row.get(*path), row.margin(*path)
    if value is None:
        return ""
    return f"{scale * value:.{digits}f}" + ("" if margin is None else f" ±{scale * margin:.{digits}f}")


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
        own.append(sum(known) / len(known) if names and len(known) == len(names) else None)
    cells = [[None if value is None else scale * value for value in own] for own in values]
    heads = [*map(short_name, names), "mean"] if names else []
    return _compare(title, [row.name for row in rows], heads, cells, values, digits=digits, brief=brief)


def _compare(
    title: str,
    names: Sequence[str],
    heads: Sequence[str],
    cells: Sequence[Sequence[Cell]],
    values: Sequence[Sequence[float | None]],
    **options: Any,
) -> Table:
    """Table of cells by row and heading, the best values of each heading marked; few rows become columns."""
    best = []
    for column in range(len(heads)):
        known = {line: value for line, own in enumerate(values) if (value := own[column]) is not None}
        best += [(line, column) for line in known if len(known) > 1 and known[line] == max(known.values())]
    if len(names) > FEW and heads:
        lines = [[name, *own] for name, own in zip(names, cells, strict=True)]
        return Table(title, ["", *heads], lines, **options, best=[(line, column + 1) for line, column in best])
    across = [[head, *(own[column] for own in cells)] for column, head in enumerate(heads)]
    return Table(title, ["", *names], across, **options, best=[(column, line + 1) for line, column in best])


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


def error_tables(rows: Sequence[Row]) -> list[Table]:
    """Expected calibration errors by structure, on drawn queries and on the questions; no rows if none was measured."""
    own = [row for row in rows if "calibration" in row.figures]
    return [
        _error_table(own, CALIBRATION_ERROR, ()),
        _error_table(own, GIVEN_MISSING, ("something_missing",)),
        _sure_links(own),
    ]


def _sure_links(rows: Sequence[Row]) -> Table:
    """How many links of the whole graph are predicted with high confidence, and how many of them are held-out ones."""
    lines = []
    for row in rows:
        counts = [row.get("calibration", "sure_links", name) for name in ("links", "drawn")]  # means, of several seeds
        cells = [None if count is None else round(count) for count in counts]
        lines += [[row.name, *cells, row.get("calibration", "sure_links", "right")]] if any(cells) else []
    return Table(SURE_LINKS, ["", "links", "of these judged", "share right"], lines, digits=3)


def _error_table(rows: Sequence[Row], title: str, path: tuple[str, ...]) -> Table:
    names = [name for name in ORDER if any(row.get("calibration", *path, "ece", name) is not None for row in rows)]
    lines = [[name, *(row.get("calibration", *path, "ece", name) for row in rows)] for name in names]
    return Table(title, ["", *(row.name for row in rows)], lines, digits=3)


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
    lines = [[column.replace("|", "/") for column in table.columns]]
    for line in range(len(table.rows)):
        cells = enumerate(table.text(line, column) for column in range(len(table.columns)))
        lines.append([f"**{cell}**" if (line, column) in table.best else cell for column, cell in cells])
    head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, f"|---|{'---:|' * (len(table.columns) - 1)}", *body])


def require_writable(path: Path) -> None:
    """Create the parent folder; raise FolderError if the file cannot be written, before hours of measuring."""
    advice = "Choose another place."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(path, f"cannot be written: {error.strerror or error}", advice=advice) from error
    if path.is_dir():
        raise FolderError(path, "cannot be written: it is a folder", advice=advice)


def write_report(path: Path, text: str) -> None:
    """Write a report so that the file has the old text or the new one, never a part of it."""
    require_writable(path)
    write_atomically(path, text)
