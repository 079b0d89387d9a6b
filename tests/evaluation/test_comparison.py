"""Comparison of measurements: pairs on the same bootstrap samples, against resampling by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.evaluation.bootstrap import resample
from halfgraph.evaluation.comparison import compare, comparison_table, p_value
from halfgraph.evaluation.measures import Column
from halfgraph.evaluation.results import Measurement

EVERY = np.ones(300, dtype=bool)


def measurement(values: np.ndarray) -> Measurement:
    measures = {("mrr", "1p"): Column(values, EVERY), ("mrr", "2i"): Column(values**2, EVERY)}
    return Measurement({key: own.value() for key, own in measures.items()}, resample(measures, 0, 999), {})


def some_values(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(300)


def test_a_run_does_not_differ_from_itself() -> None:
    rows = compare({"a": measurement(some_values(0)), "b": measurement(some_values(0))})
    figure = rows["b"]["macro"]["mrr"]
    assert (figure.difference, list(figure.difference_interval), figure.p) == (0.0, [0.0, 0.0], 1.0)
    assert rows["a"]["macro"]["mrr"].difference is None


def test_a_small_difference_on_every_question_is_found_because_pairs_are_compared() -> None:
    base = some_values(0)
    figure = compare({"a": measurement(base), "b": measurement(base + 0.001)})["b"]["mrr"]["1p"]
    assert figure.difference == pytest.approx(0.001)
    assert figure.p == 2 / 1000
    assert figure.interval[1] - figure.interval[0] > 50 * figure.difference  # each alone is much less certain


@given(st.integers(0, 50))
def test_the_interval_of_a_difference_is_that_of_the_paired_questions(seed: int) -> None:
    one, other = some_values(seed), some_values(seed + 1000)
    figure = compare({"a": measurement(one), "b": measurement(other)})["b"]["mrr"]["1p"]
    differences = other - one
    spread = 2 * 1.96 * differences.std() / np.sqrt(300)
    assert figure.difference == pytest.approx(differences.mean())
    assert figure.difference_interval[1] - figure.difference_interval[0] == pytest.approx(spread, rel=0.15)


def test_the_p_value_is_right_under_the_null_hypothesis() -> None:
    pairs = [compare({"a": measurement(some_values(n)), "b": measurement(some_values(n + 500))}) for n in range(200)]
    below = np.mean([rows["b"]["mrr"]["1p"].p < 0.1 for rows in pairs])
    assert 0.04 < below < 0.17


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=50))
def test_a_p_value_has_no_direction(values: list[float]) -> None:
    differences = np.array(values)
    assert 0 < p_value(differences) == p_value(-differences) <= 1
    assert p_value(np.abs(differences) + 0.1) == min(1.0, 2 / (len(values) + 1))


def test_without_any_value_there_is_no_p_value() -> None:
    assert p_value(np.array([np.nan])) is None


def test_one_table_has_a_row_for_each_measure_and_run() -> None:
    table = comparison_table(compare({"a": measurement(some_values(0)), "b": measurement(some_values(1))}))
    assert [row[:2] for row in table.rows] == [["MRR", "a"], ["MRR", "b"]]
    assert table.rows[0][4:] == ["", "", ""]
    assert table.rows[1][4].startswith(("+", "-"))
