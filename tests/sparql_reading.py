"""The paper's Listing 1, and ways to speak of what is read and refused."""

from collections.abc import Callable

import pytest
from pyoxigraph import Store

from halfgraph.errors import HalfgraphError
from halfgraph.graph.folder import Graph
from halfgraph.query.rendering import one_line
from halfgraph.query.tree import Anchor
from halfgraph.sparql.prefixes import COMMON
from halfgraph.sparql.read import read
from halfgraph.sparql.syntax_tree import Select
from halfgraph.sparql.writer import write

# As the paper prints it, the comma in the name without the backslash that SPARQL asks for.
LISTING_1 = """
	SELECT ?Disease
	WHERE {
	?Person dbo:deathCause ?Disease.
	?Person dbo:almaMater dbr:University_of_California,_Los_Angeles .
	dbr:Escape_Clause dbo:guest ?Person .
	}
"""


def entity(graph: Graph, name: str) -> Anchor:
    found = graph.entities.find(COMMON["dbr"] + name)
    assert found is not None
    return Anchor(found)


def relation(graph: Graph, name: str) -> int:
    found = graph.relations.find(COMMON["dbo"] + name)
    assert found is not None
    return 2 * found


def asking(store: Store) -> Callable[[Select], list[str]]:
    """What asks a store for the IRIs that answer a query of one variable."""
    return lambda query: [row[0].value for row in store.query(write(query))]  # type: ignore[union-attr]


def line_of(text: str, graph: Graph) -> str:
    """The query that a text is read as, on one line."""
    return one_line(read(text, graph).query, graph)


def refusal(text: str, graph: Graph) -> HalfgraphError:
    """The error that a text gets."""
    with pytest.raises(HalfgraphError) as caught:
        read(text, graph)
    return caught.value
