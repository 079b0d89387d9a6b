"""Calibrating: the first answers are those that `ask` gives on the training triples, right by the whole graph."""

import numpy as np
import pytest

from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.calibration_fitting import (
    CachedPredictor,
    calibrate,
    fit_curves,
    judge_answers,
    validation_questions,
)
from halfgraph.prediction.embedding import EmbeddingPredictor
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES
from halfgraph.sparql.rendering import to_sparql
from small_engines import engine_of
from small_runs import people


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return people(tmp_path_factory.mktemp("people"))


def test_judged_answers_are_those_that_ask_predicts(graph):
    engine = engine_of(graph, "train")
    encoder = engine.index.encoder
    for questions in validation_questions(graph, seed=0, each=4):
        if len(questions) < 2:
            continue
        some = questions.take(np.arange(2))
        judged, is_right = judge_answers(EmbeddingPredictor.of(encoder), encoder, some, graph, top=5)
        scores, right = [], []
        for row in range(2):
            answers = engine.ask(to_sparql(some.query(row), graph), top=5, explain=False)
            true = Exact(graph.whole).answers(some.query(row))
            scores += [one.score for one in answers.predicted]
            right += [engine.names.find(one.entity) in true for one in answers.predicted]
        order = [np.lexsort((right, scores)), np.lexsort((is_right, judged.round(4)))]
        assert np.array(scores)[order[0]] == pytest.approx(judged[order[1]], abs=1e-3)
        assert np.array(right)[order[0]].tolist() == is_right[order[1]].tolist()


def test_a_calibration_holds_on_the_questions_that_it_was_fitted_on(graph):
    encoder = engine_of(graph).index.encoder
    questions = validation_questions(graph, seed=0, each=50)
    predictor = EmbeddingPredictor.of(encoder)
    curves = fit_curves(predictor, encoder, questions, graph)
    assert curves.keys() == {some.structure.short for some in questions}
    for some in questions:
        (judged, right), curve = judge_answers(predictor, encoder, some, graph), curves[some.structure.short]
        assert curve.rate(judged).mean() == pytest.approx(right.mean(), abs=0.1)
        assert len(judged) == curve.answers


def test_a_run_keeps_its_calibration_and_answers_have_a_confidence(graph, tmp_path):
    encoder = engine_of(graph).index.encoder
    made = calibrate(tmp_path, graph, encoder, seed=0)
    assert Calibration.load(tmp_path) == made
    assert set(made.curves["embedding"]) <= {structure.short for structure in STRUCTURES}


def test_without_a_split_there_is_nothing_to_measure(tmp_path):
    from imported_graphs import made, tsv

    graph = made(tmp_path, tsv([("a", "r", "b"), ("b", "r", "c")]))
    assert validation_questions(graph, seed=0) == []
    assert calibrate(tmp_path, graph, engine_of(graph).index.encoder, seed=0).curves == {}


def test_scores_of_the_current_structure_are_cached():
    asked = []

    class Counting:
        name = "counting"

        def scores(self, structure, anchors, relations):
            asked.append((structure.name, anchors.tolist()))
            return anchors + relations

    cached = CachedPredictor(Counting())
    one, two = np.array([[1]], np.int32), np.array([[2]], np.int32)
    for structure, anchors in zip(
        [*STRUCTURES[:1] * 4, *STRUCTURES[1:2] * 2], (one, one, two, one, one, one), strict=True
    ):
        assert cached.scores(structure, anchors, one).tolist() == (anchors + 1).tolist()
    assert [anchors for _, anchors in asked] == [[[1]], [[2]], [[1]]]
    assert cached.name == "counting"
