"""`halfgraph ask`: answer SPARQL queries with a trained run, exactly and with predictions."""

import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Exit, Option

from halfgraph.cli.options import Json, Missing, RunFolder, RunGraph, View
from halfgraph.cli.output import note, print_answers, print_json, print_witness, written
from halfgraph.cli.query_text import SPARQL, sparql_text
from halfgraph.errors import HalfgraphError, SettingError
from halfgraph.prediction.modes import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halfgraph.answering.engine import Engine
    from halfgraph.answering.schema import Answers

# Options that have no effect beside another one.
CONFLICTS = {
    "--batch": ("--explain", "--format", "--annotate", "--missing-as", "--heads", "--fill"),
    "--explain": ("--format", "--annotate", "--missing-as", "--heads", "--min-confidence", "--fill"),
    "--format": ("--json", "--heads", "--fill"),
}


def ask(
    run: RunFolder,
    sparql: Annotated[str | None, SPARQL] = None,
    graph: RunGraph = None,
    top: Annotated[int, Option(help="Number of predicted answers.")] = 10,
    view: View = "whole",
    mode: Annotated[Mode | None, Option(help="How answers are predicted (default: links, if the run has it).")] = None,
    min_confidence: Annotated[float | None, Option(help="Hide predictions below this confidence (0 to 1).")] = None,
    missing: Missing = None,
    explain: Annotated[
        str | None,
        Option(metavar="ENTITY", help="Explain why this entity, or a row such as '?x=:A ?y=:B', is an answer."),
    ] = None,
    heads: Annotated[bool, Option("--heads", help="Show the attention weights of every head.")] = False,
    missing_as: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write the missing triples of the predictions: .nq, .trig, .ttl, .csv or .jsonl."),
    ] = None,
    batch: Annotated[
        Path | None, Option(metavar="FILE", help="Answer a file with one query per line; print JSON lines.")
    ] = None,
    format: Annotated[  # noqa: A002
        Literal["json", "xml", "csv", "tsv"] | None, Option(help="Print SPARQL results in this W3C format.")
    ] = None,
    annotate: Annotated[
        bool,
        Option("--annotate", help="With --format: add predicted rows, and columns ?_score, ?_confidence, ?_source."),
    ] = False,
    fill: Annotated[
        bool, Option("--fill", help="Fill empty cells of OPTIONAL parts with their likeliest value.")
    ] = False,
    time_limit: Annotated[float | None, Option(metavar="SECONDS", help="Time limit for exact answers.")] = None,
    json: Json = False,
) -> None:
    """Answer a SPARQL query: exact answers, then predictions.

    Example: halfgraph ask demo/run 'SELECT ?x { :Hank_Aaron :played_for/:season_of ?x }'
    """
    from halfgraph.answering.proposal_files import check_suffix
    from halfgraph.api import load
    from halfgraph.sparql.prefixes import Prefixes

    given = {
        "--batch": batch,
        "--explain": explain,
        "--format": format,
        "--annotate": annotate,
        "--missing-as": missing_as,
        "--heads": heads,
        "--min-confidence": min_confidence,
        "--json": json,
        "--fill": fill,
    }
    _refuse_conflicts({option for option, value in given.items() if value not in (None, False)})
    if (sparql is None) == (batch is None):
        raise SettingError("ask", "needs either a query or --batch FILE", advice="Pass one of them.")
    if missing_as is not None:
        check_suffix(missing_as, "--missing-as")
    engine = load(run, graph, view, time_limit=time_limit, missing=missing)
    if batch is not None:
        _batch(engine, batch, top, mode=mode, min_confidence=min_confidence)
        return
    text = sparql_text(sparql or "-")
    if explain is not None:
        witness = engine.explain(text, _explained(explain), mode=mode)
        print_json(witness.to_dict()) if json else print_witness(witness)
        return
    answers = engine.ask(text, top, mode=mode, min_confidence=min_confidence, fill=fill)
    if missing_as is not None:
        _write_missing(engine, run, text, answers, missing_as)
    if format is not None:
        _print_results(answers, format, annotate)
    elif json:
        print_json(answers.to_dict())
    else:
        print_answers(answers, Prefixes.of(engine.graph).short, heads=heads)


def _explained(text: str) -> str | dict[str, str]:
    """Return the entity to explain, or the row: `?x=:A ?y=:B`."""
    pairs = [part.partition("=") for part in text.split()]
    is_row = all(name.startswith("?") and value for name, _, value in pairs)
    return {name[1:]: value for name, _, value in pairs} if is_row and pairs else text


def _refuse_conflicts(given: set[str]) -> None:
    """Raise SettingError for an option that has no effect beside another one."""
    for option, others in CONFLICTS.items():
        for other in others:
            if {option, other} <= given:
                raise SettingError(other, f"has no effect with {option}", advice="Leave out one of them.")
    if "--annotate" in given and "--format" not in given:
        raise SettingError("--annotate", "adds columns to a W3C format", advice="Pass --format csv, for example.")


def _write_missing(engine: "Engine", run: Path, text: str, answers: "Answers", path: Path) -> None:
    from halfgraph.answering.proposal_files import write_proposals
    from halfgraph.answering.proposals import missing
    from halfgraph.sparql.prefixes import Prefixes
    from halfgraph.sparql.scanner import with_declarations

    rows = [{name: cell.value for name, cell in answer.row.items()} for answer in answers.predicted]
    witnesses = [engine.explain(text, row, mode=answers.mode) for row in rows]
    triples, prefixes = missing(witnesses), Prefixes.of(engine.graph)
    write_proposals(path, triples, str(run), with_declarations(text, prefixes), prefixes.namespaces)
    note(written(path, len(triples)))


def _print_results(answers: "Answers", name: str, annotate: bool) -> None:
    """Print the rows in a W3C format, predicted ones only if they are annotated as such."""
    from halfgraph.sparql.results import results_format, write_results

    if answers.truth is not None or answers.triples is not None:
        raise SettingError("--format", "writes the rows of a SELECT query", advice="Leave it out, or pass --json.")
    sys.stdout.write(write_results(*answers.rows(annotate=annotate), results_format(name)).decode())
    count = len(answers.predicted)
    if count and not annotate:
        note(f"{count:,} predicted answer{'s' * (count != 1)} left out; --annotate adds them")
    note(*answers.notes)


def _batch(engine: "Engine", path: Path, top: int, **options: Any) -> None:
    """Print a line of JSON for each query of a file: its answers, or what is wrong with it."""
    from halfgraph.answering.batch import json_line

    failed = total = 0
    lines = _lines(path)
    while chunk := list(islice(lines, 1000)):
        total += len(chunk)
        results = engine.ask_batch([text for _, text in chunk], top, **options)
        for (number, text), answers in zip(chunk, results, strict=True):
            if isinstance(answers, HalfgraphError):
                failed += 1
                print_json({"error": str(answers), "line": number, "query": text})
            else:
                sys.stdout.write(json_line(answers) + "\n")
    if failed:
        note(f"{failed:,} of {total:,} queries could not be answered; their lines have an error")
        raise Exit(1)


def _lines(path: Path) -> "Iterator[tuple[int, str]]":
    """Yield the number and text of each line with a query."""
    from halfgraph.graph.files import lines_of, open_input

    with open_input(path) as stream:
        yield from (
            (number, line) for number, line in lines_of(stream, path, Counter(), skip_bad=False) if line.strip()
        )
