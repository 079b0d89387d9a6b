"""The calibration of a run among the figures of an evaluation."""

from asked import engine_of
from halfgraph.prediction.calibrating import validation_questions
from halfgraph.prediction.calibration import Calibration, Curve
from halfgraph.prediction.predictors import Modes
from halfgraph.prediction.reliability import measured


def test_a_run_that_is_always_half_sure_errs_by_how_far_it_is_from_half(graph, tmp_path):
    encoder = engine_of(graph).index.encoder
    questions = validation_questions(graph, 0, each=10)
    asked = (Modes(encoder, graph.train), questions, graph)
    assert measured(tmp_path, "vector", *asked) == {}
    Calibration({"vector": {"1p": Curve([0.0, 1.0], [0.5, 0.5], 2, "platt")}}).save(tmp_path)
    found = measured(tmp_path, "vector", *asked)["calibration"]
    assert set(found["ece"]) == {some.structure.short for some in questions}
    for name, bins in found["bins"].items():
        assert bins["confidence"] == [0.5]
        assert abs(found["ece"][name] - abs(0.5 - bins["right"][0])) < 1e-3
    assert measured(tmp_path, "scored", *asked) == {}
