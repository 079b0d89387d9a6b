"""Confidence: an isotonic curve as scikit-learn has it, Platt's where there is little; what is saved comes back."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from halfgraph.errors import FolderError
from halfgraph.prediction.calibration import (
    FILE,
    Calibration,
    Curve,
    fit_curve,
    nearest_structure,
    pool_adjacent_violators,
)
from halfgraph.prediction.modes import EMBEDDING, ENSEMBLE, LINKS, MODES
from halfgraph.query.structures import STRUCTURES, inter, path
from halfgraph.query.tree import Project


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 9)), min_size=1, max_size=30))
def test_pooling_adjacent_violators_is_isotonic_regression(pairs):
    values, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    expected = IsotonicRegression().fit_transform(np.arange(len(values)), values, sample_weight=weights)
    assert np.allclose(pool_adjacent_violators(values, weights), expected, atol=1e-6)


def drawn(count, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(-1, 1, count)
    return scores, rng.random(count) < 1 / (1 + np.exp(-4 * scores))


def test_of_answers_given_a_confidence_about_as_many_are_right():
    curve = fit_curve(*drawn(10_000))
    assert curve.way == "isotonic"
    scores, right = drawn(10_000, seed=1)
    confidences = curve.rate(scores)
    for tenth in np.array_split(np.argsort(confidences), 10):
        assert confidences[tenth].mean() == pytest.approx(right[tenth].mean(), abs=0.05)
    assert np.all(np.diff(curve.rate(np.linspace(-2, 2, 100))) >= 0)


def test_with_few_answers_the_curve_is_platts():
    scores, right = drawn(200)
    curve = fit_curve(scores, right)
    assert curve.way == "platt"
    model = LogisticRegression(C=np.inf).fit(scores[:, None], right)
    assert np.allclose(curve.rate(scores), model.predict_proba(scores[:, None])[:, 1], atol=0.05)


@pytest.mark.parametrize("right", [True, False])
def test_answers_all_of_one_sort_are_never_certain(right):
    curve = fit_curve(np.linspace(0, 1, 50), np.full(50, right))
    assert ((curve.rate(np.array([0.0, 0.5, 1.0])) > 0.5) == right).all()
    assert 0 < min(curve.rates) <= max(curve.rates) < 1


def test_a_saved_calibration_loads_unchanged(tmp_path):
    made = Calibration({"embedding": {"1p": fit_curve(*drawn(1000))}})
    made.save(tmp_path)
    assert Calibration.load(tmp_path) == made


def test_modes_by_their_old_names_are_read_by_their_present_ones(tmp_path):
    curve = {"scores": [0.0, 1.0], "rates": [0.2, 0.4], "answers": 9, "way": "platt"}
    curves = {mode: {"1p": curve} for mode in ("vector", "scored", "both")}
    (tmp_path / FILE).write_text(json.dumps({"format": 1, "curves": curves}))
    assert tuple(Calibration.load(tmp_path).curves) == MODES


def test_a_missing_link_has_the_confidence_of_a_one_link_answer():
    curve = Curve([0.0, 1.0], [0.25, 0.25], 9, "platt")
    for mode in (LINKS, ENSEMBLE):
        assert Calibration({LINKS: {"1p": curve}}).link_confidence(mode, 0.8) == 0.25
        assert Calibration({}).link_confidence(mode, 0.8) == 0.8


def test_in_embedding_mode_the_cosine_of_a_link_is_calibrated_or_halved_and_then_not_called_a_confidence():
    cosines, curve = np.array([-0.5, 0.8]), Curve([-1, 1], [0.0, 0.5], 9, "platt")
    calibration = Calibration({EMBEDDING: {"1p": curve}})
    assert calibration.cosine_probability(cosines).tolist() == pytest.approx([0.125, 0.45])
    assert calibration.link_confidence(EMBEDDING, 0.45) == 0.45
    assert Calibration({}).cosine_probability(cosines).tolist() == [0.0, 0.4]
    assert Calibration({}).link_confidence(EMBEDDING, 0.4) is None


def test_without_a_file_there_is_no_confidence(tmp_path):
    found = Calibration.load(tmp_path)
    assert found.confidence("embedding", STRUCTURES[0].query, np.array([0.5])) is None


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"curves": {"embedding": {"1p": {"scores": []}}}})])
def test_a_broken_file_is_reported(tmp_path, text):
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
    assert Calibration({"embedding": {"2p": curve}}).confidence("embedding", path(0, 0), np.array([0.25])) == 0.25
