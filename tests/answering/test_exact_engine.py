"""The engine of a graph without a run: the store's rows, and nothing predicted."""

from pathlib import Path

import pytest

from halfgraph.answering.exact_engine import ExactEngine
from halfgraph.errors import SettingError
from imported_graphs import made

EXACT = '<http://a.org/a> <http://a.org/age> "3" .'


def test_rows_are_those_of_the_store_and_a_note_says_that_nothing_is_predicted(tmp_path: Path) -> None:
    engine = ExactEngine(made(tmp_path, EXACT, "nt"))
    answers = engine.ask("SELECT ?x ?age { ?x <http://a.org/age> ?age }")
    assert [answer.row["age"].value for answer in answers.known] == ["3"]
    assert answers.predicted == []
    assert answers.notes == ["No predictions: a graph is served without a trained run"]
    truth = engine.ask("ASK { ?x ?p ?o }").truth
    assert truth is not None
    assert truth.known
    triples = engine.ask("CONSTRUCT WHERE { ?x ?p ?o }").triples or ()
    assert [(one.object.value, one.known) for one in triples] == [("3", True)]
    with pytest.raises(SettingError, match="trained run"):
        engine.explain("SELECT ?x { ?x ?p ?o }", "http://a.org/a")
