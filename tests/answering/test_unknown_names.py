"""Unknown names: warned of wherever a pattern has them, and nowhere else."""

from collections.abc import Iterator

import pytest

from halfgraph.answering.unknown_names import MOST, unknown_names
from halfgraph.graph.folder import Graph
from halfgraph.graph.store import open_store
from halfgraph.sparql.read import request_of
from imported_graphs import short_lived

STATEMENTS = """
@prefix : <http://halfgraph.local/> .
:ada :knows :bob ; :age 36 ; a :Poet . :g { :bob :writes :poem }
"""


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with short_lived(STATEMENTS, "trig") as found:
        yield found


def warned(text: str, graph: Graph) -> list[str]:
    found = unknown_names(request_of(text, graph), graph, open_store(graph))
    return [f"{error.what} {error.name}" for error in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * { ?x :knows :bob ; :age ?n ; a :Poet . ?y :writes :poem }", ""),
        ("SELECT * { :adda :knows/^:nows ?x . ?x a :Pet }", "entity :adda, relation :nows, type :Pet"),
        ("SELECT * { ?x :nows ?y . ?y :nows :ada OPTIONAL { ?y :is :ada } }", "relation :nows, relation :is"),
        ("CONSTRUCT { ?x :new :name } { ?x :knows ?y FILTER(?y != :nobody) }", ""),
        ("DESCRIBE :nobody", "entity :nobody"),
        ("ASK { FILTER NOT EXISTS { :ada :likes ?x } }", "relation :likes"),
        ("SELECT ?xLabel { ?x :knows ?y SERVICE wikibase:label { } }", ""),
        ("SELECT * { GRAPH :g { :bob :writes ?x } }", ""),
    ],
)
def test_names_that_the_graph_does_not_have_are_found_in_patterns(text: str, expected: str, graph: Graph) -> None:
    assert warned(text, graph) == [one for one in expected.split(", ") if one]


def test_the_nearest_names_are_suggested(graph: Graph) -> None:
    request = request_of("SELECT * { :adaa :know ?x }", graph)
    assert [error.nearest[0] for error in unknown_names(request, graph, open_store(graph))] == [":ada", ":knows"]


def test_warnings_are_few(graph: Graph) -> None:
    assert len(warned("SELECT * { " + " ".join(f"?x :r{n} ?y ." for n in range(20)) + " }", graph)) == MOST
