"""The paper's Table 2: macro AUC and APR of every row, the gain over GQE[min], and what the row costs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from halfgraph.evaluation.charts import charts, svg
from halfgraph.evaluation.comparing import Row
from halfgraph.evaluation.page import page
from halfgraph.evaluation.report import Cell, Table, markdown, markdown_table, percent, write_report

AGAINST = "GQE[min]"
MACRO = (("auc", "all"), ("auc", "hard"), ("apr", "all"), ("apr", "hard"))  # All before H-Neg, as the paper has it
SHOWN = {"auc": "AUC", "apr": "APR", "all": "All", "hard": "H-Neg"}


def table_two(rows: Sequence[Row]) -> Table:
    """Every row with its macro averages in %, their relative gain over GQE[min] in %, and its parameters."""
    heads = [f"{SHOWN[measure]} {SHOWN[which]}" for measure, which in MACRO]
    columns = [
        "",
        *heads,
        *(f"Δ {head} %" for head in heads),
        "MRR",
        "Hits@3",
        "parameters",
        "of intersection",
        "seeds",
    ]
    lines: list[list[Cell]] = []
    against = next((row for row in rows if row.name == AGAINST), None)
    for row in rows:
        gains = [gain(row, against, path) for path in MACRO]
        lines.append(
            [
                row.name,
                *(_with_spread(row, path) for path in MACRO),
                *("" if value is None else f"{value:+.2f}" for value in gains),
                *(f"{row.get(*path) or 0.0:.3f}" for path in (("macro", "mrr"), ("macro", "hits", "3"))),
                row.about.get("parameters"),
                row.about.get("intersection_parameters"),
                None if row.is_baseline else len(row.seeds),
            ]
        )
    best = []
    for place, path in enumerate(MACRO, 1):
        values = {line: value for line, row in enumerate(rows) if (value := row.get("macro", *path)) is not None}
        best += [(line, place) for line, value in values.items() if value == max(values.values())]
    return Table("Macro-averaged AUC and APR", columns, lines, best=best)


def gain(row: Row, against: Row | None, path: tuple[str, str]) -> float | None:
    """By how many % a row is above another, relative to that."""
    if against is None or row is against:
        return None
    own, other = row.get("macro", *path), against.get("macro", *path)
    return None if own is None or not other else 100.0 * (own / other - 1.0)


def _with_spread(row: Row, path: tuple[str, str]) -> str:
    """A macro average in %, with the spread of its seeds where there are several."""
    value = row.get("macro", *path)
    if value is None:
        return ""
    spread = f" ±{percent(row.margin('macro', *path) or 0.0):.2f}" if row.spread is not None else ""
    return f"{percent(value):.2f}{spread}"


def brief_table(rows: Sequence[Row]) -> Table:
    """The table as it fits on a terminal: macro averages, and the gain over GQE[min] in AUC."""
    against = next((row for row in rows if row.name == AGAINST), None)
    heads = [f"{SHOWN[measure]} {SHOWN[which]}" for measure, which in MACRO]
    lines: list[list[Cell]] = []
    for row in rows:
        values = [row.get("macro", *path) for path in MACRO]
        gains = [gain(row, against, path) for path in MACRO[:2]]
        lines.append([row.name, *(None if value is None else percent(value) for value in values), *gains])
    return Table("Macro-averaged AUC and APR, %", ["", *heads, *(f"Δ {head}" for head in heads[:2])], lines)


def write_table(folder: Path, title: str, rows: Sequence[Row], lead: Sequence[str], about: Mapping[str, Any]) -> None:
    """Nothing; the table is written with all others as Markdown and JSON, as a page, and as pictures."""
    table = table_two(rows)
    said = [*lead, "Δ: gain over GQE[min], relative. ±: standard deviation over seeds."]
    write_report(
        folder / "table.md", f"# {title}\n\n{chr(10).join(said)}\n\n{markdown_table(table)}\n\n" + _others(title, rows)
    )
    write_report(folder / "table.json", json.dumps(values(rows, about), indent=1))
    write_report(folder / "report.html", page(title, rows, said, about, tables_first=[table]))
    for chart, name in zip(charts(rows), ("auc", "apr", "mrr"), strict=False):
        write_report(folder / f"{name}.svg", svg(chart, standalone=True))


def _others(title: str, rows: Sequence[Row]) -> str:
    """All other tables, without their title."""
    return markdown(title, rows).split("\n", 2)[2]


def values(rows: Sequence[Row], about: Mapping[str, Any]) -> dict[str, Any]:
    """The table as plain values."""
    against = next((row for row in rows if row.name == AGAINST), None)
    return {
        **about,
        "rows": [
            {
                "name": row.name,
                "baseline": row.is_baseline,
                "seeds": row.seeds,
                **row.about,
                "gain": {
                    measure: {which: gain(row, against, (measure, which)) for which in ("all", "hard")}
                    for measure in ("auc", "apr")
                },
                "mean": row.figures,
                "spread": row.spread,
            }
            for row in rows
        ],
    }
