"""Programs that people have: SPARQLWrapper, rdflib's SPARQLStore, and pandas read both endpoints."""

import io
import warnings

import httpx
import pandas
import pytest
import rdflib
from pyoxigraph import Store
from rdflib.plugins.stores.sparqlstore import SPARQLStore

EX = "http://example.org/"
PEOPLE = f"SELECT ?who {{ ?who <{EX}livesIn> <{EX}city1> }}"


@pytest.fixture
def wrapper(server):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        from SPARQLWrapper import SPARQLWrapper

    return lambda path: SPARQLWrapper(server.address + path)


@pytest.fixture(scope="module")
def known(client) -> set[str]:
    rows = client.get("/sparql", params={"query": PEOPLE}).json()["results"]["bindings"]
    return {row["who"]["value"] for row in rows}


@pytest.mark.parametrize("form", ["json", "xml", "csv", "tsv"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_sparqlwrapper_reads_rows(wrapper, known, form, method):
    asking = wrapper("/sparql")
    asking.setQuery(PEOPLE)
    asking.setMethod(method)
    asking.setReturnFormat(form)
    found = asking.query().convert()
    if form == "json":
        assert {row["who"]["value"] for row in found["results"]["bindings"]} == known
    elif form == "xml":
        assert {node.firstChild.data for node in found.getElementsByTagName("uri")} == known
    else:
        text = found.decode()
        assert all(name in text for name in known)


def test_sparqlwrapper_posts_directly_asks_and_constructs(wrapper):
    from SPARQLWrapper import JSON, POST, POSTDIRECTLY, TURTLE

    asking = wrapper("/sparql")
    asking.setMethod(POST)
    asking.setRequestMethod(POSTDIRECTLY)
    asking.setQuery("ASK { ?s ?p ?o }")
    asking.setReturnFormat(JSON)
    assert asking.query().convert()["boolean"] is True
    asking.setQuery(f"CONSTRUCT {{ ?s ?p ?o }} {{ <{EX}person1> ?p ?o . ?s ?p ?o }} LIMIT 3")
    asking.setReturnFormat(TURTLE)
    assert len(rdflib.Graph().parse(data=asking.query().convert(), format="turtle")) == 3


def test_sparqlwrapper_reads_predictions(wrapper, known):
    asking = wrapper("/sparql/predict")
    asking.setQuery(PEOPLE)
    asking.addParameter("top", "2")
    asking.setReturnFormat("json")
    rows = asking.query().convert()["results"]["bindings"]
    assert [row["_source"]["value"] for row in rows] == ["known"] * len(known) + ["predicted"] * 2


def test_sparqlwrapper_reports_a_syntax_error(wrapper):
    from SPARQLWrapper.SPARQLExceptions import QueryBadFormed

    asking = wrapper("/sparql")
    asking.setQuery("SELECT ?x { ?x ?y }")
    with pytest.raises(QueryBadFormed, match="column"):
        asking.query()


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
def test_rdflib_reads_rows_terms_and_graphs(server, known, method):
    graph = rdflib.Graph(SPARQLStore(f"{server.address}/sparql", method=method))
    assert {str(row.who) for row in graph.query(PEOPLE)} == known
    age = graph.value(rdflib.URIRef(f"{EX}person3"), rdflib.URIRef(f"{EX}age"))
    assert age is not None
    assert age.toPython() == 23
    assert graph.query("ASK {}").askAnswer is True
    labels = list(graph.objects(rdflib.URIRef(f"{EX}person3"), rdflib.RDFS.label))
    assert labels == [rdflib.Literal("Pérson 3 Müller", lang="en")]


def test_pandas_reads_known_and_predicted_rows(server, known):
    answer = httpx.get(
        f"{server.address}/sparql/predict", params={"query": PEOPLE, "top": 5}, headers={"Accept": "text/csv"}
    )
    table = pandas.read_csv(io.StringIO(answer.text))
    assert list(table.columns) == ["who", "_score", "_confidence", "_source"]
    assert set(table[table._source == "known"].who) == known
    assert table[table._source == "predicted"]._score.is_monotonic_decreasing


@pytest.mark.parametrize(("path", "more"), [("/sparql", 0), ("/sparql/predict", 10)])
def test_another_store_calls_both_endpoints_as_a_service(server, known, path, more):
    text = f"SELECT ?who {{ SERVICE <{server.address}{path}> {{ ?who <{EX}livesIn> <{EX}city1> }} }}"
    found = [row["who"].value for row in Store().query(text)]
    assert set(found) >= known
    assert len(found) == len(known) + more


def test_the_service_description_is_rdf_with_counts(server, client):
    found = rdflib.Graph().parse(data=client.get("/sparql").text, format="turtle")
    sd = rdflib.Namespace("http://www.w3.org/ns/sparql-service-description#")
    void = rdflib.Namespace("http://rdfs.org/ns/void#")
    service = found.value(predicate=rdflib.RDF.type, object=sd.Service)
    assert found.value(service, sd.endpoint) == rdflib.URIRef(f"{server.address}/sparql")
    counted = found.value(predicate=rdflib.RDF.type, object=sd.Graph)
    total = client.get("/sparql", params={"query": "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"}).json()
    in_graphs = client.get("/sparql", params={"query": "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }"}).json()
    number = sum(int(one["results"]["bindings"][0]["n"]["value"]) for one in (total, in_graphs))
    assert int(found.value(counted, void.triples)) in (number, int(total["results"]["bindings"][0]["n"]["value"]))
    assert client.get("/sparql", headers={"Accept": "text/html"}).headers["location"] == "/"
