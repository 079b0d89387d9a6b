"""`halfgraph query`: show how a SPARQL query is read, and answer it exactly."""

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from halfgraph.cli.options import GraphFolder, Json, View
from halfgraph.cli.output import draw_explanation, note, print_json, print_table, print_turtle
from halfgraph.cli.query_text import SPARQL, sparql_text
from halfgraph.errors import SparqlError, UnknownName

if TYPE_CHECKING:
    from pyoxigraph import Quad

    from halfgraph.answering.store_rows import GraphStore
    from halfgraph.graph.folder import Graph
    from halfgraph.sparql.parse import Request
    from halfgraph.sparql.read import Reading


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
    request = request_of(sparql_text(sparql), graph)
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
