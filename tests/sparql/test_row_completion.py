"""The law of row readings: uncertain patterns and the rest together are the text."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pyoxigraph as ox
import pytest
from hypothesis import assume, event, given, settings

from halfgraph.errors import SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.sparql import row_reading
from halfgraph.sparql.parse import parse
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.row_completion import completed, known_rows
from halfgraph.sparql.row_reading import RowReading, read_rows
from halfgraph.sparql.scopes import projected
from halfgraph.sparql.syntax_tree import Iri, Literal
from halfgraph.sparql.writer import write
from sparql.core_text import CoreText
from sparql_row_texts import names_graph, stores, texts


@pytest.fixture(scope="module")
def names() -> Iterator[Graph]:
    with names_graph() as graph:
        yield graph


def reading_of(text: str, graph: Graph) -> RowReading:
    """The reading of a text, with the branches that have nothing uncertain."""
    try:
        request = parse(text, Prefixes.of(graph))
    except SparqlError:
        assume(False)
    with patch.object(row_reading, "is_uncertain", lambda _: True):
        return read_rows(request, graph)


def cell(term: Any) -> Iri | Literal | None:
    if term is None:
        return None
    if isinstance(term, ox.NamedNode):
        return Iri(term.value)
    return Literal(term.value, term.datatype.value, term.language)


def rows_of(store: ox.Store, text: str, columns: tuple[str, ...]) -> set[tuple[Any, ...]]:
    result = store.query(text)
    if isinstance(result, ox.QueryBoolean):
        return {()} if result else set()
    names = [variable.value for variable in result.variables]
    return {tuple(cell(row[name]) if name in names else None for name in columns) for row in result}


def branch_rows(reading: RowReading, store: ox.Store, graph: Graph, columns: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """The rows of all branches: their uncertain patterns by the store, and completed by it."""
    core, found = CoreText(graph, reading.domains), set()
    for branch in reading.branches:
        candidates = rows_of(store, core.select(branch.variables, branch.conjunction), branch.variables)
        if candidates:
            found |= rows_of(store, write(completed(reading, branch, sorted(candidates, key=str))), columns)
    return found


@given(texts, stores())
@settings(max_examples=300)
def test_uncertain_patterns_completed_by_the_store_have_exactly_the_rows_of_the_text(
    names: Graph, text: str, store: ox.Store
) -> None:
    reading = reading_of(text, names)
    columns = projected(reading.select) if reading.select.projection else ()
    expected = rows_of(store, write(parse(text, Prefixes.of(names)).tree), columns)
    event(f"rows: {bool(expected)}")
    assert branch_rows(reading, store, names, columns) == expected
