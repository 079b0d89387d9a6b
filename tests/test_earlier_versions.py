"""Folders that the version before the redesign wrote still open, and give the answers that it gave by embedding.

`data/before/folders.tar.gz` holds a graph with a split, types, labels and literals, a workload, a calibrated run and an
interrupted run; `expected.json` is what that version answered. Its link models were others: `calibrate` makes new ones.
"""

import json
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
EMBEDDING = "vector"  # the name of the mode then
ASKED = [asked for asked in EXPECTED["asked"] if asked["mode"] == EMBEDDING]
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


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked["query"][31:])
def test_a_run_gives_the_same_answers_by_embedding(command: Command, asked: dict[str, Any]) -> None:
    answers = command("ask", "run", asked["query"], "--view", "train", "--top", "500")
    assert answers["mode"] == "embedding"
    assert [row["entity"] for row in answers["known"]] == asked["known"]
    # Then only entities of the likeliest type were predicted: they are in the same order, with the same scores.
    scores = {row["entity"]: row["score"] for row in answers["predicted"]}
    expected = {entity: score for entity, score, _ in asked["predicted"]}
    assert [entity for entity in scores if entity in expected] == list(expected)
    assert expected == {entity: pytest.approx(scores[entity], abs=2e-3) for entity in expected}
    assert all("confidence" not in row for row in answers["predicted"])


def test_a_run_is_evaluated_alike_on_its_workload(command: Command) -> None:
    figures = command("evaluate", "run", "--workload", "questions", "--no-baselines")
    assert figures["mode"] == "embedding"
    for metric, by_structure in EXPECTED["evaluated"][EMBEDDING].items():
        assert figures[metric] == {name: pytest.approx(value, abs=0.02) for name, value in by_structure.items()}


def test_a_run_without_link_models_gets_them_by_calibrate(command: Command, folders: Path) -> None:
    query = ASKED[0]["query"]
    with pytest.raises(AssertionError, match="halfgraph calibrate RUN"):
        command("ask", "run", query, "--mode", "links")
    assert command("calibrate", "run")["missing"] > 0
    answers = command("ask", "run", query, "--view", "train")
    assert answers["mode"] == "links"
    assert answers["predicted"]
    assert all(0 < row["confidence"] == row["score"] < 1 for row in answers["predicted"])


def test_an_interrupted_run_is_resumed(command: Command, folders: Path) -> None:
    settings = folders / "unfinished" / "config.toml"
    arguments = ("--config", str(settings), "--steps", "60", "--threads", "1", "--patience", "20", "--resume")
    result = command("train", "graph", "questions", "--out", "unfinished", *arguments)
    assert result["steps"] == 60
    rows = [json.loads(line) for line in (folders / "unfinished" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows][-1] == 60
    assert np.isfinite([row["loss"] for row in rows]).all()
