"""`halfgraph ask`: answer SPARQL queries with a trained run, explain an answer, or list missing triples."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from halfgraph.cli.options import Json, RunFolder, RunGraph, View
from halfgraph.cli.output import note, print_answers, print_json, print_witness
from halfgraph.cli.query import SPARQL, read_text, sparql_text
from halfgraph.errors import SettingError
from halfgraph.prediction.modes import Mode

if TYPE_CHECKING:
    from halfgraph.answering.engine import Engine
    from halfgraph.answering.schema import Answers


def ask(
    run: RunFolder,
    sparql: Annotated[str | None, SPARQL] = None,
    graph: RunGraph = None,
    top: Annotated[int, Option(help="Number of predicted answers.")] = 10,
    view: View = "whole",
    mode: Annotated[
        Mode | None, Option(help="How answers are predicted (default: ensemble, if the run has it).")
    ] = None,
    min_confidence: Annotated[float | None, Option(help="Hide predictions below this confidence (0 to 1).")] = None,
    any_type: Annotated[bool, Option("--any-type", help="Predict entities of every type.")] = False,
    explain: Annotated[str | None, Option(metavar="ENTITY", help="Explain why this entity is an answer.")] = None,
    heads: Annotated[bool, Option("--heads", help="Show the attention weights of every head.")] = False,
    missing_as: Annotated[
        Path | None, Option(metavar="FILE.nq", help="Write the missing triples behind the predictions as N-Quads.")
    ] = None,
    batch: Annotated[
        Path | None, Option(metavar="FILE", help="Answer a file with one query per line; print JSON lines.")
    ] = None,
    format: Annotated[  # noqa: A002
        Literal["json", "xml", "csv", "tsv"] | None, Option(help="Print SPARQL results in this W3C format.")
    ] = None,
    annotate: Annotated[
        bool, Option("--annotate", help="With --format: add columns ?_score, ?_confidence, ?_source.")
    ] = False,
    time_limit: Annotated[float | None, Option(metavar="SECONDS", help="Time limit for exact answers.")] = None,
    json: Json = False,
) -> None:
    """Answer a SPARQL query: exact answers, then predictions.

    Example: halfgraph ask demo/run 'SELECT ?x { :Hank_Aaron :played_for/:season_of ?x }'
    """
    from halfgraph.api import load

    if (sparql is None) == (batch is None):
        raise SettingError("ask", "needs either a query or --batch FILE", advice="Pass one of them.")
    engine = load(run, graph, view, time_limit=time_limit)
    if batch is not None:
        _batch(engine, batch, top, any_type)
        return
    text = sparql_text(sparql or "-")
    if explain is not None:
        witness = engine.explain(text, explain, mode=mode)
        print_json(witness.to_dict()) if json else print_witness(witness)
        return
    answers = engine.ask(text, top, mode=mode, min_confidence=min_confidence, any_type=any_type)
    if missing_as is not None:
        _write_missing(engine, answers, missing_as, run, text, mode)
    if format is not None:
        from halfgraph.sparql.results import results_format, write_results

        sys.stdout.write(write_results(*answers.rows(annotate=annotate), results_format(format)).decode())
    elif json:
        print_json(answers.to_dict())
    else:
        from halfgraph.sparql.prefixes import Prefixes

        print_answers(answers, Prefixes.of(engine.graph).short, heads=heads)


def _batch(engine: "Engine", path: Path, top: int, any_type: bool) -> None:
    """Print the answers to each line of a file as a line of JSON."""
    texts = [line for line in read_text(path).splitlines() if line.strip()]
    for first in range(0, len(texts), 1000):
        for answers in engine.ask_batch(texts[first : first + 1000], top, any_type=any_type):
            print_json(answers.to_dict())


def _write_missing(engine: "Engine", answers: "Answers", path: Path, run: Path, text: str, mode: str | None) -> None:
    """Write the triples that predicted answers lack to a file."""
    from halfgraph.answering.proposals import write_proposed

    witnesses = [engine.explain(text, answer.entity, mode=mode) for answer in answers.predicted]
    count = write_proposed(path, witnesses, str(run), text)
    note(f"{count:,} missing triple{'s' * (count != 1)} written to {path}")
