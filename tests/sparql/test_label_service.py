"""The label service: labels of the graph itself, one row for each row of the pattern."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, Store

from halfgraph.errors import SparqlError
from halfgraph.sparql.label_service import with_labels
from halfgraph.sparql.mistakes import check_scope
from halfgraph.sparql.parse import parse
from halfgraph.sparql.prefixes import COMMON, Prefixes
from halfgraph.sparql.scanner import scan
from halfgraph.sparql.syntax_tree import Clause, Iri, walk
from halfgraph.sparql.unsupported import refuse_forbidden
from halfgraph.sparql.writer import write

PREFIXES = Prefixes({"": "http://h/", **COMMON}, "http://h/")
QUERIES = Path(__file__).parents[3] / "shared" / "data" / "sparql-queries" / "wikidata.jsonl.gz"
SERVICE = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "de,[AUTO_LANGUAGE]" }'
GRAPH = """
:a :p :b . :b :p :c . :c :p "five" . :a :q :c .
:a rdfs:label "Z"@en , "A"@en , "Zett"@de ; skos:altLabel "alias"@en ; schema:description "a letter"@de .
:b rdfs:label "Be"@fr , "B" . :c rdfs:label "C"@en .
"""


def store_of(turtle: str) -> Store:
    store = Store()
    store.update("PREFIX : <http://h/> " + _declared() + f"INSERT DATA {{ {turtle} }}")
    return store


def _declared() -> str:
    return "".join(f"PREFIX {prefix}: <{namespace}> " for prefix, namespace in COMMON.items())


def rows(store: Store, text: str) -> list[tuple[str | None, ...]]:
    """The rows of a query, each value as text."""
    result = store.query(write(with_labels(parse(text, PREFIXES).tree)))
    return [tuple(None if term is None else term.value.removeprefix("http://h/") for term in row) for row in result]  # type: ignore[union-attr]


def asked(text: str) -> list[tuple[str | None, ...]]:
    return sorted(rows(store_of(GRAPH), text.replace("SERVICE", SERVICE)), key=str)


def test_each_row_has_the_label_of_its_entity() -> None:
    expected = [("a", "Zett", "b", "B"), ("b", "B", "c", "C"), ("c", "C", "five", "five")]
    assert asked("SELECT ?x ?xLabel ?y ?yLabel { ?x :p ?y SERVICE }") == expected
    assert asked("SELECT ?x ?xLabel ?y ?yLabel { SERVICE ?x :p ?y }") == expected


def test_other_labels_and_descriptions_are_unbound_where_there_are_none() -> None:
    expected = [("a", "alias", "a letter"), ("b", None, None), ("c", None, None)]
    assert asked("SELECT ?x ?xAltLabel ?xDescription { ?x :p [] SERVICE }") == expected


def test_a_variable_that_is_unbound_has_no_label() -> None:
    expected = [("a", "c", "C"), ("b", None, None), ("c", None, None)]
    assert asked("SELECT ?x ?y ?yLabel { ?x :p [] OPTIONAL { ?x :q ?y } SERVICE }") == expected
    assert asked("SELECT ?yLabel { VALUES ?y { UNDEF :a } SERVICE }") == [("Zett",), (None,)]


def test_names_in_the_clause_replace_the_names_by_suffix() -> None:
    service = SERVICE.replace("}", ". ?x rdfs:label ?name . :b rdfs:label ?fixed }")
    text = f"SELECT ?x ?name ?fixed ?xLabel {{ ?x :q ?y {service} }}"
    assert rows(store_of(GRAPH), text) == [("a", "Zett", "B", None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ?x { ?x :p ?y SERVICE } ORDER BY DESC(?xLabel) LIMIT 1", [("a",)]),
        (
            "SELECT ?xLabel (COUNT(*) AS ?n) { ?x :p|:q [] SERVICE } GROUP BY ?xLabel HAVING(COUNT(*) > 1)",
            [("Zett", "2")],
        ),
        ("SELECT (SAMPLE(?xLabel) AS ?xLabel) { ?x :q ?y SERVICE } GROUP BY ?x", [("Zett",)]),
        ("SELECT (GROUP_CONCAT(?yLabel) AS ?all) { :a :q ?y SERVICE }", [("C",)]),
        ('SELECT ?x { ?x :p ?y SERVICE FILTER(?xLabel = "C"@en) }', [("c",)]),
        ("SELECT ?x ?t { ?x :p :b SERVICE BIND(CONCAT(STR(?xLabel), '!') AS ?t) }", [("a", "Zett!")]),
        ("SELECT ?pLabel { :a ?p :c SERVICE }", [("q",)]),
        ("SELECT ?xLabel { { SELECT ?x ?xLabel { ?x :q ?y SERVICE } } }", [("Zett",)]),
        ("SELECT ?xLabel { { ?x :q :c SERVICE } UNION { ?x :p :c SERVICE } }", [("B",), ("Zett",)]),
        ("SELECT ?xLabel { { SELECT * { ?x :q ?y SERVICE } } }", [("Zett",)]),
        ("SELECT ?xLabel { ?x :q ?y ; rdfs:label ?xLabel SERVICE }", [("A",), ("Z",), ("Zett",)]),
        ("SELECT ?x { ?x :p [] FILTER EXISTS { ?x :p ?y SERVICE FILTER(STR(?yLabel) = 'B') } }", [("a",)]),
        (
            "SELECT ?xLabel { ?x :p [] FILTER NOT EXISTS { ?x rdfs:label ?xLabel, 'Zett'@de } SERVICE }",
            [("B",), ("C",)],
        ),
        ("SELECT ?xLabel { ?x :p [] MINUS { ?x rdfs:label ?xLabel, 'Zett'@de } SERVICE }", [("B",), ("C",)]),
        ('SELECT * { ?x :q ?y SERVICE FILTER(?yLabel = "C"@en) }', [("a", "c", "C")]),
    ],
)
def test_a_label_can_stand_wherever_the_query_uses_it(text: str, expected: list[tuple[str]]) -> None:
    assert asked(text) == expected


def test_other_forms_have_labels_too() -> None:
    store = store_of(GRAPH)
    tree = with_labels(parse(f"CONSTRUCT {{ ?x :name ?xLabel }} {{ ?x :q ?y {SERVICE} }}", PREFIXES).tree)
    assert [str(triple.object) for triple in store.query(write(tree))] == ['"Zett"@de']  # type: ignore[union-attr]
    tree = with_labels(parse(f"ASK {{ ?x :q ?y {SERVICE} FILTER(STR(?xLabel) = 'Zett') }}", PREFIXES).tree)
    assert bool(store.query(write(tree)))


@pytest.mark.parametrize(
    ("languages", "expected"),
    [("", "A"), ('"fr"', "plain"), ('"fr, DE-at"', "Ä"), ('"mul"', "M"), ('"fr,mul,en"', "M"), ('"fr" , "en"', "A")],
)
def test_the_first_language_of_the_list_wins_then_a_label_without_one(languages: str, expected: str) -> None:
    store = store_of(':a :p :b ; rdfs:label "A"@en , "Ä"@de-AT , "M"@mul , "plain" .')
    parameters = languages and f"bd:serviceParam wikibase:language {languages}"
    assert rows(store, f"SELECT ?xLabel {{ ?x :p [] SERVICE wikibase:label {{ {parameters} }} }}") == [(expected,)]


def test_an_iri_without_a_label_has_its_local_name() -> None:
    iris = {"http://e/a/Q42": "Q42", "http://e/x#y": "y", "http://e/a/": "a", "urn:a": "urn:a"}
    for iri, name in iris.items():
        assert rows(Store(), f"SELECT ?xLabel {{ BIND(<{iri}> AS ?x) {SERVICE} }}") == [(name,)]


def test_every_other_service_stays() -> None:
    other = "SERVICE <http://elsewhere/> { ?x ?p ?y }"
    stranger = SERVICE.replace("}", ". ?x :p ?y }")
    for text in (f"SELECT ?x {{ {SERVICE} {other} }}", f"SELECT ?x {{ {stranger} }}"):
        request = parse(text, PREFIXES)
        with pytest.raises(SparqlError, match="SERVICE is refused"):
            refuse_forbidden(with_labels(request.tree), request.source)


def test_a_request_without_the_service_stays_as_it_is() -> None:
    tree = parse("SELECT ?x ?xLabel { ?x :p ?y }", PREFIXES).tree
    assert with_labels(tree) is tree


NODES = [NamedNode(f"http://h/{name}") for name in "abc"]
TERMS = [*NODES, Literal("text"), Literal("text", language="en")]
LANGUAGES = [None, "en", "de", "fr"]
links = st.tuples(st.sampled_from(NODES), st.just(NamedNode("http://h/p")), st.sampled_from(TERMS))
labels = st.tuples(
    st.sampled_from(NODES),
    st.just(NamedNode(COMMON["rdfs"] + "label")),
    st.builds(
        lambda value, language: Literal(value, language=language) if language else Literal(value),
        st.sampled_from("xyz"),
        st.sampled_from(LANGUAGES),
    ),
)


def label_of(store: Store, term: object) -> object:
    """The label of a term, by the service's rules written out."""
    if not isinstance(term, NamedNode):
        return None if term is None else Literal(term.value)  # type: ignore[attr-defined]
    found = [quad.object for quad in store.quads_for_pattern(term, NamedNode(COMMON["rdfs"] + "label"), None)]
    for language in ("de", "en", None):
        values = sorted((one for one in found if one.language == language), key=lambda one: one.value)  # type: ignore[union-attr]
        if values:
            return values[0]
    return Literal(term.value.rpartition("/")[2])


