"""Many questions at once: each answered as if it were asked alone, and as the store answers it."""

import json
from dataclasses import replace

import pytest

from halfgraph.answering.batch import json_line
from halfgraph.errors import SettingError, SparqlError, UnknownName
from small_engines import LIVES, engine_of, people, with_links

TEMPLATES = [
    "SELECT DISTINCT ?x {{ ?x <lives_in> <city{0}> }}",
    "SELECT DISTINCT ?x {{ ?y <knows> ?x . ?y <lives_in> <city{0}> . ?x <lives_in> <city{1}> }}",
    "SELECT DISTINCT ?x {{ <person{0}> <knows>/<knows>/<lives_in> ?x }}",
    "SELECT DISTINCT ?x {{ ?x a <Person> ; <lives_in> <city{0}> }}",
    "SELECT DISTINCT ?x {{ ?x <lives_in> <city{0}> }} LIMIT 7 OFFSET 2",
    "SELECT DISTINCT ?x {{ {{ ?x <lives_in> <city{0}> }} UNION {{ ?x <knows> <person{1}> }} }}",
    "SELECT DISTINCT ?x {{ ?x <lives_in> <city{0}> MINUS {{ ?x <knows> <person{1}> }} FILTER(?x != <person{0}>) }}",
    "SELECT ?x ?y {{ ?x <lives_in> ?y . ?y ^<lives_in> <person{0}> }}",
    "SELECT DISTINCT ?x {{ ?x <knows> ?y . ?y <lives_in> <city{0}> . ?z <knows> ?y, ?w . ?w <lives_in> <city{1}> }}",
]
TEXTS = [text.format(first, (first + 1) % 6) for first in range(6) for text in TEMPLATES]


@pytest.mark.parametrize("view", ["whole", "train"])
def test_each_is_answered_as_alone(graph, view):
    engine = engine_of(graph, view)
    for text, found in zip(TEXTS, engine.ask_batch(TEXTS, top=5), strict=True):
        alone = engine.ask(text, top=5, explain=False)
        assert found.variables == alone.variables
        assert found.known == alone.known
        assert [one.entity for one in found.predicted] == [one.entity for one in alone.predicted]
        assert [one.score for one in found.predicted] == pytest.approx([one.score for one in alone.predicted], abs=2e-4)


@pytest.mark.parametrize("least", [None, 0.3])
@pytest.mark.parametrize("view", ["whole", "train"])
def test_each_is_answered_by_links_as_alone(graph, view, least):
    engine = with_links(engine_of(graph, view))
    for text, found in zip(TEXTS, engine.ask_batch(TEXTS, top=5, min_confidence=least), strict=True):
        alone = engine.ask(text, top=5, min_confidence=least, explain=False)
        assert found.mode == alone.mode == "links"
        assert (found.variables, found.known, found.target) == (alone.variables, alone.known, alone.target)
        assert [one.entity for one in found.predicted] == [one.entity for one in alone.predicted]
        confidences = [[one.confidence for one in answers.predicted] for answers in (found, alone)]
        assert confidences[0] == pytest.approx(confidences[1], abs=1e-6)
        expected = {**found.to_dict(), "seconds": 0.0}
        assert json.loads(json_line(replace(found, seconds=0.0))) == json.loads(json.dumps(expected))
        assert list(json.loads(json_line(found))) == list(expected)


def test_the_ensemble_answers_a_batch_as_alone_by_scores_without_confidence(graph):
    engine = with_links(engine_of(graph))
    for text, found in zip(TEXTS[:4], engine.ask_batch(TEXTS[:4], top=5, mode="ensemble"), strict=True):
        alone = engine.ask(text, top=5, mode="ensemble", explain=False)
        assert (found.mode, found.known, found.predicted) == ("ensemble", alone.known, alone.predicted)
        assert all(one.confidence is None for one in found.predicted)
        scores = [one.score for one in found.predicted]
        assert scores == sorted(scores, reverse=True)


def test_the_store_is_asked_by_the_names_of_the_text(engine):
    texts = [
        f"SELECT ?x {{ ?x <{relation}> <{name}> }}" for relation, name in (("lives_in", "city3"), ("knows", "person3"))
    ]
    found = engine.ask_batch([LIVES, *texts, "SELECT ?x { ?x <knows> ?y . ?y <lives_in> <city0> }"])
    assert [answers.known for answers in found] == [engine.ask(text).known for text in [LIVES, *texts]] + [
        found[-1].known
    ]
    assert {one.label for one in found[2].known} == {"person2"}


def test_a_time_limit_applies_to_each_query_of_a_batch(graph):
    engine = replace(with_links(engine_of(graph)), time_limit=20.0)
    try:
        assert engine.ask_batch([LIVES])[0].known == with_links(engine_of(graph)).ask(LIVES).known
    finally:
        engine.store.timed.close()


def test_the_parser_is_not_asked_again_for_other_names(engine, monkeypatch):
    engine.ask_batch(["SELECT ?x { ?x <lives_in> <city0> }"])
    monkeypatch.setattr("halfgraph.sparql.templates.read", None)
    found = engine.ask_batch(["SELECT ?x { ?x <knows> <person3> }"] * 3)
    assert [one.known[0].label for one in found] == ["person2"] * 3


def test_what_the_store_has_beyond_the_graph_is_among_the_answers(tmp_path):
    graph = people(tmp_path)
    (graph.path / "manifest.json").unlink()  # the graph is changed by hand
    with (graph.path / "aside.nq").open("a") as file:
        file.write('<http://halfgraph.local/person1> <http://halfgraph.local/lives_in> "nowhere" .\n')
    engine = engine_of(graph)
    text = "SELECT ?x { <person1> <lives_in> ?x }"
    assert {one.entity for one in engine.ask_batch([text])[0].known} == {"nowhere", "http://halfgraph.local/city1"}


def test_entities_of_every_type_are_predicted_unless_the_query_states_one(engine):
    typed = LIVES.replace("{", "{ ?x a <Person> .")
    for mode in ("embedding", "links"):
        found = with_links(engine).ask_batch([LIVES, typed], top=100, mode=mode)
        assert {one.type for one in found[0].predicted} == {"Person", "City"}
        assert found[1].predicted
        assert {one.type for one in found[1].predicted} == {"Person"} or mode == "links"


def test_a_query_that_fails_has_its_error_in_its_place(engine):
    first, second, third, last = engine.ask_batch([LIVES, "SELECT", "SELECT ?x { ?x <lives_on> <city0> }", LIVES])
    assert isinstance(second, SparqlError)
    assert isinstance(third, UnknownName)
    assert first.known == last.known == engine.ask(LIVES).known


def test_a_batch_has_the_modes_and_options_of_a_single_query(engine):
    assert engine.ask_batch([LIVES])[0].mode == engine.ask(LIVES).mode
    with pytest.raises(SettingError, match=r"^mode"):
        engine.ask_batch([LIVES], mode="magic")
    with pytest.raises(SettingError, match=r"^min_confidence"):
        engine.ask_batch([LIVES], min_confidence=0.5)  # this engine has no confidence
