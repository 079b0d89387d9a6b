"""Entry point of the command line: all commands, and how errors are reported."""

import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer
from typer import Option

from halfgraph import __version__
from halfgraph.cli.ask import ask
from halfgraph.cli.calibrate import calibrate
from halfgraph.cli.evaluate import evaluate
from halfgraph.cli.graph import build, import_
from halfgraph.cli.query import query
from halfgraph.cli.reproduce import reproduce
from halfgraph.cli.serve import serve
from halfgraph.cli.stats import stats
from halfgraph.cli.train import train
from halfgraph.cli.workload import sample, workload
from halfgraph.errors import HalfgraphError

app = typer.Typer(
    name="halfgraph", no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"halfgraph {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: bool = Option(False, "--version", callback=_version, is_eager=True, help="Print the version and exit."),
) -> None:
    """Answer logical queries over incomplete knowledge graphs: exact answers first, then predictions.

    Example: halfgraph import demo --split 90/1/9 --out graph; halfgraph train graph --out run; halfgraph serve run
    """


app.command("import")(import_)
app.command()(build)
app.command()(stats)
app.command()(sample)
app.add_typer(workload, name="workload")
app.command()(query)
app.command()(train)
app.command()(calibrate)
app.command()(ask)
app.command()(serve)
app.command()(evaluate)
app.command()(reproduce)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names that the terminal cannot show
    try:
        try:
            app(args=arguments)
        finally:
            sys.stdout.flush()
    except HalfgraphError as error:
        _fail(str(error))
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (OSError, MemoryError) as error:
        _fail(str(error) or "not enough memory")


def _fail(message: str) -> NoReturn:
    """Print one line on stderr and exit with code 1."""
    typer.echo("halfgraph: " + " ".join(message.splitlines()), err=True)
    sys.exit(1)
