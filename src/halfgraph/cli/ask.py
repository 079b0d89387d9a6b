"""The command that asks a trained model: every exact answer, then the likely ones."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from halfgraph.cli.answered import show_answers, show_witness
from halfgraph.cli.query import View, sparql_text
from halfgraph.cli.screen import Json, note, print_json
from halfgraph.errors import InputError, SettingError

if TYPE_CHECKING:
    from halfgraph.answering.engine import Engine
    from halfgraph.answering.schema import Answers


class Format(StrEnum):
    """The formats of W3C."""

    json = "json"
    xml = "xml"
    csv = "csv"
    tsv = "tsv"


def ask(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.", show_default=False)],
    sparql: Annotated[
        str | None,
        typer.Argument(help="A SPARQL query, a file of one, or - for standard input.", show_default=False),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option("--graph", "-g", help="The graph's folder, if it has moved.", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(help="How many predicted answers to give.")] = 10,
    view: Annotated[
        View, typer.Option(help="Which triples count as known: all, without test, training only.")
    ] = View.whole,
    mode: Annotated[
        str | None, typer.Option(help="How to predict; the run's own way if not given.", show_default=False)
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(help="Only predicted answers at least so sure, from 0 to 1.", show_default=False)
    ] = None,
    any_type: Annotated[bool, typer.Option("--any-type", help="Predict entities of every type.")] = False,
    explain: Annotated[
        str | None,
        typer.Option(metavar="ENTITY", help="Show why this entity is an answer instead.", show_default=False),
    ] = None,
    heads: Annotated[bool, typer.Option("--heads", help="Show what each attention head gives to each path.")] = False,
    missing_as: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.nq", help="Write the triples that predicted answers need as N-Quads.", show_default=False
        ),
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Ask every query of a file, one on each line; prints JSON lines.", show_default=False
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        Format | None, typer.Option(help="Print the answers in a format of W3C.", show_default=False)
    ] = None,
    annotate: Annotated[
        bool, typer.Option("--annotate", help="With --format: add ?_score, ?_confidence and ?_source.")
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="How long exact answers may take.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Answer a SPARQL query: all exact answers first, then predicted ones, best first.

    Example: halfgraph ask demo/run 'SELECT ?x { :Hank_Aaron :played_for/:season_of ?x }'
    """
    _check(sparql, batch, top)
    from halfgraph.api import load

    engine = load(run, graph, view.value, time_limit=time_limit)
    if batch is not None:
        _batch(engine, batch, top, any_type)
        return
    text = sparql_text(sparql or "-")
    if explain is not None:
        witness = engine.explain(text, explain, mode=mode)
        print_json(witness.to_dict()) if json else show_witness(witness)
        return
    answers = engine.ask(text, top, mode=mode, min_confidence=min_confidence, any_type=any_type)
    if missing_as is not None:
        _write_missing(engine, answers, missing_as, run, text, mode)
    if format is not None:
        from halfgraph.sparql.results import results_format, write_results

        sys.stdout.write(write_results(*answers.rows(annotate=annotate), results_format(format.value)).decode())
    elif json:
        print_json(answers.to_dict())
    else:
        from halfgraph.sparql.prefixes import Prefixes

        show_answers(answers, Prefixes.of(engine.graph).short, heads=heads)


def _check(sparql: str | None, batch: Path | None, top: int) -> None:
    """Nothing, or an error before anything is loaded."""
    if (sparql is None) == (batch is None):
        raise SettingError("ask", "needs a query or --batch FILE, and not both", advice="Pass one of them.")
    if top < 1:
        raise SettingError("--top", f"must be at least 1, found {top}")


def _batch(engine: "Engine", path: Path, top: int, any_type: bool) -> None:
    """Nothing; the answers to each line of a file are printed as a line of JSON."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot be read: {error}", path=path, advice="Pass a file with a query on each line."
        ) from error
    texts = [line for line in lines if line.strip()]
    for first in range(0, len(texts), 1000):
        for answers in engine.ask_batch(texts[first : first + 1000], top, any_type=any_type):
            print_json(answers.to_dict())


def _write_missing(engine: "Engine", answers: "Answers", path: Path, run: Path, text: str, mode: str | None) -> None:
    """Nothing; the triples that predicted answers need are written to a file."""
    from halfgraph.answering.proposals import write_proposed

    witnesses = [engine.explain(text, one.entity, mode=mode) for one in answers.predicted]
    count = write_proposed(path, witnesses, str(run), text)
    note(f"{count:,} missing triple{'s' * (count != 1)} written to {path}")
