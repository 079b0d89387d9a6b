"""Asking: exact answers first and all of them, then predicted ones that are not known."""

import numpy as np
import pytest

from halfgraph.answering.engine import Engine
from halfgraph.answering.predicted_rows import PredictedRows
from halfgraph.errors import SettingError, SparqlError, UnknownName
from small_engines import LIVES, engine_of, people, with_links


def test_exact_answers_are_all_there_and_predicted_ones_are_not_among_them(engine):
    found = engine.ask("SELECT ?x { ?x <lives_in> <city0> }", top=40)
    known = {answer.label for answer in found.known}
    assert known == {f"person{i}" for i in range(0, 30, 6)}
    assert len(found.predicted) == 36 - len(known)
    assert not known & {answer.label for answer in found.predicted}


def test_predicted_answers_come_best_first_with_the_cosine_as_their_score(engine):
    scores = [answer.score for answer in engine.ask("SELECT ?x { <person1> <lives_in> ?x }", top=5).predicted]
    assert scores == sorted(scores, reverse=True)
    assert all(-1 <= score <= 1 for score in scores)


def test_by_embedding_only_entities_of_the_stated_type_are_predicted(engine):
    found = engine.ask("SELECT ?x { <person1> <lives_in> ?x . ?x a <City> }", top=100)
    assert {one.label for one in found.predicted} == {f"city{i}" for i in range(6)} - {"city1"}


def test_by_links_entities_of_the_stated_type_are_likelier(engine):
    text = "SELECT ?x { <person1> <lives_in> ?x }"
    untyped, typed = (
        {one.label: one.confidence for one in with_links(engine).ask(query, top=100).predicted}
        for query in (text, text.replace("}", ". ?x a <City> }"))
    )
    assert typed["city2"] == untyped["city2"]
    assert typed["person3"] < untyped["person3"] / 2


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
    assert [list(one) for one in found["predicted"]] == [["entity", "label", "type", "score", "row"]] * 2
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
    (graph.path / "manifest.json").unlink()  # the graph is changed by hand
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
    found = with_links(engine).ask("SELECT ?x { { ?x <lives_in> <city0> } UNION { ?x <lives_on> <city0> } }")
    assert len(found.known) == 5
    assert len(found.predicted) == 10
    assert found.notes[0].endswith("no relation <lives_on> in this graph. Did you mean :lives_in?")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT ?x ?a { ?x <age> ?a }", "<age> leads to literals, which are not predicted"),
        ("SELECT ?x ?a { ?x <age> ?a FILTER(?a > 99) }", "<age> leads to literals, which are not predicted"),
        ("SELECT ?x { ?x <seen_by> <person1> }", "<seen_by> was set aside by the import"),
        ("SELECT ?x { <nobody> <lives_in> ?x }", "<nobody> has no triple that predictions are made from"),
    ],
)
def test_a_name_that_only_the_store_knows_is_no_error_and_the_note_does_not_contradict_the_rows(tmp_path, text, reason):
    graph = people(tmp_path)
    here, kind = "<http://halfgraph.local/{}>".format, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    (graph.path / "manifest.json").unlink()  # the graph is changed by hand
    with (graph.path / "aside.nq").open("a") as file:
        file.write(f'{here("person1")} {here("age")} "36" .\n{here("person1")} {kind} {here("Poet")} .\n')
        file.write(
            f"{here('person2')} {here('seen_by')} {here('person1')} .\n{here('nobody')} {kind} {here('Poet')} .\n"
        )
    engine = with_links(engine_of(graph))
    found = engine.ask(text)
    assert found.predicted == []
    assert found.notes[0].startswith("No predictions: ")
    assert reason in found.notes[0]
    poets = engine.ask("SELECT ?x { ?x a <Poet>, <Person> }")
    assert [one.label for one in poets.known] == ["person1"]
    assert "person2" in [one.label for one in poets.predicted]
    assert "in this graph" not in found.notes[0]


def test_rows_of_literals_alone_are_not_explained_as_empty(tmp_path):
    graph = people(tmp_path)
    (graph.path / "manifest.json").unlink()  # the graph is changed by hand
    with (graph.path / "aside.nq").open("a") as file:
        file.write('<http://halfgraph.local/city0> <http://halfgraph.local/knows> "nobody" .\n')
    found = engine_of(graph).ask("SELECT ?x { <city0> <knows> ?x }")
    assert [one.entity for one in found.known] == ["nobody"]
    assert found.explanation.empty is None


@pytest.mark.parametrize(
    ("text", "entity", "against"),
    [
        (f"{LIVES[:-1]} MINUS {{ ?x <knows> <person2> }} }}", "person1", "MINUS { ?x :knows :person2 . }"),
        (f"{LIVES[:-1]} FILTER NOT EXISTS {{ ?x <knows> ?y }} }}", "person1", "FILTER NOT EXISTS { ?x :knows ?y . }"),
        (f"{LIVES[:-1]} VALUES ?x {{ <person2> <person3> }} }}", "person1", "FILTER (?x IN (:person2, :person3))"),
        (f"{LIVES[:-1]} FILTER(STRLEN(STR(?x)) > 99) }}", "person1", "FILTER (STRLEN(STR(?x)) > 99)"),
        (
            "SELECT ?x { ?x a <City> . <person1> <lives_in> ?x }",
            "person3",
            "it has another type",
        ),
        (LIVES, "person1", None),
        (f"{LIVES[:-1]} FILTER(?x != <person2>) }}", "person1", None),
        (f"{LIVES} LIMIT 0", "person0", None),
    ],
)
def test_an_explanation_says_which_condition_speaks_against_an_entity(engine, text, entity, against):
    answer = engine.explain(text, entity).answer
    assert answer.against == against
    assert answer.known == (entity == "person0")


def test_an_entity_of_probability_0_is_not_an_answer(engine, monkeypatch):
    monkeypatch.setattr(PredictedRows, "scores", lambda *_: np.zeros(36, np.float32))
    verdict = with_links(engine).explain(LIVES, "person1", mode="links").answer.verdict
    assert verdict == "person1 is not an answer: its probability is 0"


def test_a_drawing_has_a_type_only_if_the_query_states_it(engine):
    def types(text):
        return {node.name: node.type for node in engine.ask(text).explanation.nodes if node.role != "anchor"}

    assert types(LIVES) == {"?x": None}
    assert types("SELECT ?x { ?y <knows> ?x . ?y a <Person> ; <lives_in> <city0> }") == {"?y": "Person", "?x": None}


def test_there_is_no_mode_of_another_name(engine):
    with pytest.raises(SettingError):
        engine.ask(LIVES, mode="magic")
