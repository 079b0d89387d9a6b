"""The law of row readings: uncertain patterns and the rest together are the text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import pyoxigraph as ox
import pytest
from hypothesis import assume, event, given, reject, settings

from halfgraph.errors import SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.query.rows import Given
from halfgraph.sparql import row_reading
from halfgraph.sparql.parse import Request, parse
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.row_completion import completed, known_rows
from halfgraph.sparql.row_reading import RowReading, read_rows
from halfgraph.sparql.scopes import projected, scope_of
from halfgraph.sparql.syntax_tree import Exists, Group, Iri, Literal, Variable, walk
from halfgraph.sparql.writer import write
from sparql.core_text import CoreText
from sparql_row_texts import RDF_TYPE, SUBCLASS, names_graph, stores, texts

ONE = Literal("1", "http://www.w3.org/2001/XMLSchema#integer")


@pytest.fixture(scope="module")
def names() -> Iterator[Graph]:
    with names_graph() as graph:
        yield graph


def parsed(text: str, graph: Graph) -> Request:
    try:
        return parse(text, Prefixes.of(graph))
    except SparqlError:
        reject()


def reading_of(text: str, graph: Graph) -> RowReading:
    """The reading of a text, with the branches that have nothing uncertain."""
    with patch.object(row_reading, "is_uncertain", lambda _: True):
        return read_rows(parsed(text, graph), graph)


def is_well_scoped(node: Any) -> bool:
    """Whether variables of EXISTS that its group does not bind are used nowhere else: the store binds them anyway."""
    used = Counter(part.name for part in walk(node) if isinstance(part, Variable))
    for group in (part for part in walk(node) if isinstance(part, Group)):
        for exists in (part for part in walk(group) if isinstance(part, Exists)):
            inside = Counter(part.name for part in walk(exists) if isinstance(part, Variable))
            if any(used[name] > inside[name] for name in inside.keys() - scope_of(group).certain):
                return False
    return True


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
        # Given values leave out names that the graph does not have, which the store may have.
        patterns = tuple(pattern for pattern in branch.conjunction if not isinstance(pattern, Given))
        candidates = rows_of(store, core.select(branch.variables, patterns), branch.variables)
        if candidates:
            found |= rows_of(store, write(completed(reading, branch, sorted(candidates, key=str))), columns)
    return found


@given(texts, stores())
@settings(max_examples=200)
def test_uncertain_patterns_completed_by_the_store_have_exactly_the_rows_of_the_text(
    names: Graph, text: str, store: ox.Store
) -> None:
    assume(is_well_scoped(parsed(text, names).tree))
    event(f"rows: {bool(check(text, store, names))}")


def check(text: str, store: ox.Store, graph: Graph) -> set[tuple[Any, ...]]:
    """Return the rows of a text, which are those of its branches."""
    reading = reading_of(text, graph)
    columns = projected(reading.select) if reading.select.projection else ()
    expected = rows_of(store, write(parsed(text, graph).tree), columns)
    assert branch_rows(reading, store, graph, columns) == expected
    return expected


# Texts in which the order of elements, or the group they are in, matters.
ORDERED = [
    "OPTIONAL { ?a :label ?l } ?a :r0 ?b",
    "OPTIONAL { ?a :r1 ?b } ?b :r0 ?c",
    "?a :r0 ?b OPTIONAL { ?b :r1 ?c } ?c :r0 ?d",
    "?a :r0 ?b OPTIONAL { ?b :size ?n FILTER(?c = :e0) } ?a :r1 ?c",
    "?a :r0 ?b MINUS { ?b :r1 ?c } ?b :r1 ?c",
    "?a :r0 ?b MINUS { ?c :r1 :e0 } ?c :r1 ?a",
    "?a :r0 ?b MINUS { { ?a :r1 ?b } UNION { :e0 :r0 ?x } }",
    "MINUS { ?a :r0 ?b } ?a :r0 ?b",
    "?a :r0 ?b BIND(BOUND(?c) AS ?x) ?b :r1 ?c",
    "BIND(:e0 AS ?a) ?a :r0 ?b",
    "?a :label ?l BIND(?l + 1 AS ?n) ?a :r0 ?b",
    "?a :r0 ?b { ?b :label ?l FILTER(!BOUND(?a)) }",
    "?a :r0 ?b { ?b :r1 ?c FILTER(!BOUND(?a)) }",
    "?a :r0 ?b { ?b :r1 ?c FILTER(?a = :e0) }",
    "?a :r0 ?b { ?b :r1 ?c OPTIONAL { ?a :label ?l } }",
    "?a :r0 ?b { ?b :r1 ?c BIND(BOUND(?a) AS ?x) }",
    "?a :r0 ?b { ?b :r1 ?c MINUS { ?a :r0 :e1 } }",
    "?a :r0 ?b FILTER NOT EXISTS { ?b :r1 ?c }",
    "?a :r0 ?b { FILTER NOT EXISTS { ?x :r1 ?c } ?b :r0 ?x } ?b :r1 ?c",
    "?a :r0 ?b OPTIONAL { ?b :r1 ?c } FILTER NOT EXISTS { ?c :r0 ?a }",
    "?a :r0 ?b OPTIONAL { ?b :label ?c } FILTER EXISTS { ?c :r0 ?a }",
    "?a :r0 ?b FILTER EXISTS { ?b :r1 ?c } OPTIONAL { ?b :label ?c }",
    "?a :r0 ?b FILTER EXISTS { ?b :r1 ?c . ?c :label ?l }",
    "?a :r0 ?b FILTER(! EXISTS { ?b :r1 :e0 })",
    "?a :r0 ?b { SELECT ?b { ?b :r1 ?a } }",
    "?a :r0 ?b { SELECT ?b { ?b :r1 ?a } LIMIT 1 }",
    "?a :r0 ?b { SELECT ?b (COUNT(*) AS ?n) { ?b :r1 ?x } GROUP BY ?b }",
    "?a :r0 ?b { SELECT ?b (?a AS ?x) { ?b :r1 ?a FILTER(?a != :e0) } }",
    "?a :r0 ?b { SELECT ?b (1 AS ?x) { ?b :r1 ?c } } OPTIONAL { ?b :label ?c }",
    "{ ?a :r0 ?b } UNION { ?a :label ?l } OPTIONAL { ?a :r1 ?b }",
    "?a :r0 ?b VALUES (?a ?l) { (:e0 UNDEF) (UNDEF 1) } OPTIONAL { ?b :label ?l }",
    "?a ?p ?b . ?p :label ?l",
    "?a ?p ?b . ?p :r0 ?c",
    "?a ?p ?b VALUES ?p { :r0 :label }",
    "?a a ?t . ?t rdfs:subClassOf* :C1",
    "?a a/rdfs:subClassOf* ?t VALUES ?t { :C1 }",
    "?a :r0/a ?t . ?a (:r0|:label|a) ?x",
    "?a :r0/:label ?l . ?a (^:r1/(:r0|:r1))+ ?b",
    "?a !(:r0|^:r1) ?b . ?a !:r1 ?c",
    "?a :r0 [ :r1 ?b ; :label ?l ] . ?b :r0* ?a",
]


def dense_store() -> ox.Store:
    """A store in which most texts have rows."""
    store, base = ox.Store(), "http://halfgraph.local/"
    links = "e0 r0 e1|e1 r0 e2|e2 r0 e2|e0 r1 e2|e1 r1 e0|e2 r1 e1|e1 r1 e2|e0 r0 e0|C0 r0 e1|r0 r0 e1"
    store.extend(ox.Quad(*(ox.NamedNode(base + name) for name in link.split())) for link in links.split("|"))
    for name, what, value in [("e0", "label", 1), ("e1", "size", 2), ("r0", "label", 3), ("e2", "label", 1)]:
        store.add(ox.Quad(ox.NamedNode(base + name), ox.NamedNode(base + what), ox.Literal(value)))
    for name, class_ in [("e0", "C0"), ("e1", "C1"), ("e1", "C0")]:
        store.add(ox.Quad(ox.NamedNode(base + name), RDF_TYPE, ox.NamedNode(base + class_)))
    store.add(ox.Quad(ox.NamedNode(base + "C0"), SUBCLASS, ox.NamedNode(base + "C1")))
    return store


@pytest.mark.parametrize("pattern", ORDERED)
def test_the_order_and_the_groups_of_a_text_keep_their_meaning(names: Graph, pattern: str) -> None:
    for head in ("SELECT *", "SELECT ?a", "ASK"):
        check(f"{head} {{ {pattern} }}", dense_store(), names)


def test_most_of_these_texts_have_rows(names: Graph) -> None:
    store = dense_store()
    assert sum(bool(check(f"SELECT * {{ {pattern} }}", store, names)) for pattern in ORDERED) > 0.7 * len(ORDERED)


@given(texts, stores())
def test_known_rows_are_those_that_the_store_returns_for_them(names: Graph, text: str, store: ox.Store) -> None:
    reading = reading_of(text, names)
    columns = projected(reading.select) if reading.select.projection else ()
    expected = sorted(rows_of(store, write(parsed(text, names).tree), columns), key=str)
    some: Sequence[tuple[Any, ...]] = expected[::2]
    found = rows_of(store, write(known_rows(reading, some)), columns) if some else set()
    assert set(some) <= found <= set(expected)


def test_a_known_row_is_asked_for_by_its_certain_columns(names: Graph) -> None:
    reading = reading_of("SELECT ?a ?l { ?a :r0 ?b OPTIONAL { ?a :label ?l } }", names)
    asked = known_rows(reading, [(Iri("http://halfgraph.local/e0"), None)])
    assert write(asked.where).startswith("{ VALUES ?a { <http://halfgraph.local/e0> } ")
    assert rows_of(dense_store(), write(asked), ("a", "l")) == {(Iri("http://halfgraph.local/e0"), ONE)}