@given(st.lists(st.one_of(links, labels), max_size=12), st.booleans())
def test_rows_are_those_without_the_service_with_labels_added(statements: list, optional: bool) -> None:
    store = Store()
    store.extend(Quad(*statement) for statement in statements)
    pattern = f"?x :p ?y {'OPTIONAL { ?y :p ?z }' if optional else '. ?y :p ?z'}"
    plain = store.query(write(parse(f"SELECT ?x ?y ?z {{ {pattern} }}", PREFIXES).tree))
    text = f"SELECT ?x ?y ?z ?xLabel ?yLabel ?zLabel {{ {pattern} {SERVICE} }}"
    labelled = store.query(write(with_labels(parse(text, PREFIXES).tree)))
    expected = [(*row, *(label_of(store, term) for term in row)) for row in plain]  # type: ignore[union-attr]
    assert Counter(tuple(row) for row in labelled) == Counter(expected)  # type: ignore[union-attr]


@pytest.mark.skipif(not QUERIES.is_file(), reason=f"{QUERIES} is not there")
def test_the_queries_of_wikidatas_users_are_not_refused_for_their_labels() -> None:
    answerable = 0
    with gzip.open(QUERIES, "rt") as lines:
        for line in lines:
            text = json.loads(line)["query"]
            try:
                tree = parse(text, PREFIXES).tree
            except SparqlError:
                continue  # not SPARQL 1.1
            rewritten = with_labels(tree)
            services = [node for node in walk(rewritten) if isinstance(node, Clause) and node.keyword == "SERVICE"]
            assert Iri("http://wikiba.se/ontology#label") not in [node.name for node in services]
            check_scope(write(rewritten), scan(text, PREFIXES))
            answerable += rewritten is not tree and not services
    assert answerable > 1_000
