import numpy as np
import pytest

from halfgraph.prediction.logistic import logistic


def _drawn(count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 2)).astype(np.float32) * np.array([1, 100], np.float32)
    groups = rng.integers(0, 2, count)
    log_odds = 1.5 * features[:, 0] - 0.02 * features[:, 1] - 0.5 + np.where(groups == 1, 1.0, 0.0)
    true = (rng.random(count) < 1 / (1 + np.exp(-log_odds))).astype(np.float32)
    return features, true, np.ones(count, np.float32), groups


def test_the_weights_that_made_the_examples_are_found():
    weights, bias, offsets = logistic(*_drawn(20_000), 2)
    assert weights == pytest.approx([1.5, -0.02], rel=0.1)
    assert bias + offsets.mean() == pytest.approx(0.0, abs=0.15)
    assert offsets[1] - offsets[0] == pytest.approx(1.0, abs=0.15)


def test_an_example_that_counts_twice_is_as_two():
    features, true, ones, groups = few = _drawn(500)
    twice = [np.concatenate([column, column]) for column in few]
    first, second = logistic(*twice, 2)[0], logistic(features, true, 2 * ones, groups, 2)[0]
    assert first == pytest.approx(second, rel=0.02)


def test_a_group_without_examples_adds_nothing():
    assert logistic(*_drawn(500), 3)[2][2] == pytest.approx(0.0, abs=1e-6)


def test_true_examples_that_are_not_marked_are_reckoned_with():
    features, true, ones, groups = _drawn(40_000)
    marked = true * (np.random.default_rng(1).random(len(true)) < 0.4)
    plain, aware = (logistic(features, marked, ones, groups, 2, labelled) for labelled in (1.0, 0.4))
    whole = logistic(features, true, ones, groups, 2)
    assert aware[0] == pytest.approx(whole[0], rel=0.15)
    assert aware[1] + aware[2].mean() == pytest.approx(whole[1] + whole[2].mean(), abs=0.2)
    assert plain[1] + plain[2].mean() < whole[1] + whole[2].mean() - 0.7
