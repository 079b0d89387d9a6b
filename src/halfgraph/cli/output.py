"""Terminal output: JSON and tables on stdout; notes and progress on stderr; answers and explanations."""

import contextlib
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfgraph.errors import UNSAFE, printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from halfgraph.answering.explanation_schema import EmptyReason, Explanation, QueryEdge, QueryNode, Witness
    from halfgraph.answering.proposals import ProposedTriple
    from halfgraph.answering.schema import Answers, AnswerTriple

LONGEST_CELL, LONGEST_LINE = 300, 3_000  # characters in a table or note, after which a text is cut
MAX_KNOWN = 20  # known answers in a table


def print_json(value: Any) -> None:
    """Print a value as one line of JSON, characters that a terminal would obey escaped."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    sys.stdout.write(UNSAFE.sub(_escape, text) + "\n")


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def print_turtle(text: str) -> None:
    """Print Turtle, characters that a terminal would obey escaped."""
    sys.stdout.write(UNSAFE.sub(lambda match: match.group() if match.group() in "\n\t" else _escape(match), text))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a title and a table, if there are rows; numbers are right-aligned with thousands separators."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows, console = list(rows), Console()
    title = "\n".join(printable(line, LONGEST_LINE) for line in title.split("\n"))
    console.print(Text(title, style="bold"), soft_wrap=not console.is_terminal)
    table = Table(box=None, header_style="bold", pad_edge=False, show_header=any(columns))
    for i, column in enumerate(columns):
        numeric = all(isinstance(row[i], int | float) for row in rows)
        table.add_column(
            Text(printable(column, LONGEST_CELL)),
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=numeric,
        )
    for row in rows:
        table.add_row(
            *(Text(printable(_format(value), LONGEST_CELL)) for value in row)
        )  # as Text: a name may look like rich's markup
    if rows:
        console.print(table)


def _format(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def note(*texts: str) -> None:
    """Print texts for people on stderr; on a terminal, long lines are broken between words."""
    wrap = sys.stderr.isatty()
    for line in (printable(line, LONGEST_LINE) for text in texts for line in text.split("\n")):
        sys.stderr.write((_wrap(line, shutil.get_terminal_size().columns) if wrap else line) + "\n")


def _wrap(line: str, width: int) -> str:
    """Break a line between words; the next lines are indented deeper, under the branches of a drawing."""
    indent = " " * (len(line) - len(line.lstrip(" │├└─")) + 4)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def written(path: Path, count: int, what: str = "missing triple") -> str:
    """Say how many things a file has now."""
    return f"{count:,} {what}{'s' * (count != 1)} written to {path}"


class ProgressDisplay:
    """Progress bars on stderr, one for each task; `visible` is false where stderr is no terminal."""

    def __init__(self, bars: "Progress | None") -> None:
        self._bars, self.visible = bars, bars is not None
        self._tasks: dict[str, Any] = {}

    def __call__(
        self, task: str, total: int | None = None, more: int = 0, *, done: int | None = None, detail: str = ""
    ) -> None:
        """Show that `done` in all, or `more` than before, of `total` are finished."""
        if self._bars is None:
            return
        if task not in self._tasks:
            self._tasks[task] = self._bars.add_task(task, total=total, of="", detail="")
        state = self._bars.tasks[self._tasks[task]]
        finished = state.completed + more if done is None else done
        rate = f", {finished / state.elapsed:,.0f}/s" if state.elapsed else ""
        of = "" if total is None else f" of {total:,}"
        self._bars.update(state.id, completed=finished, total=total, of=of, detail=detail or rate)


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[ProgressDisplay]:
    """Display of progress on stderr; it shows nothing if quiet, or without a terminal or notebook."""
    if quiet or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield ProgressDisplay(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    text = TextColumn("{task.description} {task.completed:,.0f}{task.fields[of]}{task.fields[detail]}")
    columns = (BarColumn(bar_width=20), text, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield ProgressDisplay(bars)


def print_answers(answers: "Answers", short: Callable[[str], str], *, heads: bool) -> None:
    """Print the answers, known ones first, then how the query was read and where it fails."""
    if answers.truth is not None:
        print_table(answers.truth.verdict, [], [])
    elif answers.triples is not None:
        _print_triples(answers.triples, short)
    else:
        title = f"{len(answers.known):,} known, {len(answers.predicted):,} predicted"
        print_table(title, *answers.table(MAX_KNOWN, short))
    if len(answers.known) > MAX_KNOWN:
        note(f"... and {len(answers.known) - MAX_KNOWN:,} more known answers; --json or --format gives them all")
    if answers.missing_rows:
        _print_missing_rows(answers)
    if answers.explanation.empty is not None:
        note("", *_why_empty(answers.explanation.empty))
    if answers.explanation.nodes:
        note("", *draw_explanation(answers.explanation, heads), *answers.explanation.conditions)
    note(*answers.notes)


def _print_triples(triples: "Sequence[AnswerTriple]", short: Callable[[str], str]) -> None:
    """Print the triples of CONSTRUCT or DESCRIBE, known ones first."""
    from halfgraph.answering.cells import percent

    known = sum(triple.known for triple in triples)
    head = ["", "subject", "predicate", "object", *["confidence"] * (known < len(triples))]
    rows = []
    for triple in [*triples[: min(known, MAX_KNOWN)], *triples[known:]]:
        cells = [
            short(cell.value) if cell.type == "uri" else cell.label
            for cell in (triple.subject, triple.predicate, triple.object)
        ]
        confidence = "" if triple.confidence is None else percent(triple.confidence)
        rows.append(("known" if triple.known else "predicted", *cells, *[confidence] * (len(head) - 4)))
    print_table(f"{known:,} known, {len(triples) - known:,} predicted triples", head, rows)
    if known > MAX_KNOWN:
        note(f"... and {known - MAX_KNOWN:,} more known triples; --json gives them all")


def _print_missing_rows(answers: "Answers") -> None:
    """Print the rows that an aggregate most likely lacks."""
    from halfgraph.answering.schema import Answers

    rows = answers.missing_rows or ()
    names = list(dict.fromkeys(name for row in rows for name in row.row))
    head, lines = Answers(names, [], rows).table(0)
    print_table("Most likely missing rows", head[1 : len(names) + 2], [line[1 : len(names) + 2] for line in lines])


def _why_empty(empty: "EmptyReason") -> list[str]:
    lines = ["No exact answer: the graph has no match for", *(f"    {printable(pattern)}" for pattern in empty.part)]
    if empty.without is None:
        return lines
    count, first = empty.without.count, [printable(answer.label, LONGEST_CELL) for answer in empty.without.some]
    labels = ", ".join(first + ["..."] * (count > len(first)))
    return [*lines, f"Without this the query has {count:,} answer{'s' * (count != 1)}: {labels}"]


def draw_explanation(explanation: "Explanation", heads: bool = False) -> list[str]:
    """Draw the query as a tree from its answer to its anchors, with the attention weight of each path."""
    from halfgraph.query.rendering import indent_branches

    if not explanation.nodes:
        return []
    nodes = {node.id: node for node in explanation.nodes}
    target = next((node for node in explanation.nodes if node.role == "target"), explanation.nodes[0])
    drawn: set[int] = set()

    def below(node: "QueryNode") -> list[str]:
        drawn.add(node.id)
        return indent_branches([branch(edge) for edge in explanation.edges if edge.target == node.id])

    def branch(edge: "QueryEdge") -> list[str]:
        source = nodes[edge.source]
        first = f"{_attention(edge, heads)}{_relation(edge)} ← {_name(source)}"
        if source.role == "anchor":
            return [first]
        if source.id in drawn:
            return [f"{first} (as above)"]
        likely = ", ".join(printable(entity.label, LONGEST_CELL) for entity in source.likely)
        return [first + (f"  (likely {likely})" if likely else ""), *below(source)]

    return [_name(target), *below(target)]


def _name(node: "QueryNode") -> str:
    """Return an entity, or a variable with the type that the query states."""
    name = f"{node.name} : {node.type}" if node.type and node.role != "anchor" else node.name
    return printable(name, LONGEST_CELL)


def _relation(edge: "QueryEdge") -> str:
    name = printable(edge.label, LONGEST_CELL) + ("⁻¹" if edge.inverse else "")
    return f"not {name}" if edge.negated else f"either {name}" if edge.alternative else name


def _attention(edge: "QueryEdge", heads: bool) -> str:
    """Return the attention weight of a path at an intersection, with that of every head if asked for."""
    if edge.attention is None:
        return ""
    by_head = f" [{' '.join(f'{weight:.0%}' for weight in edge.heads)}]" if heads and edge.heads else ""
    return f"{edge.attention:.0%}{by_head} "


def print_proposals(title: str, triples: "Iterable[ProposedTriple]") -> None:
    """Print missing triples with confidence and reason, each triple as one cell, so that a narrow terminal shows it."""
    from halfgraph.answering.cells import percent

    ends = [(one, (one.subject.label, one.predicate.label, one.object.label)) for one in triples]
    rows = [(percent(one.confidence or 0.0), " — ".join(labels), one.reason or "") for one, labels in ends]
    print_table(title, ["", "triple", "because"], rows)


def print_witness(witness: "Witness") -> None:
    """Print why an entity is an answer, triple by triple."""
    from halfgraph.answering.explanation_schema import status

    values = ", ".join(f"{entity.variable} = {printable(entity.label, LONGEST_CELL)}" for entity in witness.witness)
    rows = [(row.subject.label, row.predicate.label, row.object.label, status(row)) for row in witness.triples]
    title = witness.answer.verdict + (f", with {values}" if values else "")
    print_table(title, ["subject", "relation", "object", ""], rows)
    note(*witness.notes)
