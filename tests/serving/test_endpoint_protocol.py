"""W3C's SPARQL 1.1 Protocol tests for queries, each written from its description in the manifest, by its name.

https://www.w3.org/2009/sparql/docs/tests/data-sparql11/protocol/manifest.ttl
"""

from urllib.parse import quote, urlencode

import httpx
import pytest
from pyoxigraph import QueryResultsFormat, RdfFormat, parse, parse_query_results

EX = "http://example.org/"
ASK = "ASK {}"
FORM, DIRECT = "application/x-www-form-urlencoded", "application/sparql-query"
GRAPHS = ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json")
TITLES = "SELECT ?title { ?book <http://example.org/title> ?title }"
FROM_BOTH = f"ASK {{ <{EX}book1> <{EX}title> 'Book 1' . <{EX}book2> <{EX}title> 'Book 2' }}"
BOTH = [("default-graph-uri", f"{EX}graph1"), ("default-graph-uri", f"{EX}graph2")]
NAMED = [("named-graph-uri", f"{EX}graph1"), ("named-graph-uri", f"{EX}graph2")]
IN_NAMED = f"ASK {{ GRAPH ?a {{ <{EX}book1> ?p ?o }} GRAPH ?b {{ <{EX}book2> ?q ?r }} }}"
FULL = f"""ASK {{
    <{EX}book1> ?x ?y . GRAPH <{EX}graph2> {{ <{EX}book2> ?p ?o }} FILTER NOT EXISTS {{ <{EX}book2> ?s ?t }}
}}"""


def post(client: httpx.Client, body: str | bytes, media: str | None, address: str = "/sparql") -> httpx.Response:
    """The answer to a POST."""
    return client.post(address, content=body, headers={} if media is None else {"Content-Type": media})


def yes(answer: httpx.Response) -> bool:
    """The answer to an ASK."""
    assert answer.status_code == 200, answer.text
    form = QueryResultsFormat.from_media_type(answer.headers["content-type"])
    assert form is not None
    return bool(parse_query_results(answer.content, format=form))


def refused(answer: httpx.Response, status: int) -> None:
    """Assert that the answer is an error with the common body."""
    assert answer.status_code == status, answer.text
    assert set(answer.json()["error"]) == {"message", "line", "column", "nearest", "advice"}


def test_query_get(client):
    assert yes(client.get("/sparql", params={"query": ASK}))


def test_query_post_form(client):
    assert yes(post(client, urlencode({"query": ASK}), FORM))


def test_query_post_direct(client):
    assert yes(post(client, ASK, DIRECT))


def test_query_dataset_default_graph(client):
    one = [("default-graph-uri", f"{EX}graph1")]
    answer = client.get("/sparql", params=[("query", TITLES), *one], headers={"Accept": "text/csv"})
    assert answer.text.split("\r\n")[1:] == ["Book 1", ""]


def test_query_dataset_default_graphs_get(client):
    assert yes(client.get("/sparql", params=[("query", FROM_BOTH), *BOTH]))
    assert not yes(client.get("/sparql", params=[("query", FROM_BOTH), BOTH[0]]))


def test_query_dataset_default_graphs_post(client):
    assert yes(post(client, FROM_BOTH, DIRECT, f"/sparql?{urlencode(BOTH)}"))
    assert yes(post(client, urlencode([("query", FROM_BOTH), *BOTH]), FORM))


def test_query_dataset_named_graphs_get(client):
    assert yes(client.get("/sparql", params=[("query", IN_NAMED), *NAMED]))
    assert not yes(client.get("/sparql", params=[("query", IN_NAMED), NAMED[0]]))


def test_query_dataset_named_graphs_post(client):
    assert yes(post(client, IN_NAMED, DIRECT, f"/sparql?{urlencode(NAMED)}"))


def test_query_dataset_full(client):
    assert yes(client.get("/sparql", params=[("query", FULL), BOTH[0], NAMED[1]]))


def test_query_multiple_dataset(client):
    """The protocol's graphs take the place of those in the query."""
    text = TITLES.replace("{", f"FROM <{EX}graph1> {{", 1)
    answer = client.get("/sparql", params=[("query", text), BOTH[1]], headers={"Accept": "text/csv"})
    assert answer.text.split("\r\n")[1:] == ["Book 2", ""]


@pytest.mark.parametrize("method", ["get", "post"])
def test_query_content_type_select(client, method):
    given = {"params": {"query": TITLES}} if method == "get" else {"data": {"query": TITLES}}
    answer = getattr(client, method)("/sparql", **given)
    assert answer.headers["content-type"] == "application/sparql-results+json"
    assert len(list(parse_query_results(answer.content, format=QueryResultsFormat.JSON))) == 2


