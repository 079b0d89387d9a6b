"""The paper's Table 2: macro AUC and APR of every row, the relative gain over GQE[min], and the parameters."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from halfgraph.evaluation.charts import charts, svg
from halfgraph.evaluation.page import page
from halfgraph.evaluation.report import Cell, Table, markdown, markdown_table, write_report
from halfgraph.evaluation.results import Row

REFERENCE = "GQE[min]"
MACRO = (("auc", "all"), ("auc", "hard"), ("apr", "all"), ("apr", "hard"))  # All before H-Neg, as in the paper
WORDS = {"auc": "AUC", "apr": "APR", "all": "All", "hard": "H-Neg"}
HEADS = [f"{WORDS[measure]} {WORDS[which]}" for measure, which in MACRO]


def table_two(rows: Sequence[Row]) -> Table:
    """Build the table: macro averages in %, relative gains over GQE[min] in %, MRR, Hits@3 and parameters."""
    gains = [f"Δ {head} %" for head in HEADS]
    columns = ["", *HEADS, *gains, "MRR", "Hits@3", "parameters", "of intersection", "seeds"]
    best = []
    for column, path in enumerate(MACRO, 1):
        values = {line: value for line, row in enumerate(rows) if (value := row.get("macro", *path)) is not None}
        best += [(line, column) for line, value in values.items() if value == max(values.values())]
    return Table("Macro-averaged AUC and APR", columns, [_line(row, rows) for row in rows], best=best)


def _line(row: Row, rows: Sequence[Row]) -> list[Cell]:
    gains = [gain(row, rows, path) for path in MACRO]
    return [
        row.name,
        *(_with_deviation(row, path) for path in MACRO),
        *("" if value is None else f"{value:+.2f}" for value in gains),
        *(f"{row.get(*path) or 0.0:.3f}" for path in (("macro", "mrr"), ("macro", "hits", "3"))),
        row.about.get("parameters"),
        row.about.get("intersection_parameters"),
        None if row.is_baseline else len(row.seeds),
    ]


def gain(row: Row, rows: Sequence[Row], path: tuple[str, str]) -> float | None:
    """Relative gain of a row over GQE[min] in %; None for GQE[min] itself or without it."""
    reference = next((other for other in rows if other.name == REFERENCE), None)
    if reference is None or row is reference:
        return None
    own, other = row.get("macro", *path), reference.get("macro", *path)
    return None if own is None or not other else 100.0 * (own / other - 1.0)


def _with_deviation(row: Row, path: tuple[str, str]) -> str:
    """Format a macro average in %, with the standard deviation over seeds if there are several."""
    value = row.get("macro", *path)
    if value is None:
        return ""
    deviation = f" ±{100 * (row.margin('macro', *path) or 0.0):.2f}" if row.spread is not None else ""
    return f"{100 * value:.2f}{deviation}"


def brief_table(rows: Sequence[Row]) -> Table:
    """Build the table for a terminal: macro averages, and the gain over GQE[min] in AUC."""
    lines: list[list[Cell]] = []
    for row in rows:
        values = [row.get("macro", *path) for path in MACRO]
        gains = [gain(row, rows, path) for path in MACRO[:2]]
        lines.append([row.name, *(None if value is None else 100 * value for value in values), *gains])
    return Table("Macro-averaged AUC and APR, %", ["", *HEADS, *(f"Δ {head}" for head in HEADS[:2])], lines)


def write_table(folder: Path, title: str, rows: Sequence[Row], lead: Sequence[str], about: Mapping[str, Any]) -> None:
    """Write the table with all others as Markdown, JSON and HTML, and the charts as SVG."""
    table = table_two(rows)
    lines = [*lead, "Δ: gain over GQE[min], relative. ±: standard deviation over seeds."]
    others = markdown(title, rows).split("\n", 2)[2]  # without the title
    text = f"# {title}\n\n{chr(10).join(lines)}\n\n{markdown_table(table)}\n\n{others}"
    write_report(folder / "table.md", text)
    write_report(folder / "table.json", json.dumps(table_values(rows, about), indent=1))
    write_report(folder / "report.html", page(title, rows, lines, about, tables_first=[table]))
    for chart, name in zip(charts(rows), ("auc", "apr", "mrr"), strict=False):
        write_report(folder / f"{name}.svg", svg(chart, standalone=True))


def table_values(rows: Sequence[Row], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table as JSON-serialisable values."""
    return {**about, "rows": [_values(row, rows) for row in rows]}


def _values(row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    gains = {
        measure: {which: gain(row, rows, (measure, which)) for which in ("all", "hard")} for measure in ("auc", "apr")
    }
    return {
        "name": row.name,
        "baseline": row.is_baseline,
        "seeds": row.seeds,
        **row.about,
        "gain": gains,
        "mean": row.figures,
        "spread": row.spread,
    }
