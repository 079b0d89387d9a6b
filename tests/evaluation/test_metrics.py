import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from halfgraph.evaluation.metrics import NotANumber, auc, percentiles, require_finite

# Few values, so that ties are common.
scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=30).map(np.array)


@given(scores, scores)
def test_auc_is_scikit_learns(positive: np.ndarray, negative: np.ndarray) -> None:
    labels = np.repeat([1, 0], [len(positive), len(negative)])
    assert auc(positive, negative) == pytest.approx(roc_auc_score(labels, np.concatenate([positive, negative])))


@given(scores, scores)
def test_auc_is_how_often_a_positive_is_above_a_negative(positive: np.ndarray, negative: np.ndarray) -> None:
    wins = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positive for n in negative]
    assert auc(positive, negative) == pytest.approx(sum(wins) / len(wins))
    assert auc(negative, positive) == pytest.approx(1 - auc(positive, negative))


def test_auc_of_many_scores_does_not_overflow() -> None:
    generator = np.random.default_rng(0)
    positive, negative = generator.normal(1, 1, 60_000), generator.normal(0, 1, 60_000)
    found = auc(positive.astype(np.float32), negative.astype(np.float32))
    assert found == pytest.approx(0.7602, abs=0.005)


@given(st.lists(st.tuples(st.integers(-3, 3).map(float), st.lists(st.integers(-3, 3).map(float), max_size=5))))
def test_a_percentile_is_the_share_below_with_ties_counted_half(rows: list[tuple[float, list[float]]]) -> None:
    own = np.array([score for score, _ in rows], dtype=float)
    others = np.array([other for _, some in rows for other in some], dtype=float)
    offsets = np.cumsum([0, *(len(some) for _, some in rows)])
    beaten = [[1.0 if other < score else 0.5 if other == score else 0.0 for other in some] for score, some in rows]
    expected = [sum(shares) / max(len(shares), 1) for shares in beaten]
    np.testing.assert_allclose(percentiles(own, others, offsets), expected)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_refused(bad: float) -> None:
    require_finite(np.array([0.0, 1.0]), "2-inter")
    with pytest.raises(NotANumber, match="2-inter: a score is not a number, so the model has diverged"):
        require_finite(np.array([0.0, bad]), "2-inter")
