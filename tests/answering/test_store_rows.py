"""Names of entities as people write them, and a time limit for what is asked of the store."""

import json

import pytest

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.store_rows import GraphStore, TimedStore
from halfgraph.errors import HalfgraphError, SettingError, SparqlError, TimeLimit, UnknownName
from halfgraph.graph.store import store_folder
from halfgraph.sparql.read import request_of
from small_engines import ENDLESS
from wild_graphs import company


@pytest.mark.parametrize("text", ["person3", "http://halfgraph.local/person3", "<person3>", ":person3", "Person3"])
def test_an_entity_is_found_by_name_iri_prefixed_name_or_label(graph, text):
    names = EntityNames(graph)
    assert names.entity(names.resolve(text)).label == "person3"


def test_an_unknown_name_is_reported_with_similar_ones(graph):
    with pytest.raises(UnknownName) as caught:
        EntityNames(graph).resolve(":persn3")
    assert "http://halfgraph.local/person3" in caught.value.nearest


def test_a_guessed_type_is_marked_and_a_stated_one_is_not(tmp_path):
    names = EntityNames(company(tmp_path))
    guessed, stated = (names.described(names.resolve(f"Employee {number}"))[2] for number in (0, 1))
    assert guessed.endswith(" (guessed)")
    assert "guessed" not in stated


def test_with_a_time_limit_the_same_rows_come_back_and_a_long_query_is_stopped(graph):
    query = request_of("SELECT ?x { ?x <lives_in> <city0> } ORDER BY ?x", graph).tree
    limited = GraphStore(graph, time_limit=20)
    assert limited.rows(query) == GraphStore(graph).rows(query)
    limited.timed.close()
    limited = GraphStore(graph, time_limit=0.3)
    with pytest.raises(TimeLimit):
        limited.rows(request_of(ENDLESS, graph).tree)
    limited.timed.close()


def test_a_time_limit_is_above_zero(graph):
    with pytest.raises(SettingError):
        GraphStore(graph, time_limit=0)


@pytest.fixture
def timed(graph):
    store = TimedStore(store_folder(graph))
    yield store
    store.close()


def test_after_a_query_was_stopped_the_next_one_is_answered(timed):
    with pytest.raises(TimeLimit, match=r"stopped after 0\.5 s"):
        timed.query_json(ENDLESS, 0.5)
    assert json.loads(timed.query_json("ASK { ?x ?p ?y }", 30))["boolean"] is True


def test_an_error_of_the_store_is_raised_here(timed):
    with pytest.raises(SparqlError, match="1:12") as caught:
        timed.query_json("SELECT ?x {", 30)
    assert caught.value.feature == "syntax"


def test_a_folder_that_is_not_a_store_is_reported(tmp_path):
    with pytest.raises(HalfgraphError, match="nothing: cannot be opened as a store"):
        TimedStore(tmp_path / "nothing").query_json("ASK { }", 30)
