"""The command calibrate: a run gets its link models, or an error says why not."""

import json

import pytest

import halfgraph
from halfgraph.cli import main
from halfgraph.prediction import predictors
from halfgraph.prediction.link_features import FEATURES
from halfgraph.prediction.link_predictor import SORTS
from halfgraph.prediction.predictors import FILE, LinkModels
from halfgraph.training import link_training
from imported_graphs import made, tsv
from small_runs import people


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": 8, "EPOCHS": 3}.items():
        monkeypatch.setattr(link_training, name, value)
    monkeypatch.setattr(predictors, "PAIRS", 100)


def calibrated(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(["calibrate", *map(str, arguments)])
    shown = capsys.readouterr()
    return left.value.code, shown.out, shown.err


def test_the_link_models_are_made_again_as_training_made_them(tmp_path, capsys):
    run = tmp_path / "run"
    halfgraph.train(people(tmp_path, count=60), run, steps=2, dim=8, heads=2)
    before = LinkModels.load(run)
    (run / FILE).unlink()
    code, out, _ = calibrated(capsys, run, "--json")
    assert code == 0
    after, shown = LinkModels.load(run), json.loads(out)
    assert (after.weights, after.missing) == (before.weights, before.missing)
    assert shown["missing"] == after.missing
    assert [tuple(row) for row in shown["by_sort"]] == list(after.weights.by_sort)
    assert (len(shown["by_sort"]), {len(row) for row in shown["by_sort"]}) == (SORTS, {len(FEATURES)})
    table = calibrated(capsys, run, "--seed", "1")[1]
    assert all(name in table for name in FEATURES)
    assert LinkModels.load(run).weights != before.weights


def test_a_graph_without_a_split_has_nothing_to_fit_on(tmp_path, capsys):
    graph = made(tmp_path, tsv([("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")]))
    halfgraph.train(graph, tmp_path / "run", steps=2, dim=8, heads=2)
    code, _, err = calibrated(capsys, tmp_path / "run")
    assert code == 1
    assert "no validation triples" in err
    assert len(err.splitlines()) == 1
