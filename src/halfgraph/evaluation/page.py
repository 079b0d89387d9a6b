"""The report as one self-contained HTML page with tables and charts."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from halfgraph import __version__
from halfgraph.evaluation.charts import charts, reliability_charts, svg
from halfgraph.evaluation.report import Table, error_tables, notes, tables
from halfgraph.evaluation.results import Row

BOXES = '<p class="faint">Boxed: query types with hard negatives.</p>'
STYLE = """
:root { color-scheme: light dark; --ink: #1d2126; --paper: #fff; --faint: #5d6670; --line: #d9dee3; --strip: #f5f7f9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e6ea; --paper: #16181c; --faint: #9aa4ae; --line: #343a41; --strip: #1e2126; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 1.6em; margin: 0 0 .2em; } h2 { font-size: 1.1em; margin: 2em 0 .5em; }
p { max-width: 46em; } .faint, footer { color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; }
tbody tr:nth-child(even) { background: var(--strip); }
.best { font-weight: 700; } svg { width: 100%; height: auto; display: block; }
figure { margin: 0; } details { margin-top: 2em; } summary { cursor: pointer; }
@media print { details { display: none; } }
"""
READING = """
<p><b>AUC and APR, as in the paper.</b> AUC: area under the ROC curve over each question's answer and one negative (an
entity of the answer's type that is no answer), all questions pooled. APR: the share of up to 1,000 negatives that the
answer scores above, averaged over the questions that have them. Query types marked <i>hard</i> have hard negatives,
which match a part of the query but not all of it (H-Neg).</p>
<p><b>MRR and Hits@k.</b> Filtered ranks among all entities: the rank of a hard answer, one that needs a missing triple,
is counted among non-answers only; a tie counts half. Both are means over the hard answers of a question, then over
questions. In embedding mode, a union scores as its best part. Missing triples: the fewest on a path to the answer.</p>
<p><b>Baselines, without training.</b> Popularity: the number of triples of the last relation with this tail. Neighbour
vote: a triple counts 1 if the training graph has it, else the share of votes of entities similar to its head.</p>
<p><b>Confidence.</b> The first ten predicted answers to queries drawn from the known triples, whether or not an answer
is missing; an answer is right if the graph with the held-out triples has it. The expected calibration error is
the mean gap between confidence and share of right answers, over 15 bins, weighted by the number of answers. The
questions of this report all lack an answer; for them it is the confidence given that.</p>
"""


def page(
    title: str,
    rows: Sequence[Row],
    lead: Iterable[str] = (),
    about: Mapping[str, Any] | None = None,
    tables_first: Sequence[Table] = (),
) -> str:
    """Return the page: summary, charts, tables, how to read them, and provenance."""
    first, *others = tables(rows)
    pictures = [
        f"<h2>{escape(bars.title)}</h2>\n<figure>{svg(bars)}</figure>{BOXES if bars.boxed else ''}"
        for bars in charts(rows)
    ]
    body = [
        f"<h1>{escape(title)}</h1>",
        *(f'<p class="faint">{escape(text)}</p>' for text in lead),
        *map(html_table, (*tables_first, first)),
        *(f"<p>{escape(text)}</p>" for text in notes(rows)),
        *pictures,
        *map(html_table, others),
        *(html_table(table) for table in error_tables(rows) if table.rows),
        *(f"<h2>{escape(name)}</h2>\n<figure>{drawn}</figure>" for name, drawn in reliability_charts(rows)),
        f"<details open><summary>How to read this</summary>{READING}</details>",
        _about(about or {}),
        f"<footer><p>halfgraph {escape(__version__)}</p></footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def html_table(table: Table) -> str:
    """Return a table as HTML, the best figures in bold."""
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    lines = []
    for line in range(len(table.rows)):
        marks = [" class=best" if (line, column) in table.best else "" for column in range(len(table.columns))]
        cells = [f"<td{mark}>{escape(table.text(line, column))}</td>" for column, mark in enumerate(marks)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    inner = f"<table><thead><tr>{head}</tr></thead><tbody>\n{chr(10).join(lines)}\n</tbody></table>"
    return f'<h2>{escape(table.title)}</h2>\n<div class="wide">{inner}</div>'


def _about(about: Mapping[str, Any]) -> str:
    if not about:
        return ""
    lines = "".join(
        f"<tr><td>{escape(str(name))}</td><td>{escape(str(value))}</td></tr>" for name, value in about.items()
    )
    return f'<h2>Provenance</h2>\n<div class="wide"><table><tbody>{lines}</tbody></table></div>'
