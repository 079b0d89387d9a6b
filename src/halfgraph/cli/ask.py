"""`halfgraph query` and `halfgraph ask`: answer SPARQL queries exactly, or with a trained run that also predicts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from halfgraph.cli.options import GraphFolder, Json, RunFolder, RunGraph, View
from halfgraph.cli.output import note, print_answers, print_json, print_table, print_witness
from halfgraph.errors import InputError, SettingError
from halfgraph.prediction.modes import Mode

if TYPE_CHECKING:
    from halfgraph.answering.engine import Engine

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
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.store import open_store
    from halfgraph.query.exact import Exact
    from halfgraph.query.rendering import drawing, one_line
    from halfgraph.query.structures import structure_name
    from halfgraph.sparql.filters import passes_filters
    from halfgraph.sparql.read import read
    from halfgraph.sparql.rendering import to_sparql

    graph = Graph.open(folder)
    reading = read(_sparql_text(sparql), graph)
    answers = Exact(graph.view(view)).answers(reading.query)
    if reading.tests.elements:
        store = open_store(graph, view)
        answers = answers[passes_filters(store, reading.tests, reading.target, graph, answers.tolist())]
    kept = answers[reading.offset :][: reading.limit]
    names = [(graph.entities.name(int(i)), graph.entities.label(int(i))) for i in kept]
    structure = structure_name(reading.query)
    if json:
        print_json(
            {
                "structure": structure,
                "reads": one_line(reading.query, graph, reading.target),
                "sparql": to_sparql(reading.query, graph, reading.target),
                "tested_by_the_store": reading.restriction,
                "answers": [{"entity": name, "label": label} for name, label in names],
            }
        )
        return
    note(drawing(reading.query, graph, reading.target))
    if reading.restriction:
        note(f"filtered by the store: {reading.restriction}")
    title = f"{len(names):,} exact answer{'s' * (len(names) != 1)} to a query of structure {structure}"
    print_table(title, ["", ""], [(label, name) for name, label in names[:top]])
    if len(names) > top:
        note(f"... and {len(names) - top:,} more; --top N shows more")


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
    from halfgraph.answering.proposals import write_proposed
    from halfgraph.api import load
    from halfgraph.sparql.prefixes import Prefixes
    from halfgraph.sparql.results import results_format, write_results

    if (sparql is None) == (batch is None):
        raise SettingError("ask", "needs either a query or --batch FILE", advice="Pass one of them.")
    engine = load(run, graph, view, time_limit=time_limit)
    if batch is not None:
        _batch(engine, batch, top, any_type)
        return
    text = _sparql_text(sparql or "-")
    if explain is not None:
        witness = engine.explain(text, explain, mode=mode)
        print_json(witness.to_dict()) if json else print_witness(witness)
        return
    answers = engine.ask(text, top, mode=mode, min_confidence=min_confidence, any_type=any_type)
    if missing_as is not None:
        witnesses = [engine.explain(text, answer.entity, mode=mode) for answer in answers.predicted]
        count = write_proposed(missing_as, witnesses, str(run), text)
        note(f"{count:,} missing triple{'s' * (count != 1)} written to {missing_as}")
    if format is not None:
        sys.stdout.write(write_results(*answers.rows(annotate=annotate), results_format(format)).decode())
    elif json:
        print_json(answers.to_dict())
    else:
        print_answers(answers, Prefixes.of(engine.graph).short, heads=heads)


def _batch(engine: "Engine", path: Path, top: int, any_type: bool) -> None:
    """Print the answers to each line of a file as a line of JSON."""
    texts = [line for line in _read_text(path).splitlines() if line.strip()]
    for first in range(0, len(texts), 1000):
        for answers in engine.ask_batch(texts[first : first + 1000], top, any_type=any_type):
            print_json(answers.to_dict())


def _sparql_text(given: str) -> str:
    """Return the text of a query given directly, as a file, or as - for standard input."""
    if given == "-":
        return sys.stdin.read()
    return given if "{" in given or "\n" in given or not Path(given).is_file() else _read_text(Path(given))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path, advice="Pass SPARQL as UTF-8 text.") from error
