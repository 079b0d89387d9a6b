"""The process that asks a store: the same answers, and an end to what takes too long."""

import json
import time

import pytest

from asked import ENDLESS
from halfgraph.answering.worker import Worker, answered
from halfgraph.errors import FolderError, SparqlError, TimeLimit
from halfgraph.graph.store import open_store, store_folder


@pytest.fixture
def worker(graph):
    worker = Worker(store_folder(graph))
    yield worker
    worker.close()


@pytest.mark.parametrize("form", ["json", "xml", "csv", "tsv"])
def test_a_process_answers_as_the_store_does(graph, worker, form):
    text = "SELECT ?x { ?x ?p ?y } ORDER BY ?x"
    assert worker.query(text, seconds=30, form=form) == answered(open_store(graph), text, form)


def test_graphs_and_booleans_are_answered_too(worker):
    assert json.loads(worker.query("ASK { ?x ?p ?y }", seconds=30))["boolean"] is True
    assert worker.query("ASK { ?x ?p ?y }", seconds=30, form="csv") == b"true"
    lines = worker.query("CONSTRUCT { ?x <http://p> ?x } { ?x ?p ?y }", seconds=30, triples="ntriples")
    assert b"<http://p>" in lines.splitlines()[0]


def test_a_query_that_takes_too_long_is_stopped_and_the_next_one_is_answered(worker):
    worker.query("ASK { ?x ?p ?y }", seconds=30)
    begun = time.perf_counter()
    with pytest.raises(TimeLimit, match=r"stopped after 0\.5 s"):
        worker.query(ENDLESS, seconds=0.5)
    assert time.perf_counter() - begun < 10
    assert json.loads(worker.query("ASK { ?x ?p ?y }", seconds=30))["boolean"] is True


def test_an_error_of_the_store_comes_back_as_ours(worker):
    with pytest.raises(SparqlError):
        worker.query("SELECT ?x {", seconds=30)


def test_a_folder_that_is_no_store_is_said_to_be_none(tmp_path):
    with pytest.raises(FolderError):
        Worker(tmp_path / "nothing").query("ASK { }", seconds=30)
