"""What the endpoint says of itself: a service description in RDF, with VoID counts."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Triple, serialize

from halfgraph.serving.negotiation import GRAPHS, TABLES, graph_format
from halfgraph.serving.problems import Reply

SD = "http://www.w3.org/ns/sparql-service-description#"
VOID = "http://rdfs.org/ns/void#"
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
PREFIXES = {"sd": SD, "void": VOID}
Term = NamedNode | BlankNode | Literal


def description(address: str, counted: Mapping[str, Any], accept: str, name: str | None) -> Reply:
    """The service description of an endpoint at an address."""
    form, media = graph_format(accept, name)
    body = serialize(_triples(address, counted), format=form, prefixes=PREFIXES) or b""
    return Reply(body, media)


def _triples(address: str, counted: Mapping[str, Any]) -> Iterator[Triple]:
    """What is said of the service, its default dataset and graph."""
    service, dataset, graph = BlankNode("service"), BlankNode("dataset"), BlankNode("graph")
    yield _said(service, TYPE, _sd("Service"))
    yield _said(service, _sd("endpoint"), NamedNode(address))
    yield _said(service, _sd("supportedLanguage"), _sd("SPARQL11Query"))
    yield _said(service, _sd("defaultDataset"), dataset)
    for iri in [*(form.iri for form in TABLES), *(form.iri for form in GRAPHS)]:
        yield _said(service, _sd("resultFormat"), NamedNode(iri))
    yield _said(dataset, TYPE, _sd("Dataset"))
    yield _said(dataset, _sd("defaultGraph"), graph)
    yield _said(graph, TYPE, _sd("Graph"))
    for what in ("triples", "entities", "properties", "classes"):
        yield _said(graph, NamedNode(VOID + what), Literal(str(counted[what]), datatype=INTEGER))


def _said(subject: BlankNode, predicate: NamedNode, value: Term) -> Triple:
    return Triple(subject, predicate, value)


def _sd(name: str) -> NamedNode:
    return NamedNode(SD + name)
