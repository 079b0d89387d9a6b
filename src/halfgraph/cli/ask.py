"""`halfgraph query` and `halfgraph ask`: answer SPARQL queries exactly, or with a trained run that also predicts."""

import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Exit, Option

from halfgraph.cli.options import GraphFolder, Json, Missing, RunFolder, RunGraph, View
from halfgraph.cli.output import note, print_answers, print_json, print_table, print_witness, written
from halfgraph.errors import HalfgraphError, InputError, SettingError, SparqlError, UnknownName
from halfgraph.prediction.modes import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from halfgraph.answering.engine import Engine
    from halfgraph.answering.schema import Answers
    from halfgraph.graph.folder import Graph
    from halfgraph.sparql.parse import Request
    from halfgraph.sparql.read import Reading

# Options that have no effect beside another one.
CONFLICTS = {
    "--batch": ("--explain", "--format", "--annotate", "--missing-as", "--heads"),
    "--explain": ("--format", "--annotate", "--missing-as", "--heads", "--min-confidence"),
    "--format": ("--json", "--heads"),
}
LONGEST_QUERY = 1 << 20  # bytes
SPARQL = Argument(metavar="SPARQL", help="SPARQL query, a file with one, or - for standard input.")


def query(
    folder: GraphFolder,
    sparql: Annotated[str, SPARQL],
    view: View = "whole",
    top: Annotated[int, Option(min=1, help="Number of answers to show.")] = 10,
    json: Json = False,
) -> None:
    """Show how a SPARQL query is read, and answer it exactly.

    Example: halfgraph query demo/graph 'SELECT ?x { ?x <born_in> <Mobile_Alabama> ; <in_hall_of_fame_as> <Player> }'
    """
    from halfgraph.answering.cells import to_json
    from halfgraph.answering.reasons import why_not_predicted
    from halfgraph.answering.schema import Answers
    from halfgraph.answering.store_rows import EntityNames, GraphStore
    from halfgraph.graph.folder import Graph
    from halfgraph.sparql.prefixes import Prefixes
    from halfgraph.sparql.read import request_of, translate
    from halfgraph.sparql.syntax_tree import Select
    from halfgraph.sparql.unsupported import refuse_unsupported

    graph = Graph.open(folder)
    request = request_of(_sparql_text(sparql), graph)
    if not isinstance(request.tree, Select):
        refuse_unsupported(request.tree, request.source)
    assert isinstance(request.tree, Select), "other forms are refused"
    store = GraphStore(graph, view)
    rows = store.rows(request.tree)
    answers = Answers(rows.variables, EntityNames(graph).known(rows), [])
    try:
        reading = _describe(request, translate(request, graph), graph)
    except (SparqlError, UnknownName) as error:
        reading = {"note": f"Cannot be drawn: {why_not_predicted(error, store, has_rows=bool(answers.known))}"}
    if json:
        drawn = {name: value for name, value in reading.items() if name != "drawing"}
        print_json({**drawn, "variables": rows.variables, "answers": [to_json(one.row) for one in answers.known]})
        return
    note(*(reading[name] for name in ("drawing", "note") if name in reading), *reading.get("conditions", ()))
    structure = f" to a query of structure {reading['structure']}" if "structure" in reading else ""
    count = len(answers.known)
    head, lines = answers.table(top, Prefixes.of(graph).short)
    title = f"{count:,} exact answer{'s' * (count != 1)}{structure}"
    print_table(title, head[1:], [line[1:] for line in lines])  # without the source: all are known
    if count > top:
        note(f"... and {count - top:,} more; --top N shows more")


def _describe(request: "Request", reading: "Reading", graph: "Graph") -> dict[str, Any]:
    """Describe how a query is read: its structure, a formula, the tree as SPARQL, a drawing and other conditions."""
    from halfgraph.query.rendering import drawing, one_line
    from halfgraph.query.structures import structure_name
    from halfgraph.sparql.read import undrawn
    from halfgraph.sparql.rendering import to_sparql

    return {
        "structure": structure_name(reading.query),
        "reads": one_line(reading.query, graph, reading.target),
        "sparql": to_sparql(reading.query, graph, reading.target),
        "conditions": undrawn(request, reading),
        "drawing": drawing(reading.query, graph, reading.target),
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
    explain: Annotated[str | None, Option(metavar="ENTITY", help="Explain why this entity is an answer.")] = None,
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
    text = _sparql_text(sparql or "-")
    if explain is not None:
        witness = engine.explain(text, explain, mode=mode)
        print_json(witness.to_dict()) if json else print_witness(witness)
        return
    answers = engine.ask(text, top, mode=mode, min_confidence=min_confidence)
    if missing_as is not None:
        _write_missing(engine, run, text, answers, missing_as)
    if format is not None:
        _print_results(answers, format, annotate)
    elif json:
        print_json(answers.to_dict())
    else:
        print_answers(answers, Prefixes.of(engine.graph).short, heads=heads)


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

    witnesses = [engine.explain(text, answer.entity, mode=answers.mode) for answer in answers.predicted]
    triples, prefixes = missing(witnesses), Prefixes.of(engine.graph)
    write_proposals(path, triples, str(run), with_declarations(text, prefixes), prefixes.namespaces)
    note(written(path, len(triples)))


def _print_results(answers: "Answers", name: str, annotate: bool) -> None:
    """Print the rows in a W3C format, predicted ones only if they are annotated as such."""
    from halfgraph.sparql.results import results_format, write_results

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


def _sparql_text(given: str) -> str:
    """Return the text of a query given directly, as a file, or as - for standard input."""
    from halfgraph.graph.files import read_text

    if given == "-":
        given = sys.stdin.read(LONGEST_QUERY + 1)
    elif "{" not in given and "\n" not in given and Path(given).is_file():
        return read_text(Path(given), LONGEST_QUERY, "Pass SPARQL as UTF-8 text.")
    elif not set("{?\n") & set(given) and (Path(given).suffix or "/" in given):
        raise InputError("no such file", path=given, advice="Pass a file with a query, or its text: SELECT ?x { ... }")
    if len(given) > LONGEST_QUERY:
        raise InputError(f"the query is longer than {LONGEST_QUERY:,} characters, which is the limit")
    return given
