"""Predicting in each mode: the rows are the best by the mode's own scores, and a probability is never 0 or 1."""

import numpy as np
import pytest

from halfgraph.answering.cells import percent
from halfgraph.answering.predicted_rows import LEAST_CERTAIN, MOST_CERTAIN, rounded
from halfgraph.errors import SettingError
from halfgraph.prediction.modes import MODES
from halfgraph.query.structures import match_structure
from small_engines import LIVES, engine_of, with_links
from small_runs import people

TEXT = "SELECT ?x { ?x <livesIn> <city1> ; <speaks> <language2> }"
CHAIN = "SELECT ?x { <person1> <livesIn>/<inCountry> ?x }"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return with_links(engine_of(people(tmp_path_factory.mktemp("people"), count=60), "train"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", [TEXT, CHAIN])
def test_answers_are_the_best_by_the_modes_scores(engine, mode, text):
    found = engine.ask(text, top=8, mode=mode)
    assert found.mode == mode
    structure, anchors, relations = match_structure(engine.templates.read(text).query)
    scores = engine.predictors.predictor(mode).scores(structure, np.array([anchors]), np.array([relations]))[0].copy()
    scores[[engine.names.find(one.entity) for one in found.known]] = -np.inf
    best = np.sort(scores)[::-1][:8]
    assert [one.score for one in found.predicted] == pytest.approx(best.tolist(), abs=1e-3)
    numbers = [engine.names.find(one.entity) for one in found.predicted]
    assert scores[numbers] == pytest.approx(best, abs=1e-4)


def test_the_score_is_the_confidence_by_links_and_there_is_none_by_embedding(engine):
    assert all(one.score == one.confidence for one in engine.ask(TEXT, mode="links").predicted)
    assert all(one.confidence is None for one in engine.ask(TEXT, mode="embedding").predicted)


def test_without_a_name_the_best_mode_is_taken(engine, graph):
    assert engine.ask(TEXT).mode == "links"
    assert engine_of(graph).ask(LIVES).mode == "embedding"
    with pytest.raises(SettingError, match="calibrate"):
        engine_of(graph).ask(LIVES, mode="links")


@pytest.mark.parametrize("text", [TEXT, CHAIN])
def test_the_triples_of_a_witness_are_in_the_graph_or_have_a_probability(engine, text):
    for predicted in engine.ask(text, top=3).predicted:
        witness = engine.explain(text, predicted.entity)
        assert (witness.answer.score, witness.answer.confidence) == (predicted.score, predicted.confidence)
        assert any(not triple.known for triple in witness.triples)
        for triple in witness.triples:
            head, tail = (engine.names.find(end.entity) for end in (triple.subject, triple.object))
            relation = 2 * engine.graph.relations.find(triple.predicate.label)
            assert triple.known == (tail in engine.graph.train.tails_of(head, relation))
            probability = engine.predictors.links.probability(head, relation, tail)
            assert triple.confidence == (None if triple.known else rounded(probability))
        variables = {one.variable for one in witness.witness}
        assert variables == (set() if text == TEXT else {"?_0_1"})


def test_a_prediction_is_never_shown_as_impossible_or_certain():
    assert rounded(1e-12) == LEAST_CERTAIN
    assert rounded(1.0) == rounded(0.99999) == MOST_CERTAIN
    assert rounded(0.25001) == 0.25
    assert rounded(0.0) == 0.0  # what no way leads to is no prediction
    assert (percent(LEAST_CERTAIN), percent(0.004), percent(0.4), percent(MOST_CERTAIN)) == (
        *("< 1%", "< 1%"),
        *("40%", "> 99%"),
    )


def test_an_entity_of_another_type_has_no_score_by_embedding(engine):
    text = TEXT.replace("?x <livesIn>", "?x a <city> ; <livesIn>")
    answer = engine.explain(text, "person3", mode="embedding").answer
    assert (answer.score, answer.against) == (None, "it has another type")
    assert engine.explain(text, "city3", mode="embedding").answer.against is None
