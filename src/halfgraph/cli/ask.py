"""`halfgraph query` and `halfgraph ask`: answer SPARQL queries exactly, or with a trained run that also predicts."""

import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Exit, Option

from halfgraph.cli.options import GraphFolder, Json, Missing, RunFolder, RunGraph, View
from halfgraph.cli.output import (
    draw_explanation,
    note,
    print_answers,
    print_json,
    print_table,
    print_turtle,
    print_witness,
)
from halfgraph.errors import HalfgraphError, InputError, SettingError, SparqlError, UnknownName
from halfgraph.prediction.modes import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyoxigraph import Quad

    from halfgraph.answering.engine import Engine
    from halfgraph.answering.schema import Answers
    from halfgraph.answering.store_rows import GraphStore
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

    CONSTRUCT and DESCRIBE print Turtle, ASK prints true or false. Names that the graph does not have are warnings.

    Example: halfgraph query demo/graph 'SELECT ?x { ?x <born_in> <Mobile_Alabama> ; <in_hall_of_fame_as> <Player> }'
    """
    from halfgraph.answering.store_rows import GraphStore
    from halfgraph.answering.unknown_names import unknown_names
    from halfgraph.graph.folder import Graph
    from halfgraph.sparql.read import request_of
    from halfgraph.sparql.syntax_tree import Ask, Construct, Describe, Select

    graph = Graph.open(folder)
    request = request_of(_sparql_text(sparql), graph)
    store = GraphStore(graph, view)
    notes = [str(error) for error in unknown_names(request, graph, store.local)]
    match request.tree:
        case Select():
            _print_rows(request, store, notes, top, json)
        case Ask():
            is_true = store.holds(request.tree)
            print_json({"answer": is_true, "notes": notes} if json else is_true)
        case Construct() | Describe():
            _print_triples(store.quads(request.tree), graph, notes, json)
    if not json:
        note(*notes)


def _print_rows(request: "Request", store: "GraphStore", notes: list[str], top: int, json: bool) -> None:
    """Print how a SELECT query is read, and its exact rows."""
    from halfgraph.answering.cells import to_json
    from halfgraph.answering.entity_names import EntityNames
    from halfgraph.answering.schema import Answers
    from halfgraph.sparql.prefixes import Prefixes
    from halfgraph.sparql.read import translate
    from halfgraph.sparql.syntax_tree import Select

    graph = store.graph
    assert isinstance(request.tree, Select)
    rows = store.rows(request.tree)
    answers = Answers(rows.variables, EntityNames(graph).known(rows), [])
    try:
        reading = _describe(request, translate(request, graph), graph)
    except (SparqlError, UnknownName):
        reading = _describe_rows(request, store)
    if json:
        drawn = {name: value for name, value in reading.items() if name != "drawing"}
        known = [to_json(one.row) for one in answers.known]
        print_json({**drawn, "notes": notes, "variables": rows.variables, "answers": known})
        return
    note(*(reading[name] for name in ("drawing", "note") if name in reading), *reading.get("conditions", ()))
    structure = f" to a query of structure {reading['structure']}" if "structure" in reading else ""
    count = len(answers.known)
    head, lines = answers.table(top, Prefixes.of(graph).short)
    title = f"{count:,} exact answer{'s' * (count != 1)}{structure}"
    print_table(title, head[1:], [line[1:] for line in lines])  # without the source: all are known
    if count > top:
        note(f"... and {count - top:,} more; --top N shows more")


def _print_triples(quads: "list[Quad]", graph: "Graph", notes: list[str], json: bool) -> None:
    """Print triples as Turtle with the prefixes that they use, or as JSON with terms as in N-Triples."""
    from pyoxigraph import RdfFormat, serialize

    from halfgraph.sparql.prefixes import Prefixes

    triples = [quad.triple for quad in quads]
    terms = [tuple(map(str, triple)) for triple in triples]
    if json:
        print_json({"triples": terms, "notes": notes})
        return
    used = {term for triple in terms for term in triple}
    prefixes = {
        prefix: namespace
        for prefix, namespace in Prefixes.of(graph).namespaces.items()
        if any(term.startswith(f"<{namespace}") for term in used)
    }
    print_turtle((serialize(triples, format=RdfFormat.TURTLE, prefixes=prefixes) or b"").decode())
    note(f"{len(triples):,} triple{'s' * (len(triples) != 1)}")


def _describe_rows(request: "Request", store: "GraphStore") -> dict[str, Any]:
    """Describe a query that is no query tree: a drawing of its first branch and the conditions for the store."""
    from halfgraph.answering.entity_names import EntityNames
    from halfgraph.answering.row_answers import RowAnswers
    from halfgraph.answering.row_engine import RowEngine
    from halfgraph.sparql.row_reading import read_rows

    try:
        reading = read_rows(request, store.graph)
    except (SparqlError, UnknownName):  # nothing to draw; unknown names are told as warnings
        return {}
    explanation = RowEngine(RowAnswers(None, store, EntityNames(store.graph))).explanation(reading)
    return {"conditions": list(explanation.conditions), "drawing": "\n".join(draw_explanation(explanation))}


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
    explain: Annotated[
        str | None,
        Option(metavar="ENTITY", help="Explain why this entity, or a row such as '?x=:A ?y=:B', is an answer."),
    ] = None,
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
        bool,
        Option("--annotate", help="With --format: add predicted rows, and columns ?_score, ?_confidence, ?_source."),
    ] = False,
    time_limit: Annotated[float | None, Option(metavar="SECONDS", help="Time limit for exact answers.")] = None,
    json: Json = False,
) -> None:
    """Answer a SPARQL query: exact answers, then predictions.

    Example: halfgraph ask demo/run 'SELECT ?x { :Hank_Aaron :played_for/:season_of ?x }'
    """
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
    engine = load(run, graph, view, time_limit=time_limit, missing=missing)
    if batch is not None:
        _batch(engine, batch, top, mode=mode, min_confidence=min_confidence)
        return
    text = _sparql_text(sparql or "-")
    if explain is not None:
        witness = engine.explain(text, _explained(explain), mode=mode)
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
    from halfgraph.answering.proposals import write_proposed

    rows = [{name: cell.value for name, cell in answer.row.items()} for answer in answers.predicted]
    witnesses = [engine.explain(text, row, mode=answers.mode) for row in rows]
    count = write_proposed(path, witnesses, str(run), text)
    note(f"{count:,} missing triple{'s' * (count != 1)} written to {path}")


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


def _sparql_text(given: str) -> str:
    """Return the text of a query given directly, as a file, or as - for standard input."""
    from halfgraph.graph.files import read_text

    if given == "-":
        given = sys.stdin.read(LONGEST_QUERY + 1)
    elif "{" not in given and "\n" not in given and Path(given).is_file():
        return read_text(Path(given), LONGEST_QUERY, "Pass SPARQL as UTF-8 text.")
    if len(given) > LONGEST_QUERY:
        raise InputError(f"the query is longer than {LONGEST_QUERY:,} characters, which is the limit")
    return given
