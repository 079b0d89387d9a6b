"""Reliability: bins and errors by hand, of predictors whose probabilities are known to be right or wrong."""

from dataclasses import dataclass
from math import prod

import numpy as np
import pytest

from halfgraph.evaluation import reliability
from halfgraph.evaluation.questions import held_out_questions
from halfgraph.evaluation.reliability import (
    calibration_error,
    given_something_missing,
    judge_answers,
    judge_sure_links,
    measure_reliability,
    reliability_bins,
)
from halfgraph.graph.folder import Graph
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES
from small_links import links_of, random_weights
from small_runs import people, training_questions


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"))


@dataclass(frozen=True)
class Constant:
    """A predictor that gives every entity the same probability, missing answers another one, known answers 1."""

    graph: Graph
    probability: float
    missing: float | None = None
    name: str = "constant"

    def scores(self, structure, anchors, relations):
        scores = np.full((len(anchors), self.graph.train.entity_count), self.probability, np.float32)
        for row, ids in enumerate(zip(anchors, relations, strict=True)):
            if self.missing is not None:
                scores[row, Exact(self.graph.whole).answers(structure.fill(*ids))] = self.missing
            scores[row, Exact(self.graph.train).answers(structure.fill(*ids))] = 1.0
        return scores


def test_the_error_is_the_mean_gap_by_hand():
    confidences = np.array([0.05, 0.05, 0.95, 0.95])
    right = np.array([False, False, True, False])
    bins = reliability_bins(confidences, right)
    assert bins == {"confidence": [0.05, 0.95], "right": [0.0, 0.5], "answers": [2, 2]}
    assert calibration_error(bins) == pytest.approx((2 * 0.05 + 2 * 0.45) / 4)


def test_confidences_drawn_as_often_right_as_they_say_have_hardly_an_error():
    rng = np.random.default_rng(0)
    confidences = rng.random(50_000)
    right = rng.random(50_000) < confidences
    assert calibration_error(reliability_bins(confidences, right)) < 0.01
    assert calibration_error(reliability_bins(confidences, rng.permutation(right))) > 0.2


def test_only_predicted_answers_are_judged_and_right_if_the_whole_graph_has_them(graph):
    for questions in held_out_questions(graph, "test", 20, 0, STRUCTURES[:2]):
        confidences, right = judge_answers(Constant(graph, 0.25, 0.5), questions, graph.train, graph.whole)
        assert len(confidences) == reliability.TOP * len(questions)
        assert (confidences == np.where(right, 0.5, 0.25)).all()
        missing = [
            set(Exact(graph.whole).answers(questions.query(row)).tolist())
            - set(Exact(graph.train).answers(questions.query(row)).tolist())
            for row in range(len(questions))
        ]
        assert right.sum() == sum(min(len(some), reliability.TOP) for some in missing) > 0


def test_what_no_way_leads_to_is_not_judged(graph):
    (questions,) = training_questions(graph, STRUCTURES[:1], 10)
    confidences, right = judge_answers(Constant(graph, 0.0), questions, graph.train, graph.whole)
    assert len(confidences) == len(right) == 0


def test_given_that_something_is_missing_probabilities_are_those_of_bayes():
    probabilities = np.array([0.1, 0.3, 0.0, 0.5])
    some = 1 - prod(1 - probability for probability in probabilities)
    assert given_something_missing(probabilities) == pytest.approx(probabilities / some)
    rng = np.random.default_rng(0)
    drawn = rng.random((100_000, 4)) < probabilities
    drawn = drawn[drawn.any(axis=1)]
    assert given_something_missing(probabilities) == pytest.approx(drawn.mean(axis=0), abs=0.01)
    assert given_something_missing(np.array([1e-9, 0.0])) == pytest.approx([1.0, 0.0])
    assert given_something_missing(np.array([1.0, 0.2])) == pytest.approx([1.0, 0.2])
    assert given_something_missing(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_a_predictor_that_is_always_half_sure_errs_by_how_far_it_is_from_half(graph, monkeypatch):
    monkeypatch.setattr(reliability, "DRAWN", 20)
    questions = held_out_questions(graph, "test", 10, 0, STRUCTURES[:3])
    figures = measure_reliability(Constant(graph, 0.5), questions, graph.train, graph.whole, 0)["calibration"]
    assert set(figures["ece"]) == {structure.short for structure in STRUCTURES}
    for name, bins in figures["bins"].items():
        assert bins["confidence"] == [0.5]
        assert figures["ece"][name] == pytest.approx(abs(0.5 - bins["right"][0]), abs=1e-3)
        assert figures["brier"][name] == pytest.approx(0.25)
    assert set(figures["something_missing"]["ece"]) == {own.structure.short for own in questions}


def test_sure_links_are_counted_over_the_whole_graph(graph, monkeypatch):
    known = graph.train
    sure, right = 0, 0
    links = links_of(known, random_weights(known, bias=6.0))
    for relation in range(0, known.relation_count, 2):
        for head, row in enumerate(links.probabilities(np.arange(known.entity_count), relation)):
            tails = np.flatnonzero(row >= reliability.SURE)
            sure, right = sure + len(tails), right + np.isin(tails, graph.whole.tails_of(head, relation)).sum()
    assert 0 < sure < known.entity_count**2
    monkeypatch.setattr(reliability, "PAIRS", (10**6,) * 3)
    every = judge_sure_links(links, graph.whole, 0)
    assert every == {"confidence": 0.8, "links": sure, "right": round(right / sure, 4), "drawn": sure}
    monkeypatch.setattr(reliability, "PAIRS", (40,) * 3)
    some = judge_sure_links(links, graph.whole, 0)
    assert some["drawn"] < sure
    assert some["links"] == pytest.approx(sure, rel=0.5)


def test_no_share_is_right_if_no_link_is_sure_and_large_graphs_are_not_judged(graph, monkeypatch):
    links = links_of(graph.train, random_weights(graph.train, bias=-100.0))
    assert judge_sure_links(links, graph.whole, 0) == {"confidence": 0.8, "links": 0, "right": None, "drawn": 0}
    monkeypatch.setattr(reliability, "LARGE", 10)
    assert judge_sure_links(links, graph.whole, 0) is None
