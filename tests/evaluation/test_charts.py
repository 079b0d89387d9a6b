import re
from xml.etree import ElementTree

import pytest

from halfgraph.evaluation.charts import BOTTOM, HEIGHT, TOP, Bars, charts, reliability_charts, reliability_svg, svg
from halfgraph.evaluation.results import Measured, Row, rows_of

SPACE = "{http://www.w3.org/2000/svg}"
BARS = Bars("Title <1>", ["1p", "2i-hard"], [("a & b", [60.0, 50.0]), ("c", [62.0, None])], True, ["2i-hard"])


def bars_of(text: str) -> dict[str, float]:
    """The height of each bar that says what it is."""
    root = ElementTree.fromstring(text)
    return {
        str(bar.findtext(f"{SPACE}title")): float(bar.get("height", 0))
        for bar in root.iter(f"{SPACE}rect")
        if bar.find(f"{SPACE}title") is not None
    }


def test_bars_are_what_a_score_is_above_the_weakest() -> None:
    assert BARS.heights() == [[0.0, 0.0], [2.0, None]]
    heights = bars_of(svg(BARS))
    assert heights["c, 1p: 62.00"] == pytest.approx(HEIGHT - TOP - BOTTOM, abs=0.2)
    assert heights["a & b, 1p: 60.00"] < 1
    assert len(heights) == 3


def test_bars_from_zero_are_the_scores() -> None:
    plain = Bars("Title", ["1p"], [("a", [0.2]), ("b", [0.4])], relative=False)
    heights = bars_of(svg(plain))
    assert heights["b, 1p: 0.4"] == pytest.approx(2 * heights["a, 1p: 0.2"], abs=0.2)


def test_hard_types_are_boxed_and_names_are_escaped() -> None:
    text = svg(BARS)
    assert text.count('fill="none"') == 1
    assert "a &amp; b" in text
    assert "Title &lt;1&gt;" in text


def test_a_chart_alone_brings_its_own_colours() -> None:
    assert "prefers-color-scheme" in svg(BARS, standalone=True)
    assert "<style>" not in svg(BARS)


def test_equal_scores_can_be_drawn() -> None:
    assert len(bars_of(svg(Bars("Title", ["1p"], [("a", [60.0]), ("b", [60.0])], relative=True)))) == 2


def test_several_rows_are_compared_with_one_another_and_one_with_the_baselines() -> None:
    figures = {"auc": {"1-chain": 0.8}, "apr": {}, "mrr": {"1p": 0.3}}
    one = [Measured("CGA", figures, 0), Measured("popularity", figures)]
    two = [*one, Measured("GQE", figures, 0)]
    auc, mrr = charts(rows_of(one))
    assert not auc.relative
    assert [name for name, _ in auc.series] == ["CGA", "popularity"]
    auc, mrr = charts(rows_of(two))
    assert auc.relative
    assert [name for name, _ in auc.series] == ["CGA", "GQE"]
    assert [name for name, _ in mrr.series] == ["CGA", "GQE", "popularity"]


BINS = {
    "1p": {"confidence": [0.05, 0.5], "right": [0.0, 0.75], "answers": [8, 4]},
    "2i": {"confidence": [0.95], "right": [1.0], "answers": [3]},
}
ROW = Row("CGA", {"calibration": {"ece": {"1p": 0.12, "2i": 0.05}, "bins": BINS}}, None, (0,), {})


def test_the_chart_has_a_point_for_each_bin_where_it_belongs():
    points = [tuple(map(float, found)) for found in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', reliability_svg(BINS))]
    assert points == [(51.0, 336.0), (186.0, 111.0), (321.0, 36.0)]
    assert "1p: 4 answers, 50% sure, 75% right" in reliability_svg(BINS)


def test_only_rows_with_confidences_have_a_chart():
    assert [title for title, _ in reliability_charts([ROW])] == ["Reliability of confidences, CGA"]
    assert reliability_charts([Row("popularity", {}, None, (), {})]) == []
