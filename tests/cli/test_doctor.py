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


def test_a_missing_manifest_is_damage_and_can_be_renewed(run: Run, graph: Path) -> None:
    (graph / "manifest.json").unlink()
    refused(run("stats", "graph"), "graph/manifest.json: is missing", "--renew")
    outcome = run("doctor", "graph", "--json")
    assert outcome.code == 1
    problems = {file["path"]: file["problem"] for file in json.loads(outcome.out)["files"] if file["problem"]}
    assert list(problems) == ["graph/manifest.json"]
    flip(graph / "train.tails.npy", -1)
    assert run("doctor", "graph", "--renew").code == 0
    assert run("doctor", "graph", "--verify").code == 0
    assert run("query", "graph", "SELECT ?x { ?x <livesIn> <city1> }").code == 0
    assert {path.name for path in graph.iterdir() if path.name.startswith(".")} == set()


def test_a_store_without_a_manifest_is_damage(run: Run, graph: Path) -> None:
    (graph / "store-whole" / "manifest.json").unlink()
    assert run("stats", "graph").code == 0
    assert run("doctor", "graph").code == 1
    said = "graph/store-whole/manifest.json: is missing", "remove this folder"
    refused(run("query", "graph", "SELECT ?x { ?x <livesIn> <city1> }"), *said)
    refused(run("build", "graph", "--seeds-query", "SELECT ?x { ?x ?p ?o }", "--out", "out"), *said)


def test_folders_of_earlier_versions_need_no_manifest_and_other_folders_are_refused(run: Run, graph: Path) -> None:
    described = json.loads((graph / "graph.json").read_text())
    (graph / "graph.json").write_text(json.dumps(described | {"format": 1}))
    for folder in (graph, *graph.glob("store-*")):
        (folder / "manifest.json").unlink()
    outcome = run("doctor", "graph")
    assert outcome.code == 0
    assert "earlier versions" in " ".join(outcome.out.split())
    assert "nothing to check against" in outcome.err
    Path("empty").mkdir()
    refused(run("doctor", "empty"), "no graph, workload or run here")
    refused(run("doctor", "absent"), "no such folder")
    refused(run("doctor", "empty", "--renew"), "no graph, workload or run here")


def test_examples_written_by_hand_are_no_damage(run: Run, graph: Path) -> None:
    (graph / "examples.json").write_text('{"examples": []}')
    assert run("doctor", "graph").code == 0
