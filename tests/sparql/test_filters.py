"""Tests of literals: what the store lets pass, and what is asked of it."""

import numpy as np
import pytest

from halfgraph.errors import SparqlError
from halfgraph.graph.folder import Graph
from halfgraph.graph.store import open_store
from halfgraph.query.exact import Exact
from halfgraph.sparql.filters import passes_filters
from halfgraph.sparql.read import read
from halfgraph.sparql.syntax_tree import Select
from halfgraph.sparql.writer import write
from imported_graphs import made
from sparql_reading import asking, refusal

TOWNS = """
@prefix : <http://t/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Rome :in :Italy ; :population 2800000 ; rdfs:label "Rome"@en , "Roma"@it ; :founded "-0753-04-21"^^xsd:date .
:Bari :in :Italy ; :population 320000 ; :height -1.5 ; rdfs:label "Bari"@it ; :twin :Rome .
:Pisa :in :Italy ; :population 90000 ; :closed "1406-10-09"^^xsd:date ; :twin :Lyon .
:Lyon :in :France ; :population 520000 ; rdfs:label "Lyon"@fr ; :twin :Rome .
_:camp :in :Italy ; :population 5 .
"""


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return made(tmp_path_factory.mktemp("towns"), TOWNS, ending="ttl")


def town(graph: Graph, text: str) -> list[str]:
    """The exact answers that pass, by their last names."""
    reading = read(text, graph)
    found = Exact(graph.whole).answers(reading.query)
    kept = found[passes_filters(asking(open_store(graph)), reading.conditions, reading.target, graph, found)]
    return sorted(graph.entities.name(int(entity)).rpartition("/")[2] for entity in kept)


IN_ITALY = "SELECT ?x { ?x :in :Italy"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{IN_ITALY} ; :population ?p FILTER(?p > 100000) }}", ["Bari", "Rome"]),
        (f"{IN_ITALY} ; :population ?p . FILTER(?p > 100000 && ?x != :Rome) }}", ["Bari"]),
        (f"{IN_ITALY} ; :population 320000 }}", ["Bari"]),
        (f"{IN_ITALY} ; :height -1.5 }}", ["Bari"]),
        (f"{IN_ITALY} ; :height ?h FILTER(?h < -1 && ?h+1 = -0.5) }}", ["Bari"]),
        (f"{IN_ITALY} ; :height ?h FILTER(xsd:integer(?h) = -1) }}", ["Bari"]),
        (f"{IN_ITALY} ; rdfs:label 'Rome'@en }}", ["Rome"]),
        (f"{IN_ITALY} ; rdfs:label ?l FILTER(LANG(?l) = 'it') }}", ["Bari", "Rome"]),
        (f"{IN_ITALY} ; rdfs:label ?l FILTER REGEX(?l, '^r', 'i') }}", ["Rome"]),
        (f"{IN_ITALY} ; :founded ?d FILTER(?d < '0001-01-01'^^xsd:date) }}", ["Rome"]),
        (f"{IN_ITALY} FILTER NOT EXISTS {{ ?x :closed ?d }} FILTER(ISIRI(?x)) }}", ["Bari", "Rome"]),
        (f"{IN_ITALY} MINUS {{ ?x :closed ?d }} FILTER(ISIRI(?x)) }}", ["Bari", "Rome"]),
        (f"{IN_ITALY} MINUS {{ ?x :closed ?p }} ?x :population ?p FILTER(?p > 9) }}", ["Bari", "Rome"]),
        (f"{IN_ITALY} FILTER(STRLEN(STR(?x)) > 0 && ?x NOT IN (:Rome, :Bari)) }}", ["Pisa"]),
        (f"{IN_ITALY} FILTER(?x = :Rome || ?x = :Lyon) }}", ["Rome"]),
        (
            "SELECT ?x { { ?x :in :Italy } UNION { ?x :twin :Rome } ?x :population ?p FILTER(?p > 400000) }",
            ["Lyon", "Rome"],
        ),
        ("SELECT ?x { ?x :in|:twin :Italy , :Italy FILTER(ISIRI(?x)) }", ["Bari", "Pisa", "Rome"]),
    ],
)
def test_literals_are_tested_as_the_store_does(towns: Graph, text: str, expected: list[str]) -> None:
    assert town(towns, text) == expected
    prefixes = {
        "": "http://t/",
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
    }
    rows = open_store(towns).query(text, prefixes=prefixes)
    assert sorted({row["x"].value.rpartition("/")[2] for row in rows}) == expected  # type: ignore[union-attr,index]


def test_nothing_is_asked_where_nothing_is_restricted(towns: Graph) -> None:
    def never(query: Select) -> list[str]:
        raise AssertionError(query)

    reading = read("SELECT ?x { ?x :in :Italy }", towns)
    assert passes_filters(never, reading.conditions, reading.target, towns, [0, 1]).tolist() == [True, True]


def test_entities_are_asked_about_by_the_thousand(towns: Graph) -> None:
    asked = []
    reading = read(f"{IN_ITALY} ; :population ?p FILTER(?p > 100000) }}", towns)
    rome = next(number for number, name in enumerate(towns.entities.names) if name.endswith("Rome"))

    def ask(query: Select) -> list[str]:
        asked.append(write(query))
        return ["http://t/Rome"]

    found = passes_filters(ask, reading.tests, reading.target, towns, np.full(2_500, rome))
    assert found.shape == (2_500,)
    assert found.all()
    assert len(asked) == 3
    assert asked[0].count("<http://t/Rome>") == 1_000


def test_a_blank_node_is_not_let_pass(towns: Graph) -> None:
    assert "camp" not in " ".join(town(towns, f"{IN_ITALY} ; :population ?p FILTER(?p > 0) }}"))
    assert len(town(towns, "SELECT ?x { ?x :in :Italy }")) == 4


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("SELECT ?x { :Rome ^:twin ?y . ?y :in ?x ; :population ?p FILTER(?p > 5) }", "FILTER"),
        ("SELECT ?x { ?x :in :Italy ; :twin ?y . ?y :in :France FILTER(?x != ?y) }", "FILTER"),
        ("SELECT ?x { ?x :in :Italy ; :population ?p FILTER(?p > '5'^^:people) }", "literal type"),
        ("SELECT ?x { ?x :in 'Italy' }", "literal"),
        ("SELECT ?x { ?x :twin ?y . ?y :in :France FILTER NOT EXISTS { ?x :in ?y } }", "negation"),
        ("SELECT ?x { { ?x :in :Italy ; :population ?p FILTER(?p > 5) } UNION { ?x :twin :Rome } }", "FILTER"),
    ],
)
def test_what_cannot_be_tested_is_refused(towns: Graph, text: str, feature: str) -> None:
    error = refusal(text, towns)
    assert isinstance(error, SparqlError)
    assert error.feature == feature
