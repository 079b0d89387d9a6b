"""The SPARQL endpoints over HTTP: formats, predictions after known rows, and limits."""

import csv
import io

import httpx
import pytest
from pyoxigraph import QueryResultsFormat, parse_query_results

EX = "http://example.org/"
FIRST = f"SELECT ?city {{ <{EX}person1> <{EX}livesIn> ?city }}"
PEOPLE = f"SELECT ?who {{ ?who <{EX}livesIn> <{EX}city1> }}"
TABLES = {
    "application/sparql-results+json": QueryResultsFormat.JSON,
    "application/sparql-results+xml": QueryResultsFormat.XML,
    "text/tab-separated-values": QueryResultsFormat.TSV,
}


def rows(answer: httpx.Response) -> list[dict[str, str]]:
    """The rows of an answer in JSON, by their values."""
    assert answer.status_code == 200, answer.text
    return [{name: cell["value"] for name, cell in row.items()} for row in answer.json()["results"]["bindings"]]


@pytest.mark.parametrize("media", TABLES)
def test_a_select_is_the_same_in_every_format(client, media):
    answer = client.get("/sparql", params={"query": PEOPLE}, headers={"Accept": media})
    assert answer.headers["content-type"].partition(";")[0] == media
    found = parse_query_results(answer.content, format=TABLES[media])
    names = {row["who"].value for row in found}
    assert names == {row["who"] for row in rows(client.get("/sparql", params={"query": PEOPLE}))}
    assert names


def test_csv_has_bare_values(client):
    answer = client.get("/sparql", params={"query": PEOPLE}, headers={"Accept": "text/csv"})
    table = list(csv.reader(io.StringIO(answer.text)))
    assert table[0] == ["who"]
    assert all(row[0].startswith(EX) for row in table[1:])


def test_known_answers_come_first_and_then_predicted_ones(client):
    answer = client.get("/sparql/predict", params={"query": PEOPLE, "top": 3})
    assert answer.json()["head"]["vars"] == ["who", "_score", "_confidence", "_source"]
    sources = [row["_source"] for row in rows(answer)]
    known = rows(client.get("/sparql", params={"query": PEOPLE}))
    assert sources == ["known"] * len(known) + ["predicted"] * 3
    assert [row["who"] for row in rows(answer)[: len(known)]] == [row["who"] for row in known]
    scores = [float(row["_score"]) for row in rows(answer)[len(known) :]]
    assert scores == sorted(scores, reverse=True)
    types = {row["_score"]["datatype"] for row in answer.json()["results"]["bindings"][len(known) :]}
    assert types == {"http://www.w3.org/2001/XMLSchema#double"}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (f"SELECT ?a ?b {{ ?a <{EX}livesIn> ?b }}", "Use the mode links"),
        (f"ASK {{ ?a <{EX}livesIn> ?b }}", "Use the mode links"),
        (f"SELECT ?a {{ ?a <{EX}livesIn> <{EX}nowhere> }}", "no entity"),
        ("SELECT * {}", "No predictions"),
        (f"SELECT * {{ <{EX}person1> <{EX}livesIn> <{EX}city1> }}", "No predictions"),
    ],
)
def test_what_cannot_be_predicted_is_answered_exactly_and_a_header_says_why(client, query, why):
    answer = client.get("/sparql/predict", params={"query": query})
    assert answer.status_code == 200
    assert why in answer.headers["x-halfgraph-note"]
    exact = client.get("/sparql", params={"query": query}).json()
    found = answer.json()
    if "boolean" in exact:
        assert found == exact
    else:
        assert len(found["results"]["bindings"]) == len(exact["results"]["bindings"])


def test_rows_beyond_the_limit_are_cut_and_a_header_says_so(client):
    answer = client.get("/sparql", params={"query": "SELECT * { ?s ?p ?o }"})
    assert len(rows(answer)) == 200
    assert "200" in answer.headers["x-halfgraph-cut"]
    assert answer.json()["head"]["vars"] == ["s", "p", "o"]
    assert "x-halfgraph-cut" not in client.get("/sparql", params={"query": FIRST}).headers
