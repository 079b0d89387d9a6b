"""The command that reads a SPARQL query, shows what it asks, and answers it exactly."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from halfgraph.cli.screen import Json, note, print_json, print_table


class View(StrEnum):
    """Which triples a query is asked of."""

    whole = "whole"
    known = "known"
    train = "train"


def query(
    folder: Annotated[Path, typer.Argument(metavar="GRAPH", help="A graph folder.", show_default=False)],
    sparql: Annotated[str, typer.Argument(help="A SPARQL query, a file of one, or - for standard input.")],
    view: Annotated[View, typer.Option(help="Which triples to ask: all, without test, or training only.")] = View.whole,
    top: Annotated[int, typer.Option(min=1, help="How many answers to show.")] = 10,
    json: Json = False,
) -> None:
    """Show what a SPARQL query asks, as a drawing and by its structure, and its exact answers.

    Example: halfgraph query demo/graph 'SELECT ?x { ?x <born_in> <Mobile_Alabama> ; <in_hall_of_fame_as> <Player> }'
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.store import open_store
    from halfgraph.query.exact import Exact
    from halfgraph.query.rendering import drawing, one_line, to_sparql
    from halfgraph.query.structures import structure_name
    from halfgraph.sparql.allowing import allowed
    from halfgraph.sparql.reading import read

    graph = Graph.open(folder)
    reading = read(sparql_text(sparql), graph)
    answers = Exact(getattr(graph, view.value)).answers(reading.query)
    if reading.restriction:
        answers = answers[allowed(open_store(graph, view.value), reading, graph, answers.tolist())]
    kept = answers[reading.offset :][: reading.limit]
    names = [(graph.entities.name(int(i)), graph.entities.label(int(i))) for i in kept]
    if json:
        print_json(
            {
                "structure": structure_name(reading.query),
                "reads": one_line(reading.query, graph, reading.target),
                "sparql": to_sparql(reading.query, graph, reading.target),
                "tested_by_the_store": reading.restriction,
                "answers": [{"entity": name, "label": label} for name, label in names],
            }
        )
        return
    note(drawing(reading.query, graph, reading.target))
    if reading.restriction:
        note(f"tested by the store: {reading.restriction}")
    title = (
        f"{len(names):,} exact answer{'s' * (len(names) != 1)} to a query of structure {structure_name(reading.query)}"
    )
    print_table(title, ["", ""], [(label, name) for name, label in names[:top]])
    if len(names) > top:
        note(f"... and {len(names) - top:,} more; --top shows more of them")


def sparql_text(given: str) -> str:
    """The text of a query that is given as itself, as a file, or as - for standard input."""
    from halfgraph.errors import InputError

    if given == "-":
        return sys.stdin.read()
    if "{" in given or "\n" in given or not Path(given).is_file():
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=given, advice="Pass a SPARQL query as UTF-8 text.") from error
