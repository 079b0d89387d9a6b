"""The ensemble: what its scores are made of, and that they compare answers across queries."""

import numpy as np
import pytest

from halfgraph.prediction.ensemble import ensemble_scores


def test_a_score_is_made_of_probability_cosine_what_the_query_lacks_and_degree():
    probabilities = np.array([[1.0, 0.3, 0.1]], np.float32)
    cosines = np.array([[0.0, 0.5, -0.2]], np.float32)
    scores = ensemble_scores(probabilities, cosines, np.array([0, 9, 1]))
    by_hand = np.log([1.0, 0.3, 0.1]) - np.log(0.4) / 2 + [0, 5, -2] - np.log([1, 10, 2])
    assert scores == pytest.approx(by_hand[None], rel=1e-5)


def test_a_question_that_lacks_many_answers_has_no_higher_scores_for_wrong_ones():
    few, many = np.full(100, 1e-4, np.float32), np.full(100, 1e-2, np.float32)
    few[0], many[0] = 1e-2, 0.9
    scores = ensemble_scores(np.stack([few, many]), np.zeros((2, 100), np.float32), np.zeros(100, np.int64))
    assert few[0] <= many[1]
    assert scores[0, 0] > scores[1, 1] + 1


def test_an_impossible_answer_has_a_finite_score():
    nothing, degrees = np.zeros(2, np.float32), np.zeros(2, np.int64)
    scores = ensemble_scores(np.array([0.0, 0.5], np.float32), nothing, degrees)
    assert np.isfinite(scores).all()
    assert scores[0] < scores[1]
    assert np.isfinite(ensemble_scores(nothing, nothing, degrees)).all()
