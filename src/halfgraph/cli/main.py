"""Entry point of the command line: all commands, and how errors are reported."""

import io
import os
import sys
from collections.abc import Sequence

import typer

from halfgraph import __version__
from halfgraph.cli.ask import ask
from halfgraph.cli.calibrate import calibrate
from halfgraph.cli.check import check
from halfgraph.cli.compare import compare
from halfgraph.cli.complete import complete
from halfgraph.cli.demo import demo
from halfgraph.cli.doctor import doctor
from halfgraph.cli.evaluate import evaluate
from halfgraph.cli.graph import build, import_
from halfgraph.cli.mcp import mcp
from halfgraph.cli.names import describe, prefixes, relations, types
from halfgraph.cli.output import note
from halfgraph.cli.query import query
from halfgraph.cli.reproduce import reproduce
from halfgraph.cli.serve import serve
from halfgraph.cli.stats import stats
from halfgraph.cli.train import train
from halfgraph.cli.workload import sample, workload
from halfgraph.errors import HalfgraphError

app = typer.Typer(
    name="halfgraph",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"halfgraph {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version and exit."),
) -> None:
    """Answer logical queries over incomplete knowledge graphs: exact answers first, then predictions.

    Example: halfgraph import demo --split 90/1/9 --out graph; halfgraph train graph --out run; halfgraph serve run
    """


app.command("import")(import_)
COMMANDS = (
    *(build, stats, relations, types, describe, prefixes, sample, query, train, calibrate),
    *(ask, complete, check, serve, mcp, evaluate, compare, reproduce, doctor, demo),
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(workload, name="workload")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names that the terminal cannot show
    try:
        try:
            app(args=arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (HalfgraphError, OSError, MemoryError) as error:
        message = error.for_command_line if isinstance(error, HalfgraphError) else str(error)
        note("halfgraph: " + " ".join((message or "not enough memory").splitlines()))
        sys.exit(1)
