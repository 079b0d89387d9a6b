"""The checks of a graph: findings with names and reasons, the worst first."""

import pytest

from halfgraph.answering.graph_check import CHECKS, GraphCheck
from halfgraph.errors import SettingError
from small_engines import engine_of, with_links
from small_runs import typed


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A graph in which one person is born in a person, and one city is there twice."""
    triples = [(f"person{number}", "bornIn", f"city{number % 20}") for number in range(150)]
    triples += [("person3", "bornIn", "person4"), *((f"person{number}", "likes", "person0") for number in range(60))]
    triples += [(name, "twin", f"city{number}") for name in ("Old Town", "old  town") for number in range(8)]
    types = {name: name.rstrip("0123456789") for head, _, tail in triples for name in (head, tail)}
    types |= {"Old Town": "city", "old  town": "city"}
    graph = typed(tmp_path_factory.mktemp("checked"), triples, types, "80/10/10")
    return GraphCheck(with_links(engine_of(graph)))


def test_unlikely_triples_are_known_ones_with_their_confidence_without_themselves(checked):
    found = checked.run("unlikely", 50)
    assert len(found) == 50
    for one in found:
        text = f"ASK {{ <{one.subject.entity}> <{one.predicate.entity}> <{one.object.entity}> }}"
        assert checked.engine.store.local.query(text)
        assert 0 <= one.score <= 1
        assert one.reason.startswith("confidence ")


def test_a_type_that_clashes_is_named_beside_the_usual_one(checked):
    (found,) = checked.run("type", 50)
    assert (found.subject.label, found.predicate.label, found.object.label) == ("person3", "bornIn", "person4")
    assert found.reason == "its object is person, as in 1 of 151 triples of this relation; usual is city"


def test_duplicates_are_two_entities_that_may_be_the_same(checked):
    (found,) = checked.run("duplicate", 50)
    assert {found.subject.label, found.object.label} == {"Old Town", "old  town"}
    assert found.predicate.entity == "http://www.w3.org/2002/07/owl#sameAs"
    assert found.reason.startswith("labels 100% alike")


@pytest.mark.parametrize("check", CHECKS)
def test_a_limit_keeps_the_first(checked, check):
    assert checked.run(check, 1) == checked.run(check, 50)[:1]


def test_a_run_without_link_models_is_refused(engine):
    with pytest.raises(SettingError, match="check: needs link models"):
        GraphCheck(engine)
