"""Asking: exact answers first and all of them, then predicted ones that are not known."""

import pytest

from halfgraph.answering.engine import Engine
from halfgraph.errors import SettingError, SparqlError, UnknownName
from small_engines import LIVES, engine_of, people


def test_exact_answers_are_all_there_and_predicted_ones_are_not_among_them(engine):
    found = engine.ask("SELECT ?x { ?x <lives_in> <city0> }", top=40)
    known = {answer.label for answer in found.known}
    assert known == {f"person{i}" for i in range(0, 30, 6)}
    assert len(found.predicted) == 30 - len(known)
    assert not known & {answer.label for answer in found.predicted}
    assert {answer.type for answer in found.predicted} == {"Person"}


def test_predicted_answers_come_best_first_with_the_cosine_as_their_score(engine):
    scores = [answer.score for answer in engine.ask("SELECT ?x { <person1> <lives_in> ?x }", top=5).predicted]
    assert scores == sorted(scores, reverse=True)
    assert all(-1 <= score <= 1 for score in scores)


def test_any_type_ranks_every_entity(engine):
    found = engine.ask("SELECT ?x { <person1> <lives_in> ?x }", top=100, any_type=True)
    assert len(found.known) + len(found.predicted) == 36


def test_a_held_out_triple_is_not_known_on_the_training_view(graph, engine):
    head, relation, tail = graph.test.triples()[0].tolist()
    names = [graph.entities.name(head), graph.relations.name(relation // 2)]
    text = f"SELECT ?x {{ <{names[0]}> <{names[1]}> ?x }}"
    wanted = graph.entities.name(tail)
    assert wanted in {answer.label for answer in engine.ask(text).known}
    asked = Engine(graph, engine.index, "train").ask(text, top=40)
    assert wanted not in {answer.label for answer in asked.known}
    assert wanted in {answer.label for answer in asked.predicted}


def test_what_cannot_be_predicted_is_answered_exactly_with_the_reason(engine):
    found = engine.ask("SELECT ?x { ?x <lives_in> <city0> } ORDER BY ?x")
    assert len(found.known) == 5
    assert found.predicted == []
    assert "No predictions" in found.notes[0]


def test_what_the_store_must_test_is_tested_of_predicted_answers_too(engine):
    text = "SELECT ?x { ?x <lives_in> <city0> FILTER(STRENDS(STR(?x), '4')) }"
    found = engine.ask(text, top=2)
    assert len(found.predicted) == 2
    assert all(one.entity.endswith("4") for one in [*found.known, *found.predicted])
    scores = {one.entity: one.score for one in engine.ask("SELECT ?x { ?x <lives_in> <city0> }", top=40).predicted}
    ending = [(name, score) for name, score in scores.items() if name.endswith("4")]
    assert [(one.entity, one.score) for one in found.predicted] == ending[:2]
    other = engine.ask_batch([text.replace("4", "5"), text], top=2)
    assert other[1].predicted == found.predicted
    assert all(one.entity.endswith("5") for one in other[0].predicted)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x { FILTER(?x != <a>) SERVICE <http://127.0.0.1:9/> { ?x <lives_in> ?y } }",
        "SELECT ?x { ?x <lives_in> <city0> ",
        "DELETE WHERE { ?s ?p ?o }",
    ],
)
def test_what_is_not_to_be_asked_is_refused(engine, text):
    with pytest.raises(SparqlError):
        engine.ask(text)


def test_at_least_one_answer_must_be_asked_for(engine):
    with pytest.raises(SettingError):
        engine.ask("SELECT ?x { ?x <lives_in> <city0> }", top=0)


def test_the_json_is_what_the_server_and_the_page_were_promised(engine):
    found = engine.ask(LIVES, top=2).to_dict()
    assert list(found) == ["variables", "known", "predicted", "explanation", "notes", "mode", "seconds", "target"]
    assert found["variables"] == ["x"]
    first = found["known"][0]
    assert list(first) == ["entity", "label", "type", "row"]
    assert first["row"]["x"] == {"type": "uri", "value": first["entity"], "label": first["label"]}
    assert [list(one) for one in found["predicted"]] == [["entity", "label", "type", "score"]] * 2
    explanation = found["explanation"]
    assert [node["role"] for node in explanation["nodes"]] == ["anchor", "target"]
    assert explanation["edges"] == [
        {
            "from": 0,
            "to": 1,
            "relation": "http://halfgraph.local/lives_in",
            "label": "lives_in",
            "inverse": True,
            "attention": None,
            "heads": None,
            "negated": False,
            "alternative": False,
        }
    ]
    assert explanation["empty"] is None


def test_all_selected_values_are_in_the_rows_literals_and_labels_too(engine):
    found = engine.ask("SELECT ?x ?y { ?x <lives_in> ?y FILTER(?y = <city0>) }")
    row = found.known[0].row
    assert row["y"].label == "city0"
    assert row["x"].label == found.known[0].label


@pytest.mark.parametrize(("limit", "offset"), [(3, 0), (3, 4), (2, 20), (50, 2), (None, 3), (None, 28), (0, 0)])
def test_limit_and_offset_cut_known_rows_alone_and_what_they_cut_is_not_predicted(engine, limit, offset):
    whole = engine.ask(LIVES, top=7)
    cut = f"{LIVES} {'' if limit is None else f'LIMIT {limit}'} OFFSET {offset}"
    for found in (engine.ask(cut, top=7), engine.ask_batch([cut], top=7)[0]):
        assert found.known == whole.known[offset : None if limit is None else offset + limit]
        assert [one.entity for one in found.predicted] == [one.entity for one in whole.predicted]


def test_duplicate_rows_leave_room_for_predictions(engine):
    found = engine.ask("SELECT ?x { ?y <lives_in> ?x . ?y <knows> ?z . ?z <lives_in> <city1> } LIMIT 4", top=3)
    assert len({one.entity for one in found.known}) < len(found.known) == 4
    assert len(found.predicted) == 3


def test_a_literal_that_spells_the_name_of_an_entity_is_not_that_entity(tmp_path):
    graph = people(tmp_path)
    with (graph.path / "aside.nq").open("a") as file:
        file.write('<http://halfgraph.local/person1> <http://halfgraph.local/lives_in> "city3" .\n')
    found = engine_of(graph).ask("SELECT ?x { <person1> <lives_in> ?x }", top=40)
    assert ("literal", "city3") in {(one.row["x"].type, one.entity) for one in found.known}
    assert "city3" in {one.label for one in found.predicted}


def test_without_distinct_the_rows_are_those_of_the_store_and_with_it_each_is_there_once(engine):
    body = "{ ?y <lives_in> ?x . ?y <knows> ?z . ?z <lives_in> <city1> }"
    assert len(engine.ask(f"SELECT ?x {body}").known) == 5
    assert len(engine.ask(f"SELECT DISTINCT ?x {body}").known) == 1


def test_an_unknown_name_is_an_error_with_the_nearest_ones_unless_the_store_has_answers(engine):
    with pytest.raises(UnknownName) as caught:
        engine.ask("SELECT ?x { ?x <lives_on> <city0> }")
    assert caught.value.nearest == (":lives_in",)
    found = engine.ask("SELECT ?x { { ?x <lives_in> <city0> } UNION { ?x <lives_on> <city0> } }")
    assert len(found.known) == 5
    assert found.notes[0].startswith("No predictions: ")


def test_there_is_no_mode_of_another_name(engine):
    with pytest.raises(SettingError):
        engine.ask(LIVES, mode="magic")
