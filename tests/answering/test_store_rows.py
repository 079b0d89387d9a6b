"""Names of entities as people write them, and a time limit for what is asked of the store."""

import pytest

from asked import ENDLESS
from halfgraph.answering.store_rows import Facts, Names
from halfgraph.errors import SettingError, TimeLimit, UnknownName


@pytest.mark.parametrize("text", ["person3", "http://halfgraph.local/person3", "<person3>", ":person3", "Person3"])
def test_an_entity_is_found_by_name_iri_prefixed_name_or_label(graph, text):
    names = Names(graph)
    assert names.entity(names.resolve(text)).label == "person3"


def test_the_nearest_names_are_told_for_one_that_is_not_there(graph):
    with pytest.raises(UnknownName) as caught:
        Names(graph).resolve(":persn3")
    assert "http://halfgraph.local/person3" in caught.value.nearest


def test_with_a_time_limit_the_same_rows_come_back_and_a_long_query_is_stopped(graph):
    text = "SELECT ?x { ?x <lives_in> <city0> } ORDER BY ?x"
    limited = Facts(graph, time_limit=20)
    assert limited.rows(text) == Facts(graph).rows(text)
    with pytest.raises(TimeLimit):
        limited.rows(ENDLESS, seconds=0.3)
    limited.worker.close()


def test_a_time_limit_is_above_zero(graph):
    with pytest.raises(SettingError):
        Facts(graph, time_limit=0)
