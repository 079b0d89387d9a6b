"""The command doctor: which files are damaged, with and without reading large ones completely."""

import json
import shutil
from pathlib import Path

import pytest

from command_line import Run, refused
from halfgraph.graph import inspection
from halfgraph.graph.manifest import BEGINNING
from halfgraph.graph.store import store_folder
from small_runs import people


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    place = folder / "place"
    place.mkdir()
    graph = people(place, count=300)
    store_folder(graph)
    (folder / "x").symlink_to(graph.path)
    return folder


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.fixture
def graph(run: Run) -> Path:
    shutil.copytree("x", "graph")
    return Path("graph")


def test_a_whole_graph_is_reported_as_such(run: Run, graph: Path) -> None:
    outcome = run("doctor", "graph", "--json")
    files = json.loads(outcome.out)["files"]
    assert outcome.code == 0
    assert {file["problem"] for file in files} == {""}
    names = {path.name for path in graph.iterdir() if path.is_file()} - {"manifest.json"}
    assert names <= {Path(file["path"]).name for file in files}
    assert any("store-whole" in file["path"] for file in files)
    assert "0 of" in run("doctor", "graph").err


def test_damage_missing_and_added_files_are_listed(run: Run, graph: Path) -> None:
    flip(graph / "train.tails.npy", -1)
    (graph / "aside.nq").unlink()
    (graph / "new.npy").touch()
    outcome = run("doctor", "graph", "--json")
    assert outcome.code == 1
    problems = {Path(file["path"]).name: file["problem"] for file in json.loads(outcome.out)["files"]}
    assert {name for name, problem in problems.items() if problem} == {"train.tails.npy", "aside.nq", "new.npy"}
    assert "checksum" in problems["train.tails.npy"]
    assert problems["aside.nq"] == "is missing"


def test_a_large_file_is_read_completely_on_request(run: Run, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "LARGE", BEGINNING)
    flip(graph / "whole.tails.npy", -1)
    outcome = run("doctor", "graph")
    assert outcome.code == 0
    assert "size and beginning" in outcome.out
    outcome = run("doctor", "graph", "--verify")
    assert outcome.code == 1
    assert "1 of" in outcome.err


def test_folders_without_a_manifest_are_named_and_others_refused(run: Run, graph: Path) -> None:
    (graph / "manifest.json").unlink()
    assert "earlier versions" in " ".join(run("doctor", "graph").out.split())
    for store in graph.glob("store-*"):
        (store / "manifest.json").unlink()
    assert "nothing to check against" in run("doctor", "graph").err
    Path("empty").mkdir()
    refused(run("doctor", "empty"), "no graph, workload or run here")
    refused(run("doctor", "absent"), "no such folder")
