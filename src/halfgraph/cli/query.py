"""`halfgraph query`: show how a SPARQL query is read, and answer it exactly."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from halfgraph.cli.options import GraphFolder, Json, View
from halfgraph.cli.output import note, print_json, print_table
from halfgraph.errors import InputError

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
    reading = read(sparql_text(sparql), graph)
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


def sparql_text(given: str) -> str:
    """Return the text of a query given directly, as a file, or as - for standard input."""
    if given == "-":
        return sys.stdin.read()
    return given if "{" in given or "\n" in given or not Path(given).is_file() else read_text(Path(given))


def read_text(path: Path) -> str:
    """Read a file of SPARQL queries."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path, advice="Pass SPARQL as UTF-8 text.") from error
