"""Calibration: ComplEx is trained and the weights are fitted, once, and the same for the same seed."""

import os
from collections import Counter
from pathlib import Path

import pytest
import torch

from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import write_manifest
from halfgraph.prediction import calibration, predictors
from halfgraph.prediction.calibration import calibrate, time_for_links
from halfgraph.prediction.predictors import FILE, LinkModels
from halfgraph.training import link_training
from halfgraph.training.link_training import STATE, LinkTraining
from halfgraph.training.run import new_encoder
from halfgraph.training.run_folder import load_tensors
from small_runs import TINY, Killed, people


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": 8, "LEAST_RANK": 4, "PAIRS": 50, "EPOCHS": 4}.items():
        monkeypatch.setattr(link_training, name, value)
    monkeypatch.setattr(predictors, "PAIRS", 30)
    monkeypatch.setattr(predictors, "FEWEST", 30)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=60)


def calibrated(run: Path, graph: Graph, seed: int = 0, **given: object) -> LinkModels | None:
    run.mkdir(exist_ok=True)
    return calibrate(run, graph, new_encoder(TINY, graph, 0, "cpu"), seed, **given)  # type: ignore[arg-type]


def contents(run: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """The file of a run: the bytes of its tensors and what it says about them, whose order is not fixed."""
    tensors, about = load_tensors(run / FILE)
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}, about


def test_the_models_are_written_to_one_file_and_the_checkpoint_is_removed(tmp_path, graph):
    models = calibrated(tmp_path / "run", graph)
    assert models is not None
    assert [path.name for path in (tmp_path / "run").iterdir()] == [FILE]
    loaded = LinkModels.load(tmp_path / "run")
    assert loaded is not None
    assert loaded.weights == models.weights
    assert loaded.weights.matrix.any()
    assert loaded.missing == graph.valid.triple_count + graph.test.triple_count


def test_the_same_seed_gives_the_same_models_whatever_the_number_of_threads(tmp_path, graph):
    threads = torch.get_num_threads()
    calibrated(tmp_path / "a", graph)
    try:
        torch.set_num_threads(2)
        calibrated(tmp_path / "b", graph)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    calibrated(tmp_path / "c", graph, seed=1)
    one, same, other = (contents(tmp_path / name) for name in "abc")
    assert one == same
    assert one != other


def test_an_interrupted_calibration_goes_on_and_ends_with_the_same_models(tmp_path, graph, monkeypatch):
    calibrated(tmp_path / "whole", graph)
    monkeypatch.setattr(link_training, "CHECKPOINT_SECONDS", -1.0)
    done = Counter[str]()

    def kill(activity: str, _total: int, since: int) -> None:
        done[activity] += since
        if done["Training links"] == 9:
            raise Killed

    with pytest.raises(Killed):
        calibrated(tmp_path / "parts", graph, progress=kill)
    assert not (tmp_path / "parts" / FILE).exists()
    assert LinkTraining.start(graph.train, 0, tmp_path / "parts" / STATE).done == 8
    calibrated(tmp_path / "parts", graph)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_progress_names_all_activities_and_ends_at_their_totals(tmp_path, graph):
    totals, done = {}, Counter[str]()

    def show(activity: str, total: int, since: int) -> None:
        totals[activity] = total
        done[activity] += since

    calibrated(tmp_path / "run", graph, progress=show)
    assert list(totals) == ["Training links", "Fitting weights", "Preparing answers"]
    assert all(done[name] == totals[name] for name in ("Training links", "Preparing answers"))
    assert done["Fitting weights"] <= totals["Fitting weights"]


def test_a_graph_with_too_little_held_out_has_no_link_models(tmp_path):
    graph = people(tmp_path, count=8, split="96/2/2")
    assert calibrated(tmp_path / "run", graph) is None
    assert list((tmp_path / "run").iterdir()) == []


def test_the_time_of_a_training_is_divided_between_cga_and_complex():
    assert time_for_links(None) == (None, None)
    minutes, seconds = time_for_links(10.0)
    assert minutes == pytest.approx(10 * (1 - calibration.LINK_SHARE))
    assert minutes + seconds / 60 == pytest.approx(10.0)


def test_a_time_limit_shortens_the_training_of_complex_alone(tmp_path, graph, monkeypatch):
    monkeypatch.setattr(link_training, "EPOCHS", 1_000)
    totals = {}
    calibrated(
        tmp_path / "run", graph, seconds=0.01, progress=lambda activity, total, _: totals.update({activity: total})
    )
    pairs = len(link_training.LinkPairs.of(graph.train).heads)
    assert totals["Training links"] < 1_000 * -(-pairs // 50)


def kill_at_replace(at: int) -> None:
    """Let this process end when it renames a file for the time `at`."""
    replace, left = os.replace, iter(range(at - 1))
    os.replace = lambda *given: os._exit(9) if next(left, None) is None else replace(*given)


def test_a_calibration_that_is_killed_at_any_write_leaves_one_fit(tmp_path, graph):
    first = calibrated(tmp_path / "run", graph)
    write_manifest(tmp_path / "run")
    second = calibrated(tmp_path / "other", graph, seed=1)
    for at in range(1, 30):
        if not (child := os.fork()):
            kill_at_replace(at)
            second.save(tmp_path / "run")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        kept = LinkModels.load(tmp_path / "run")
        assert kept.weights in (first.weights, second.weights)
        which = first if kept.weights == first.weights else second
        assert torch.equal(kept.complex.entities, which.complex.entities)
        if status == 0:
            break
    assert at > 2
    assert kept.weights == second.weights
