"""The calibration in a report: a table of errors, and a chart whose points are the bins."""

import re

from halfgraph.evaluation.comparing import Row
from halfgraph.evaluation.reliability import chart, error_table, reliability_charts

BINS = {
    "1p": {"confidence": [0.05, 0.5], "right": [0.0, 0.75], "answers": [8, 4]},
    "2i": {"confidence": [0.95], "right": [1.0], "answers": [3]},
}
ROW = Row("CGA", {"calibration": {"ece": {"1p": 0.12, "2i": 0.05}, "bins": BINS}}, None, (0,), {})


def test_the_errors_are_listed_by_structure():
    table = error_table([ROW, Row("popularity", {}, None, (), {})])
    assert [list(line) for line in table.rows] == [["1p", 0.12], ["2i", 0.05]]
    assert table.columns == ["", "CGA"]
    assert not error_table([Row("popularity", {}, None, (), {})]).rows


def test_the_chart_has_a_point_for_each_bin_where_it_belongs():
    points = [tuple(map(float, found)) for found in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', chart(BINS))]
    assert points == [(51.0, 336.0), (186.0, 111.0), (321.0, 36.0)]
    assert "1p: 4 answers, 50% sure, 75% right" in chart(BINS)


def test_only_rows_with_confidences_have_a_chart():
    assert [title for title, _ in reliability_charts([ROW])] == ["Confidence and what is right, CGA"]
    assert reliability_charts([Row("popularity", {}, None, (), {})]) == []
