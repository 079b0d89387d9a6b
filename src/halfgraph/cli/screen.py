"""What people see: tables on stdout, progress on stderr, JSON for programs."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def print_json(value: Any) -> None:
    """Nothing; one JSON value is printed."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Nothing; a table is printed, numbers to the right with separators."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    cells = [[Text(_shown(value)) for value in row] for row in rows]  # as text: a name may look like rich's markup
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))] if cells else []
    table = Table(box=None, header_style="bold", pad_edge=False)
    for i, column in enumerate(columns):
        right = bool(numeric) and numeric[i]
        table.add_column(column, justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in cells:
        table.add_row(*row)
    console = Console(soft_wrap=False)
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(table)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def note(text: str) -> None:
    """Nothing; a line for people, on stderr."""
    sys.stderr.write(text + "\n")


@contextlib.contextmanager
def counting(what: str, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function to tell how many there are so far; shown on stderr with the pace where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,.0f}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda count: progress.update(task, completed=count)


@contextlib.contextmanager
def pacing(what: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function to tell how many more there are; a bar with the pace on stderr where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    shown = TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.description}, {task.fields[pace]:,.0f}/s")
    columns = (BarColumn(), shown, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total, pace=0)
        begun = time.perf_counter()

        def more(count: int) -> None:
            pace = (progress.tasks[task].completed + count) / (time.perf_counter() - begun)
            progress.update(task, advance=count, pace=pace)

        yield more


@contextlib.contextmanager
def telling(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A function to tell of work in parts: what, how many in all, how many more; a bar for each part on stderr."""
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}, left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, Any] = {}

        def more(what: str, total: int, count: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], advance=count)

        yield more


@contextlib.contextmanager
def training_bar(quiet: bool) -> Iterator[Callable[[Any, float, Any], None] | None]:
    """A function that shows where a training run is, on stderr, or None where that is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    text = TextColumn("step {task.completed:,.0f}{task.fields[of]}  {task.fields[said]}")
    columns = (BarColumn(bar_width=20), text, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, of="", said="")

        def show(progress: Any, loss: float, latest: Any) -> None:
            pace = progress.questions / max(progress.seconds, 1e-9)
            said = f"loss {loss:.3f}  {pace:,.0f} questions/s"
            if "auc" in latest:
                said += f"  AUC {latest['auc']:.3f} / {latest['auc_hard']:.3f}  APR {latest['apr']:.3f}"
            of = f" of {progress.total:,}" if progress.total else ""
            bar.update(task, completed=progress.step, total=progress.total, of=of, said=said)

        yield show
