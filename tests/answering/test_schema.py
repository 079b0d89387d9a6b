"""The answers as JSON and as rows of SPARQL results."""

import json

import pytest

from halfgraph.answering.cells import Cell, to_json
from halfgraph.answering.cells import NamedEntity as Named
from halfgraph.answering.explanation_schema import ExplainedAnswer, QueryEdge, Witness, WitnessTriple
from halfgraph.answering.schema import Answers, KnownAnswer, PredictedAnswer

DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
CELL = Cell("uri", "http://a/x", "x")
ANSWERS = Answers(
    ["x"],
    [KnownAnswer("http://a/x", "x", None, {"x": CELL})],
    [
        PredictedAnswer("_:b", "b", "T", 0.25, row={"x": Cell("bnode", "_:b", "b")}),
        PredictedAnswer("http://a/y", "y", "T", 1e-9, 0.5, {"x": Cell("uri", "http://a/y", "y")}),
    ],
    target="x",
)


def test_a_confidence_that_was_not_measured_has_no_key():
    predicted = ANSWERS.to_dict()["predicted"]
    assert "confidence" not in predicted[0]
    assert predicted[1]["confidence"] == 0.5
    assert list(ANSWERS.to_dict()["known"][0]["row"]["x"]) == ["type", "value", "label"]


def test_a_triple_has_a_confidence_or_null():
    named = Named("http://a/x", "x")
    assert to_json(WitnessTriple(named, named, named, known=False))["confidence"] is None


def test_an_edge_goes_from_a_node_to_another():
    edge = to_json(QueryEdge(0, 1, "http://a/r", "r", inverse=False))
    assert (edge["from"], edge["to"]) == (0, 1)
    assert "source" not in edge
    json.dumps(ANSWERS.to_dict())


def test_rows_are_annotated_with_doubles():
    variables, rows = ANSWERS.rows(annotate=True)
    assert variables == ["x", "_score", "_confidence", "_source"]
    assert rows[0] == {"x": CELL.term(), "_source": {"type": "literal", "value": "known"}}
    assert rows[1]["x"] == {"type": "bnode", "value": "b"}
    assert rows[1]["_score"] == {"type": "literal", "value": "0.25", "datatype": DOUBLE}
    assert "_confidence" not in rows[1]
    assert rows[2]["_confidence"]["datatype"] == DOUBLE
    assert float(rows[2]["_score"]["value"]) == 1e-9


def test_without_annotations_there_are_only_known_rows():
    assert ANSWERS.rows() == (["x"], [{"x": CELL.term()}])


def test_a_notebook_shows_a_table():
    assert ANSWERS._repr_html_().count("<tr>") == 4


def test_a_table_has_a_column_for_each_variable_and_an_empty_cell_where_one_is_unbound():
    city = Cell("uri", "http://a/c", "c")
    known = [
        KnownAnswer("http://a/x", "x", None, {"x": CELL, "y": city}),
        KnownAnswer("http://a/c", "c", None, {"y": city}),
    ]
    row = {"x": Cell("uri", "http://a/z", "z")}
    answers = Answers(["y", "x"], known, [PredictedAnswer("http://a/z", "z", "T", 0.5, row=row)], target="x")
    head, rows = answers.table(10)
    assert head == ["", "?y", "?x", "score"]
    assert rows == [("known", "c", "x", ""), ("known", "c", "", ""), ("predicted", "", "z", "0.500")]
    assert Answers(["y", "x"], known, []).table(1) == (["", "?y", "?x"], [("known", "c", "x")])
    html = answers._repr_html_()
    assert "<th>?y</th><th>?x</th>" in html
    assert "<td>predicted</td><td></td><td>z</td>" in html


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (ExplainedAnswer("http://a/x", "x", None, known=True, score=1.0), "x is known"),
        (ExplainedAnswer("http://a/x", "x", None, False, 0.5, 0.25), "x is predicted, confidence 25%"),
        (ExplainedAnswer("http://a/x", "x", None, False, 0.5, 0.25, "?x a :T"), "x is not an answer: ?x a :T"),
    ],
)
def test_a_verdict_says_whether_an_entity_is_an_answer(answer, verdict):
    assert answer.verdict == verdict
    assert verdict in Witness(answer, [], [])._repr_html_()


def test_an_expected_value_has_a_column_of_its_own():
    count = {"n": Cell("literal", "3", "3")}
    known = [KnownAnswer("3", "3", None, count, {"n": 3.456})]
    predicted = [PredictedAnswer("0", "0", None, 0.5, 0.5, {"n": Cell("literal", "0", "0")}, {"n": 0.75})]
    head, rows = Answers(["n"], known, predicted).table(10)
    assert head == ["", "?n", "expected ?n", "confidence"]
    assert rows == [("known", "3", "3.46", ""), ("predicted", "0", "0.75", "50%")]


def test_a_predicted_cell_is_shown_with_its_confidence():
    row = {"x": CELL, "y": Cell("uri", "http://a/z", "z", confidence=0.25)}
    assert Answers(["x", "y"], [KnownAnswer("http://a/x", "x", None, row)], []).table(1)[1] == [
        ("known", "x", "z (25%)")
    ]
