"""Folders that the version before the redesign wrote still open, and give the answers that it gave.

`data/before/folders.tar.gz` holds a graph with a split, types, labels and literals, a workload, a calibrated run and an
interrupted run; `expected.json` is what that version answered.
"""

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halfgraph.cli import main
from halfgraph.graph.folder import Graph

BEFORE = Path(__file__).parent / "data" / "before"
EXPECTED: dict[str, Any] = json.loads((BEFORE / "expected.json").read_text())
MODES = {"vector": "embedding", "scored": "links", "both": "ensemble"}  # by their names then and now
Command = Callable[..., Any]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    with tarfile.open(BEFORE / "folders.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def command(folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in the folder and return what it printed as JSON."""
    monkeypatch.chdir(folders)

    def run(*arguments: str) -> Any:
        with pytest.raises(SystemExit) as leaving:
            main([*arguments, "--graph", "graph", "--json"] if arguments[0] != "train" else [*arguments, "--json"])
        shown = capsys.readouterr()
        assert not leaving.value.code, shown.err
        return json.loads(shown.out)

    return run


def test_a_graph_opens_with_its_types(folders: Path) -> None:
    graph = Graph.open(folders / "graph")
    assert graph.fingerprint == EXPECTED["fingerprint"]
    counts = EXPECTED["counts"]
    assert len(graph.types) == graph.description["counts"]["types"] == counts["kinds"]
    assert [graph.view(name).triple_count for name in ("train", "valid", "test")] == [*counts["triples"].values()]
    assert all({"what", "count", "used_for"} == set(row) for row in graph.description["report"])
    assert graph.types.names[int(graph.types.of(graph.find_entity("http://example.org/Berlin") or 0))].endswith("City")


@pytest.mark.parametrize("asked", EXPECTED["asked"], ids=lambda asked: f"{asked['mode']} {asked['query'][31:]}")
def test_a_run_gives_the_same_answers(command: Command, asked: dict[str, Any]) -> None:
    mode = MODES[asked["mode"]]
    answers = command("ask", "run", asked["query"], "--view", "train", "--mode", mode, "--top", "5")
    assert [row["entity"] for row in answers["known"]] == asked["known"]
    assert [row["entity"] for row in answers["predicted"]] == [entity for entity, _, _ in asked["predicted"]]
    for row, (_, score, confidence) in zip(answers["predicted"], asked["predicted"], strict=True):
        assert row["score"] == pytest.approx(score, abs=2e-3)
        assert row["confidence"] == pytest.approx(confidence, abs=5e-3)


@pytest.mark.parametrize("mode", EXPECTED["evaluated"])
def test_a_run_is_evaluated_alike_on_its_workload(command: Command, mode: str) -> None:
    figures = command("evaluate", "run", "--workload", "questions", "--mode", MODES[mode], "--no-baselines")
    for metric, by_structure in EXPECTED["evaluated"][mode].items():
        assert figures[metric] == {name: pytest.approx(value, abs=0.02) for name, value in by_structure.items()}


def test_a_run_is_calibrated_again(command: Command, folders: Path) -> None:
    shutil.rmtree(folders / "run-before", ignore_errors=True)
    before = (folders / "run" / "confidence.json").read_bytes()
    curves = command("calibrate", "run")["curves"]
    assert {row["mode"] for row in curves} == set(MODES.values())
    assert len(before) // 2 < (folders / "run" / "confidence.json").stat().st_size < 2 * len(before)


def test_an_interrupted_run_is_resumed(command: Command, folders: Path) -> None:
    settings = folders / "unfinished" / "config.toml"
    arguments = ("--config", str(settings), "--steps", "60", "--threads", "1", "--patience", "20", "--resume")
    result = command("train", "graph", "questions", "--out", "unfinished", *arguments)
    assert result["steps"] == 60
    rows = [json.loads(line) for line in (folders / "unfinished" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows][-1] == 60
    assert np.isfinite([row["loss"] for row in rows]).all()
