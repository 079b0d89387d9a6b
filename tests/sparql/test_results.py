"""The W3C formats: what pyoxigraph reads from them is what was written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QueryResultsFormat, Store, parse_query_results

from halfgraph.errors import SettingError
from halfgraph.sparql.results import FORMATS, number_term, results_format, store_rows, write_results

XSD = "http://www.w3.org/2001/XMLSchema#"
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
TERMS = st.one_of(
    st.sampled_from(["http://a.example/x", "http://a.example/é"]).map(lambda iri: {"type": "uri", "value": iri}),
    TEXTS.map(lambda text: {"type": "literal", "value": text}),
    TEXTS.map(lambda text: {"type": "literal", "value": text, "xml:lang": "en-gb"}),
    st.just({"type": "literal", "value": "0.5", "datatype": f"{XSD}double"}),
    st.just({"type": "bnode", "value": "b1"}),
)


def as_term(term):
    match term:
        case {"type": "uri", "value": value}:
            return NamedNode(value)
        case {"type": "bnode", "value": value}:
            return BlankNode(value)
        case {"value": value, "xml:lang": language}:
            return Literal(value, language=language)
        case {"value": value, "datatype": datatype}:
            return Literal(value, datatype=NamedNode(datatype))
    return Literal(term["value"])


@pytest.mark.parametrize("form", ["json", "xml", "tsv"])
@given(rows=st.lists(st.dictionaries(st.sampled_from("xyz"), TERMS), max_size=4))
def test_what_is_written_is_read_back(form, rows):
    found = parse_query_results(write_results("xyz", rows, FORMATS[form]), format=FORMATS[form])
    assert [variable.value for variable in found.variables] == list("xyz")
    back = [[None if term is None else term for term in row] for row in found]
    expected = [[as_term(row[name]) if name in row else None for name in "xyz"] for row in rows]
    if form == "tsv":  # which renames blank nodes
        back, expected = (
            [[str(type(t)) if isinstance(t, BlankNode) else t for t in row] for row in some]
            for some in (back, expected)
        )
    assert back == expected


def test_csv_is_as_rfc_4180_says():
    rows = [{"x": {"type": "literal", "value": 'a "b", c'}}, {"y": {"type": "uri", "value": "http://a.example/"}}]
    assert write_results(["x", "y"], rows, FORMATS["csv"]) == b'x,y\r\n"a ""b"", c",\r\n,http://a.example/\r\n'


def test_no_rows_and_no_variables_are_written_too():
    assert parse_query_results(write_results([], [], FORMATS["xml"]), format=QueryResultsFormat.XML).variables == []


def test_there_is_no_other_format():
    with pytest.raises(SettingError, match="json, xml, csv, tsv"):
        results_format("yaml")


@pytest.mark.parametrize("number", [0.0, 1e-9, 0.1234, -0.5, 1])
def test_scores_are_doubles_that_are_read_back_exactly(number):
    term = as_term(number_term(number))
    assert term.datatype == NamedNode(f"{XSD}double")
    assert float(term.value) == number


def test_rows_of_the_store_are_written_as_the_store_writes_them():
    values = [NamedNode("http://a.example/x"), Literal("a", language="en"), Literal("b"), Literal(1.5), Literal(7)]
    store = Store()
    store.extend(Quad(NamedNode("http://a.example/s"), NamedNode("http://a.example/p"), value) for value in values)
    text = "SELECT ?s ?o ?no { ?s ?p ?o } ORDER BY ?o"
    expected = store.query(text).serialize(format=QueryResultsFormat.JSON)
    rows = list(store_rows(store.query(text)))
    assert json.loads(write_results(["s", "o", "no"], rows, FORMATS["json"])) == json.loads(expected)