def test_query_content_type_ask(client):
    answer = post(client, ASK, DIRECT)
    assert answer.headers["content-type"] == "application/sparql-results+json"


@pytest.mark.parametrize("query", [f"DESCRIBE <{EX}city1>", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 5"])
@pytest.mark.parametrize("media", ["", *GRAPHS])
def test_query_content_type_describe_and_construct(client, query, media):
    answer = client.get("/sparql", params={"query": query}, headers={"Accept": media} if media else {})
    assert answer.headers["content-type"].partition(";")[0] == (media or "text/turtle")
    form = RdfFormat.from_media_type(answer.headers["content-type"])
    assert form is not None
    assert list(parse(answer.content, format=form))


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_bad_query_method(client, method):
    answer = client.request(method, "/sparql", params={"query": ASK})
    refused(answer, 405)
    assert "GET" in answer.headers["allow"]


def test_bad_multiple_queries(client):
    refused(client.get("/sparql", params=[("query", ASK), ("query", "SELECT * {}")]), 400)
    refused(post(client, urlencode([("query", ASK), ("query", ASK)]), FORM), 400)
    refused(post(client, urlencode({"query": ASK}), FORM, f"/sparql?query={quote(ASK)}"), 400)
    refused(post(client, ASK, DIRECT, f"/sparql?query={quote(ASK)}"), 400)


def test_bad_query_wrong_media_type(client):
    refused(post(client, ASK, "text/plain"), 415)


def test_bad_query_missing_form_type(client):
    refused(post(client, urlencode({"query": ASK}), None), 415)


def test_bad_query_missing_direct_type(client):
    refused(post(client, ASK, None), 415)


def test_bad_query_non_utf8(client):
    refused(post(client, ASK.encode("utf-16"), f"{DIRECT}; charset=utf-16"), 400)
    refused(client.get("/sparql?query=ASK%20%7B%FF%7D"), 400)


def test_bad_query_syntax(client):
    answer = client.get("/sparql", params={"query": "SELECT ?x\nWHERE { ?x ?y }"})
    refused(answer, 400)
    assert (answer.json()["error"]["line"], answer.json()["error"]["column"]) == (2, 15)


def test_a_post_without_a_query_is_refused(client):
    refused(post(client, "", FORM), 400)


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { <a:a> <a:b> <a:c> }",
        "DROP ALL",
        "LOAD <file:///etc/passwd>",
        "LOAD <a:a> INTO GRAPH <a:b>",
        "CLEAR SILENT GRAPH <a:g>",
        "PREFIX a: <a:> DELETE WHERE { ?s ?p ?o }",
        "DROP this is not SPARQL",
    ],
)
def test_updates_are_refused(client, update):
    refused(post(client, update, "application/sparql-update"), 403)
    refused(post(client, urlencode({"update": update}), FORM), 403)
    refused(post(client, update, DIRECT), 403)
    refused(client.get("/sparql", params={"query": update}), 403)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { service silent ?where { ?s ?p ?o } }",
        "ASK { FILTER(1 < 2&&3>2)SERVICE<http://127.0.0.1:1/>{} }",
        "SELECT * { { SELECT * { OPTIONAL { SERVICE <http://127.0.0.1:1/> {} } } } }",
        "DESCRIBE ?s { FILTER EXISTS { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } } }",
    ],
)
@pytest.mark.parametrize("address", ["/sparql", "/sparql/predict"])
def test_calls_to_other_servers_are_refused(client, text, address):
    refused(client.get(address, params={"query": text}), 403)


def test_the_word_service_in_a_name_or_a_literal_is_no_call(client):
    assert not yes(client.get("/sparql", params={"query": "ASK { ?service :service 'SERVICE <x> {' } # SERVICE"}))


@pytest.mark.parametrize(
    ("path", "text", "accept", "status"),
    [
        ("/api/ask", "SELECT * {} VALUES ?x {}", "*/*", 200),
        ("/api/ask", "SELECT ?x { ?x ?p ?y FILTER(?x IN ()) }", "*/*", 200),
        (
            "/api/ask",
            "SELECT ?x { ?x <http://example.org/livesIn> <http://example.org/city1> FILTER(?x IN ()) }",
            "*/*",
            200,
        ),
        ("/sparql/predict", "SELECT ?_source { ?_source ?p ?o }", "text/csv", 400),
        ("/sparql", "BASE <ht(tp://example.org/> ASK { <a> <b> <c> }", "*/*", 400),
        ("/sparql", "CONSTRUCT { <a:a> <a:b> <<( <a:a> <a:b> <a:c> )>> } {}", "application/ld+json", 406),
    ],
)
def test_texts_that_a_generator_has_found_are_no_bugs(client, path, text, accept, status):
    assert client.get(path, params={"query": text}, headers={"Accept": accept}).status_code == status
