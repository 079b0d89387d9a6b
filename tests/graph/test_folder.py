import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import FolderError
from halfgraph.graph.arrays import load_array, save_array
from halfgraph.graph.folder import VIEWS, Graph
from halfgraph.graph.importing import ImportOptions, import_graph
from halfgraph.graph.new_folder import new_folder
from halfgraph.graph.splitting import Shares
from imported_graphs import edges_by_name, made, short_lived, triples_by_name, tsv, types_by_name
from oracles import Named, edges, entities
from strategies import named_triples

TRIPLES = [(f"e{n % 50}", f"r{n % 7}", f"e{n * n % 50}") for n in range(400)]


@given(named_triples())
def test_a_graph_opened_again_is_equal(triples: list[Named]) -> None:
    with short_lived(tsv(triples), split=Shares(80, 10, 10)) as graph:
        again = Graph.open(str(graph.path))
        assert again.fingerprint == graph.fingerprint
        assert again.description == graph.description
        assert types_by_name(again) == types_by_name(graph)
        assert set(triples_by_name(again, again.whole)) == set(triples)
        for view in VIEWS:
            assert edges_by_name(again, getattr(again, view)) == edges_by_name(graph, getattr(graph, view))


@given(named_triples())
def test_the_views_are_unions_of_the_splits(triples: list[Named]) -> None:
    with short_lived(tsv(triples), split=Shares(60, 20, 20)) as graph:
        found = {view: set(triples_by_name(graph, getattr(graph, view))) for view in VIEWS}
        assert found["known"] == found["train"] | found["valid"]
        assert found["whole"] == found["known"] | found["test"] == set(triples)
        assert set(edges_by_name(graph, graph.whole)) == edges(triples)


def test_a_graph_without_a_split_is_all_train(tmp_path: Path) -> None:
    graph = made(tmp_path, tsv(TRIPLES))
    assert not graph.has_split
    assert graph.description["counts"]["triples"] == {"train": len(set(TRIPLES)), "valid": 0, "test": 0}
    assert graph.whole is graph.known is graph.train
    assert graph.view("whole").triple_count == graph.view("known").triple_count == graph.train.triple_count
    assert graph.valid.triple_count == graph.test.triple_count == 0
    assert graph.test.entity_count == graph.train.entity_count


@given(named_triples(), st.integers(1, 12), st.integers(0, 3))
def test_a_graph_with_triples_held_out_is_as_one_with_a_split(triples: list[Named], count: int, seed: int) -> None:
    with short_lived(tsv(triples)) as graph:
        held, again = (Graph.open(graph.path).with_held_out(count, seed) for _ in range(2))
        found = {view: set(triples_by_name(held, held.view(view))) for view in VIEWS}
        assert found == {view: set(triples_by_name(again, again.view(view))) for view in VIEWS}
        assert found["train"] | found["valid"] == found["known"] == found["whole"] == set(triples)
        assert not found["train"] & found["valid"]
        assert not found["test"]
        assert entities(found["train"]) == entities(triples)
        assert {relation for _, relation, _ in found["train"]} == {relation for _, relation, _ in triples}
        assert len(found["valid"]) <= count
        assert held.description["counts"]["triples"] == {name: len(found[name]) for name in ("train", "valid", "test")}
        assert held.held_out == again.held_out
        assert held.has_split
        assert held.fingerprint == graph.fingerprint
        assert not graph.has_split


def test_as_many_triples_are_held_out_as_asked_and_by_the_seed(tmp_path: Path) -> None:
    graph = made(tmp_path, tsv(TRIPLES))
    first, second = (graph.with_held_out(30, seed) for seed in (1, 2))
    assert first.held_out == {"count": 30, "seed": 1, "share": round(30 / len(set(TRIPLES)), 4)}
    assert set(triples_by_name(first, first.valid)) != set(triples_by_name(second, second.valid))


def test_arrays_are_mapped_and_not_read(tmp_path: Path) -> None:
    graph = made(tmp_path, tsv(TRIPLES))
    assert isinstance(graph.train.tails, np.memmap)
    assert isinstance(graph.entities.names.blob, np.memmap)


@pytest.mark.parametrize("array", [np.arange(5), np.empty(0, np.int32), np.empty((0, 3), np.uint8)])
def test_a_saved_array_loads_as_it_was(tmp_path: Path, array: np.ndarray) -> None:
    save_array(tmp_path / "a.npy", array)
    loaded = load_array(tmp_path / "a.npy")
    assert loaded.dtype == array.dtype
    assert np.array_equal(loaded, array)


def test_what_is_no_graph_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name, said in {"empty": "no graph here", "file": "no such folder", "none": "no such folder"}.items():
        with pytest.raises(FolderError, match=said):
            Graph.open(tmp_path / name)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "\xff", json.dumps({"format": 99}), "{}"])
def test_a_broken_description_is_one_clear_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "graph.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(FolderError, match="Import the graph again"):
        Graph.open(tmp_path)


