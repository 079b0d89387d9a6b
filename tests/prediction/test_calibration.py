"""Confidence: an isotonic curve as scikit-learn has it, Platt's where there is little; what is saved comes back."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from halfgraph.errors import FolderError
from halfgraph.prediction.calibration import FILE, Calibration, Curve, Reliability, fit, nearest_structure, pooled
from halfgraph.query.structures import STRUCTURES, inter, path
from halfgraph.query.tree import Project


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 9)), min_size=1, max_size=30))
def test_pooling_adjacent_violators_is_isotonic_regression(pairs):
    values, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    expected = IsotonicRegression().fit_transform(np.arange(len(values)), values, sample_weight=weights)
    assert np.allclose(pooled(values, weights), expected, atol=1e-6)


def drawn(count, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(-1, 1, count)
    return scores, rng.random(count) < 1 / (1 + np.exp(-4 * scores))


def test_of_answers_given_a_confidence_about_as_many_are_right():
    curve = fit(*drawn(10_000))
    assert curve.way == "isotonic"
    scores, right = drawn(10_000, seed=1)
    assert Reliability.of(curve.rate(scores), right).error() < 0.02
    assert np.all(np.diff(curve.rate(np.linspace(-2, 2, 100))) >= 0)


def test_with_few_answers_the_curve_is_platts():
    scores, right = drawn(200)
    curve = fit(scores, right)
    assert curve.way == "platt"
    model = LogisticRegression(C=np.inf).fit(scores[:, None], right)
    assert np.allclose(curve.rate(scores), model.predict_proba(scores[:, None])[:, 1], atol=0.05)


@pytest.mark.parametrize("right", [True, False])
def test_answers_all_of_one_sort_are_never_certain(right):
    curve = fit(np.linspace(0, 1, 50), np.full(50, right))
    assert ((curve.rate(np.array([0.0, 0.5, 1.0])) > 0.5) == right).all()
    assert 0 < min(curve.rates) <= max(curve.rates) < 1


def test_the_error_is_the_mean_gap_by_hand():
    confidences = np.array([0.05, 0.05, 0.95, 0.95])
    right = np.array([False, False, True, False])
    assert Reliability.of(confidences, right).error() == pytest.approx((2 * 0.05 + 2 * 0.45) / 4)


def test_a_calibration_comes_back_as_it_was_saved(tmp_path):
    made = Calibration({"vector": {"1p": fit(*drawn(1000))}})
    made.save(tmp_path)
    assert Calibration.load(tmp_path) == made


def test_without_a_file_there_is_no_confidence(tmp_path):
    found = Calibration.load(tmp_path)
    assert found.confidence("vector", STRUCTURES[0].query, np.array([0.5])) is None


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"curves": {"vector": {"1p": {"scores": []}}}})])
def test_a_broken_file_is_said_to_be_broken(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(FolderError):
        Calibration.load(tmp_path)


def test_a_general_query_takes_the_curve_of_the_structure_it_is_most_like():
    known = [structure.short for structure in STRUCTURES]
    assert [nearest_structure(structure.query, known) for structure in STRUCTURES] == known
    assert nearest_structure(path(0, 0, 1, 2, 3), known) == "3p"
    assert nearest_structure(inter(*(path(i, i) for i in range(6))), known) == "3i"
    assert nearest_structure(Project(inter(path(0, 0), path(1, 1), path(2, 2)), 3), known) == "ip"
    curve = Curve([0.0, 1.0], [0.0, 1.0], 2, "platt")
    assert Calibration({"vector": {"2p": curve}}).confidence("vector", path(0, 0), np.array([0.25])) == 0.25
