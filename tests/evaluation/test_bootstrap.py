import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.evaluation.bootstrap import interval, resample
from halfgraph.evaluation.measures import Column, Measures, Pairs
from halfgraph.evaluation.metrics import auc


def some_measures(seed: int = 0, count: int = 200) -> Measures:
    """A column of all questions, one of some, and pairs of which many tie."""
    rng = np.random.default_rng(seed)
    everywhere, somewhere = np.ones(count, dtype=bool), rng.random(count) < 0.5
    scores = rng.integers(0, 9, (2, count)) / 9
    return {
        ("mrr", "2i"): Column(rng.random(count), everywhere),
        ("apr", "2-inter"): Column(rng.random(count), somewhere),
        ("auc", "2-inter"): Pairs(scores[0] + 0.1, scores[1], somewhere),
    }


def drawn_again(measures: Measures, seed: int, again: int) -> list[np.ndarray]:
    """The rows of each draw, as the bootstrap has them."""
    name, count = next(iter(measures))[1], len(next(iter(measures.values())).there)
    generator = np.random.default_rng([seed, zlib.crc32(name.encode()), count])
    blocks = [generator.integers(0, count, (min(32, again - first), count)) for first in range(0, again, 32)]
    return [draw for block in blocks for draw in block]


@given(st.integers(0, 1000))
def test_every_measure_is_that_of_the_questions_drawn_again(seed: int) -> None:
    measures = some_measures(seed, count=40)
    found = resample(measures, seed, samples=35)
    for place, rows in enumerate(drawn_again(measures, seed, 35)):
        for key, measure in measures.items():
            kept = rows[measure.there[rows]]
            if isinstance(measure, Column):
                assert found[key][place] == pytest.approx(measure.values[kept].mean())
            else:
                assert found[key][place] == pytest.approx(auc(measure.positive[kept], measure.negative[kept]))


def test_the_same_seed_draws_the_same() -> None:
    first, again, other = (resample(some_measures(), seed, 50) for seed in (1, 1, 2))
    for key in first:
        np.testing.assert_array_equal(first[key], again[key])
        assert (first[key] != other[key]).any()


def test_an_interval_is_as_wide_as_theory_says() -> None:
    values = np.random.default_rng(0).normal(size=2_000)
    column = Column(values, np.ones(2_000, dtype=bool))
    low, high = interval(resample({("mrr", "1p"): column}, 0, 2_000)["mrr", "1p"])
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(2_000), rel=0.1)


def test_more_questions_make_a_figure_surer() -> None:
    widths = []
    for count in (50, 500, 5_000):
        low, high = interval(resample(some_measures(0, count), 0, 300)["auc", "2-inter"])
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)


def test_draws_without_a_value_are_left_out() -> None:
    there = np.array([True, *[False] * 9])
    column = Column(np.full(10, 0.25), there)
    found = resample({("mrr", "3i"): column}, 0, 100)["mrr", "3i"]
    assert np.isnan(found).any()
    assert interval(found) == [0.25, 0.25]
    assert interval(np.full(3, np.nan)) is None


def test_nothing_is_drawn_for_nothing() -> None:
    assert resample({}, 0) == {}
    assert resample(some_measures(), 0, 0) == {}