@pytest.mark.parametrize("keep", [0, 50, 200])
def test_a_broken_array_is_one_clear_error(tmp_path: Path, keep: int) -> None:
    graph = made(tmp_path, tsv(TRIPLES))
    os.truncate(graph.path / "train.tails.npy", keep)
    with pytest.raises(FolderError, match=r"train\.tails\.npy"):
        _ = graph.train
    (graph.path / "train.starts.npy").unlink()
    with pytest.raises(FolderError, match=r"train\.starts\.npy"):
        _ = graph.train


def test_a_new_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a" / "b", made_by="the test") as folder:
        (folder / "x").touch()
        assert not (tmp_path / "a" / "b").exists()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["x", "manifest.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_folder_that_fails_leaves_nothing_behind(tmp_path: Path, error: type[BaseException]) -> None:
    def fail() -> None:
        with new_folder(tmp_path / "a" / "b" / "c", made_by="the test") as folder:
            (folder / "x").touch()
            raise error

    with pytest.raises(error):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_never_changed(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="exists already"), new_folder(tmp_path, made_by="the test"):
        pass
    assert tmp_path.is_dir()


def test_what_killed_runs_left_is_removed_and_what_belongs_to_others_is_not(tmp_path: Path) -> None:
    left = [tmp_path / ".[a].part-1-1", tmp_path / f".[a].part-{os.getpid()}-{threading.get_native_id()}"]
    others = [tmp_path / ".b.part-x", tmp_path / ".a.part-9-9"]
    for folder in (*left, *others):
        folder.mkdir()
    with new_folder(tmp_path / "[a]", made_by="the test"):
        pass
    assert not any(folder.exists() for folder in left)
    assert all(folder.exists() for folder in others)


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "graph", tmp_path / ("x" * 300), tmp_path / ("x" * 300) / "y"):
        with pytest.raises(FolderError, match="cannot be written"), new_folder(path, made_by="the test"):
            pass


def run_import(source: Path, out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "from halfgraph.cli import main; main()", "import", str(source), "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def opens(path: Path) -> bool:
    try:
        Graph.open(path)
    except FolderError:
        return False
    return True


def test_a_folder_that_is_not_complete_does_not_open_even_with_all_its_files(tmp_path: Path) -> None:
    source = tmp_path / "a.tsv"
    source.write_text("a\tr\tb\n")
    graph = import_graph([source], tmp_path / "graph", ImportOptions())
    part = graph.path.rename(tmp_path / ".graph.part-1-2")
    with pytest.raises(FolderError, match="still being written"):
        Graph.open(part)


def test_a_killed_import_leaves_nothing_that_opens_as_a_graph(tmp_path: Path) -> None:
    source, out = tmp_path / "big.tsv", tmp_path / "place" / "graph"
    source.write_text(tsv((f"e{n % 5003}", f"r{n % 7}", f"e{n * n % 5003}") for n in range(100_000)))
    begun = time.monotonic()
    run_import(source, out).wait()
    whole, reference = time.monotonic() - begun, Graph.open(out).fingerprint
    rng, killed = random.Random(0), 0
    for _ in range(5):
        shutil.rmtree(out, ignore_errors=True)
        process = run_import(source, out)
        time.sleep(whole * rng.uniform(0.3, 1.0))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        assert out.exists() == opens(out)  # it was complete, or it is not there
        assert not any(opens(path) for path in out.parent.glob("**/*") if path.is_dir() and path != out)
    shutil.rmtree(out, ignore_errors=True)
    assert run_import(source, out).wait() == 0
    assert Graph.open(out).fingerprint == reference
    assert [path.name for path in out.parent.iterdir()] == ["graph"]
    assert killed


def test_an_import_killed_just_before_the_end_leaves_no_graph(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tr\tb\n")
    script = (
        "import os, signal, pathlib\n"
        "pathlib.Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from halfgraph.cli import main\n"
        "main(['import', 'a.tsv', '--out', 'graph'])"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path).returncode == -signal.SIGKILL
    assert not (tmp_path / "graph").exists()
    assert len(list(tmp_path.glob(".graph.part-*"))) == 1
    again = [sys.executable, "-c", "from halfgraph.cli import main; main()", "import", "a.tsv", "--out", "graph"]
    subprocess.run(again, cwd=tmp_path, check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv", "graph"]


def test_entities_and_relations_are_found_by_the_iris_of_the_store(tmp_path: Path) -> None:
    graph = made(tmp_path, "Zoë\tlives in\tNew York\n")
    base = graph.namer.base
    for entity, name in enumerate(graph.entities.names):
        assert graph.find_entity(graph.namer.iri(name)) == graph.find_entity(name, or_name=True) == entity
        assert graph.find_entity(name) is None
    assert graph.find_relation(f"{base}lives%20in") == 0
    assert graph.find_relation("lives in") is None
    zoe = graph.entities.find("Zoë")
    assert graph.find_entity(f"{base}Zo%C3%AB") is None  # the store knows only the other spelling
    assert graph.find_entity(f"{base}Zo%C3%AB", or_name=True) == zoe
    assert graph.view("known") is graph.view("whole") is graph.train
    assert graph.view("test").triple_count == 0
