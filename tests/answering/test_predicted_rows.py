"""Predicting in each mode: the order is that of the mode's own scores, and the witness that of its edges."""

from dataclasses import replace

import numpy as np
import pytest

from halfgraph.errors import SettingError
from halfgraph.prediction.calibration import Calibration, Curve
from halfgraph.prediction.calibration_fitting import validation_questions
from halfgraph.prediction.modes import MODES
from halfgraph.prediction.predictors import fit_weights
from halfgraph.query.structures import match_structure
from small_engines import engine_of
from small_runs import people

TEXT = "SELECT ?x { ?x <livesIn> <city1> ; <speaks> <language2> }"
CHAIN = "SELECT ?x { <person1> <livesIn>/<inCountry> ?x }"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    graph = people(tmp_path_factory.mktemp("people"), count=120)
    made = engine_of(graph, "train")
    fitted = fit_weights(made.index.encoder, graph, validation_questions(graph, 0, each=20), 0)
    assert fitted is not None
    return replace(made, fitted=fitted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", [TEXT, CHAIN])
def test_answers_come_in_the_order_of_the_modes_scores(engine, mode, text):
    found = engine.ask(text, top=8, mode=mode, any_type=True)
    assert found.mode == mode
    query = engine.templates.read(text).query
    structure, anchors, relations = match_structure(query)
    predictor = engine.predictors.predictor(mode, likely=True)
    scores = predictor.scores(structure, np.array([anchors]), np.array([relations]))[0].copy()
    known = [engine.names.find(one.entity) for one in found.known]
    scores[known] = -np.inf
    best = np.sort(scores)[::-1][: len(found.predicted)]
    assert [one.score for one in found.predicted] == pytest.approx(best.tolist(), abs=1e-3)
    numbers = [engine.names.find(one.entity) for one in found.predicted]
    assert scores[numbers] == pytest.approx(best, abs=1e-4)


def test_without_a_name_the_best_mode_is_taken(engine, graph):
    assert engine.ask(TEXT).mode == "ensemble"
    assert engine_of(graph).ask("SELECT ?x { ?x <lives_in> <city1> }").mode == "embedding"
    with pytest.raises(SettingError, match="calibrate"):
        engine_of(graph).ask("SELECT ?x { ?x <lives_in> <city1> }", mode="links")


@pytest.mark.parametrize("mode", ["links", "ensemble"])
@pytest.mark.parametrize("text", [TEXT, CHAIN])
def test_the_triples_of_a_witness_by_edges_are_in_the_graph_or_have_a_probability(engine, mode, text):
    predicted = engine.ask(text, top=1, mode=mode).predicted[0]
    witness = engine.explain(text, predicted.entity, mode=mode)
    assert witness.answer.score == pytest.approx(predicted.score, abs=1e-3)
    assert any(not triple.known for triple in witness.triples)
    for triple in witness.triples:
        head, tail = (engine.names.find(end.entity) for end in (triple.subject, triple.object))
        relation = 2 * engine.graph.relations.find(triple.predicate.label)
        assert triple.known == (tail in engine.graph.train.tails_of(head, relation))
        assert triple.known == (triple.confidence is None)
        assert triple.known or 0 <= triple.confidence <= 1
    variables = {one.variable for one in witness.witness}
    assert variables == (set() if text == TEXT else {"?_0_1"})


def test_a_missing_triple_is_as_sure_as_the_answer_of_a_one_edge_question(engine):
    curve = Curve([0.0, 1.0], [0.25, 0.25], 10, "platt")
    sure = replace(engine, calibration=Calibration({"links": {"1p": curve}}))
    best = engine.ask(TEXT, top=1, mode="links").predicted[0].entity
    missing = [triple for triple in sure.explain(TEXT, best, mode="links").triples if not triple.known]
    assert [triple.confidence for triple in missing] == [0.25] * len(missing)
    assert missing
