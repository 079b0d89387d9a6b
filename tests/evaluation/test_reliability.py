"""Reliability: bins and errors by hand, and the calibration of a run among the figures of an evaluation."""

import numpy as np
import pytest

from halfgraph.evaluation.reliability import calibration_error, measure_reliability, reliability_bins
from halfgraph.prediction.calibration import Calibration, Curve
from halfgraph.prediction.calibration_fitting import validation_questions
from halfgraph.prediction.predictors import Predictors
from small_engines import engine_of, people


def test_the_error_is_the_mean_gap_by_hand():
    confidences = np.array([0.05, 0.05, 0.95, 0.95])
    right = np.array([False, False, True, False])
    bins = reliability_bins(confidences, right)
    assert bins == {"confidence": [0.05, 0.95], "right": [0.0, 0.5], "answers": [2, 2]}
    assert calibration_error(bins) == pytest.approx((2 * 0.05 + 2 * 0.45) / 4)


def test_a_run_that_is_always_half_sure_errs_by_how_far_it_is_from_half(tmp_path):
    graph = people(tmp_path)
    index, questions = engine_of(graph).index, validation_questions(graph, 0, each=10)
    given = (Predictors(index, graph.train), questions, graph)
    assert measure_reliability(tmp_path, "embedding", *given) == {}
    Calibration({"embedding": {"1p": Curve([0.0, 1.0], [0.5, 0.5], 2, "platt")}}).save(tmp_path)
    figures = measure_reliability(tmp_path, "embedding", *given)["calibration"]
    assert set(figures["ece"]) == {some.structure.short for some in questions}
    for name, bins in figures["bins"].items():
        assert bins["confidence"] == [0.5]
        assert abs(figures["ece"][name] - abs(0.5 - bins["right"][0])) < 1e-3
    assert measure_reliability(tmp_path, "links", *given) == {}
