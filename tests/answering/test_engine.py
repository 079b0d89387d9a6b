"""Asking: exact answers first and all of them, then predicted ones that are not known."""

import pytest
import torch

from halfgraph.answering.engine import Engine
from halfgraph.answering.index import Index
from halfgraph.errors import SettingError, SparqlError
from halfgraph.graph.importing import Choices, import_graph
from halfgraph.graph.splitting import Shares
from halfgraph.model.encoder import Architecture, Encoder

CITIES = [f"city{i}" for i in range(6)]


@pytest.fixture
def graph(tmp_path):
    rows = [f"person{i}\tlives_in\t{CITIES[i % 6]}" for i in range(30)]
    rows += [f"person{i}\tknows\tperson{(i + 1) % 30}" for i in range(30)]
    source, kinds = tmp_path / "people.tsv", tmp_path / "types.tsv"
    source.write_text("\n".join(rows))
    kinds.write_text("\n".join([*(f"person{i}\tPerson" for i in range(30)), *(f"{city}\tCity" for city in CITIES)]))
    return import_graph([source], tmp_path / "graph", Choices(kinds_file=kinds, split=Shares(80, 10, 10)))


@pytest.fixture
def engine(graph):
    encoder = Encoder(Architecture(dim=8, heads=2), graph.train, torch.Generator().manual_seed(0))
    return Engine(graph, Index.of(encoder))


def test_exact_answers_are_all_there_and_predicted_ones_are_not_among_them(engine):
    found = engine.ask("SELECT ?x { ?x <lives_in> <city0> }", top=40)
    known = {answer.label for answer in found.known}
    assert known == {f"person{i}" for i in range(0, 30, 6)}
    assert len(found.predicted) == 30 - len(known)
    assert not known & {answer.label for answer in found.predicted}
    assert {answer.kind for answer in found.predicted} == {"Person"}


def test_predicted_answers_come_best_first_with_the_cosine_as_their_score(engine):
    scores = [answer.score for answer in engine.ask("SELECT ?x { <person1> <lives_in> ?x }", top=5).predicted]
    assert scores == sorted(scores, reverse=True)
    assert all(-1 <= score <= 1 for score in scores)


def test_any_kind_ranks_every_entity(engine):
    found = engine.ask("SELECT ?x { <person1> <lives_in> ?x }", top=100, any_kind=True)
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
    found = engine.ask("SELECT ?x ?y { ?x <lives_in> ?y FILTER(?y = <city0>) }")
    assert len(found.known) == 5
    assert found.predicted == []
    assert "Nothing is predicted" in found.notes[0]


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
