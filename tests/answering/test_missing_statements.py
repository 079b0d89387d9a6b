"""Missing statements: the surest first, none of them known, with the confidence that `ask` gives them."""

from pathlib import Path

import numpy as np
import pytest

from halfgraph.answering.engine import Engine
from halfgraph.answering.missing_statements import missing_of_entity, missing_of_relation
from halfgraph.errors import SettingError
from small_engines import engine_of, people, with_links

ALL = 10_000


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return with_links(engine_of(people(tmp_path_factory.mktemp("people")), "train"))


def number(engine: Engine, iri: str) -> int:
    found = engine.graph.find_entity(iri)
    assert found is not None
    return found


def test_statements_of_an_entity_are_missing_and_the_surest_come_first(engine: Engine) -> None:
    entity = engine.names.resolve("person3")
    found = missing_of_entity(engine, entity, ALL).statements
    confidences = [statement.confidence for statement in found]
    assert confidences == sorted(confidences, reverse=True)
    assert len({(one.subject, one.predicate, one.object) for one in found}) == len(found) > 30
    for one in found:
        head, tail = number(engine, one.subject.entity), number(engine, one.object.entity)
        relation = engine.graph.find_relation(one.predicate.entity)
        assert relation is not None
        assert entity in (head, tail)
        assert tail not in engine.known.tails_of(head, relation)


def test_confidences_are_those_of_a_query(engine: Engine) -> None:
    entity = engine.names.resolve("person3")
    asked = engine.ask("SELECT ?x { <person3> <lives_in> ?x }", top=ALL, explain=False).predicted
    found = missing_of_entity(engine, entity, ALL).statements
    lives = [one for one in found if (one.subject.label, one.predicate.label) == ("person3", "lives_in")]
    assert asked
    assert {one.entity: one.confidence for one in asked} == {one.object.entity: one.confidence for one in lives}


@pytest.mark.parametrize("limit", [1, 7, ALL])
def test_statements_of_a_relation_are_the_surest_of_all_heads(engine: Engine, limit: int) -> None:
    relation = engine.graph.find_relation(engine.graph.namer.iri("lives_in"))
    assert relation is not None
    people_ids = np.array([engine.names.resolve(f"person{i}") for i in range(30)])
    likely = engine.predictors.links.probabilities(people_ids, relation)
    wanted = np.sort(likely[likely > 0])[::-1][:limit]
    found = missing_of_relation(engine, relation, limit)
    assert (found.searched, found.heads) == (30, 30)
    assert [one.confidence for one in found.statements] == pytest.approx(wanted.tolist(), abs=1e-3)
    assert {one.predicate.label for one in found.statements} == {"lives_in"}


def test_statements_below_the_least_confidence_are_left_out(engine: Engine) -> None:
    entity = engine.names.resolve("person3")
    everything = missing_of_entity(engine, entity, ALL).statements
    least = everything[len(everything) // 2].confidence
    some = missing_of_entity(engine, entity, ALL, least).statements
    assert 0 < len(some) < len(everything)
    assert min(one.confidence for one in some) >= least - 1e-3


def test_a_search_without_time_says_how_far_it_came(engine: Engine) -> None:
    found = missing_of_relation(engine, 0, 5, seconds=0.0)
    assert (found.statements, found.searched) == ([], 0)
    assert found.heads == 30


def test_a_run_without_link_models_says_what_to_do(tmp_path: Path) -> None:
    plain = engine_of(people(tmp_path))
    with pytest.raises(SettingError, match="halfgraph calibrate"):
        missing_of_entity(plain, 0, 5)
    with pytest.raises(SettingError, match="halfgraph calibrate"):
        missing_of_relation(plain, 0, 5)
