"""The command calibrate: a run gets its confidence, or an error says why not."""

import json

import pytest

import halfgraph
from halfgraph.cli import main
from halfgraph.prediction.calibration import FILE
from imported_graphs import made, tsv
from small_runs import people


def calibrated(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(["calibrate", *map(str, arguments)])
    shown = capsys.readouterr()
    return left.value.code, shown.out, shown.err


def test_the_curves_are_fitted_again(tmp_path, capsys):
    halfgraph.train(people(tmp_path, count=120), tmp_path / "run", steps=2, dim=8, heads=2)
    before = (tmp_path / "run" / FILE).read_text()
    (tmp_path / "run" / FILE).unlink()
    code, out, _ = calibrated(capsys, tmp_path / "run", "--json")
    assert code == 0
    assert {row["mode"] for row in json.loads(out)["curves"]} == {"ensemble", "links", "embedding"}
    assert (tmp_path / "run" / FILE).read_text() == before
    assert "isotonic" in calibrated(capsys, tmp_path / "run")[1] or "platt" in out


def test_a_graph_without_a_split_has_nothing_to_measure_on(tmp_path, capsys):
    graph = made(tmp_path, tsv([("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")]))
    halfgraph.train(graph, tmp_path / "run", steps=2, dim=8, heads=2)
    code, _, err = calibrated(capsys, tmp_path / "run")
    assert code == 1
    assert "no validation triples" in err
