"""Completion of a graph: triples with the confidence that a query gives them, and refusals."""

import pytest

from halfgraph.answering.graph_completion import complete_graph
from halfgraph.errors import SettingError, UnknownName
from small_engines import with_links


def test_the_confidence_of_a_triple_is_that_of_the_answer_that_needs_it(engine):
    engine = with_links(engine)
    completion = complete_graph(engine, min_confidence=0.0, limit=20)
    assert len(completion.triples) == 20
    for triple in completion.triples:
        text = f"SELECT ?x {{ <{triple.subject.entity}> <{triple.predicate.entity}> ?x }}"
        predicted = {one.entity: one.confidence for one in engine.ask(text, top=100).predicted}
        assert predicted[triple.object.entity] == triple.confidence
        assert triple.reason


def test_a_type_is_one_of_the_store_or_a_main_one(engine):
    engine = with_links(engine)
    completion = complete_graph(engine, min_confidence=0.0, limit=10_000, type_name=":City", relation="knows")
    assert {triple.subject.label.rstrip("0123456789") for triple in completion.triples} == {"city"}
    assert {triple.predicate.label for triple in completion.triples} == {"knows"}
    with pytest.raises(UnknownName, match=r"no type Ctiy in this graph\. Did you mean :City"):
        complete_graph(engine, type_name="Ctiy")


def test_a_run_without_link_models_is_refused(engine):
    with pytest.raises(SettingError, match="complete: needs link models"):
        complete_graph(engine)
