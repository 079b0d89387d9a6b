import json
import pickletools
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import FolderError, OtherGraph
from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import write_manifest
from halfgraph.training.run_folder import (
    FORMAT,
    PROVENANCE,
    load_tensors,
    provenance,
    read_provenance,
    save_tensors,
    trained_graph,
    write_atomically,
    write_toml,
)
from imported_graphs import made, tsv
from query_files import split_graph

TENSORS = {
    "table": torch.randn(4, 3, generator=torch.Generator().manual_seed(0)),
    "strided": torch.arange(6.0).view(2, 3).t(),
    "odd": torch.tensor([float("inf"), -0.0, 1e-45, float("nan")]),
    "parameter": torch.nn.Parameter(torch.ones(2)),
    "empty": torch.empty(0, 3),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"))


def test_tensors_come_back_bit_by_bit(tmp_path: Path) -> None:
    save_tensors(tmp_path / "t", TENSORS, {"step": "7", "said": "§ [] \n"})
    found, about = load_tensors(tmp_path / "t")
    assert about == {"step": "7", "said": "§ [] \n"}
    assert set(found) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert found[name].shape == tensor.shape
        assert found[name].numpy().tobytes() == tensor.detach().contiguous().numpy().tobytes()


def test_the_same_tensors_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_tensors(tmp_path / name, TENSORS, {"step": "7"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_of_tensors_is_no_pickle(tmp_path: Path) -> None:
    save_tensors(tmp_path / "t", TENSORS, {})
    with pytest.raises(ValueError, match=r"opcode|pickle"):
        list(pickletools.genops((tmp_path / "t").read_bytes()))


def test_tensors_that_cannot_be_written_leave_the_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_tensors(tmp_path / "t", TENSORS, {"step": "1"})

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    for write in (
        lambda: save_tensors(tmp_path / "t", TENSORS, {"step": "2"}),
        lambda: write_atomically(tmp_path / "t", "text"),
    ):
        with pytest.raises(FolderError, match=r"t: cannot be written: .*No space left on device.*pass resume"):
            write()
        assert load_tensors(tmp_path / "t")[1] == {"step": "1"}
        assert list(tmp_path.iterdir()) == [tmp_path / "t"]


def test_writing_to_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="cannot be written"):
        save_tensors(tmp_path / "gone" / "t", TENSORS, {})
    with pytest.raises(FolderError, match="cannot be written: No such file or directory"):
        write_atomically(tmp_path / "gone" / "t", "text")


@pytest.mark.parametrize("content", [b"", b"\x80\x04N.", b"\xff" * 100, b'\x10\0\0\0\0\0\0\0{"a": 1}'])
def test_a_file_that_holds_no_tensors_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(FolderError, match="cannot be read"):
        load_tensors(tmp_path / "t")


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    save_tensors(tmp_path / "t", TENSORS, {})
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(whole[:-10])
    with pytest.raises(FolderError, match="cannot be read"):
        load_tensors(tmp_path / "t")
    with pytest.raises(FolderError, match="absent: is not there"):
        load_tensors(tmp_path / "absent")


words = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"]))
plain = st.one_of(st.integers(-(2**40), 2**40), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), words)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), plain))
def test_settings_come_back_from_toml(values: dict[str, object]) -> None:
    text = write_toml({"one": values, "two": {"name": "CGA+KG+8[min]"}})
    found = tomllib.loads(text)
    assert found == {"one": values, "two": {"name": "CGA+KG+8[min]"}}
    assert {name: type(value) for name, value in found["one"].items()} == {
        name: type(value) for name, value in values.items()
    }


def test_a_runs_provenance_says_where_it_comes_from(graph: Graph, tmp_path: Path) -> None:
    said = provenance(graph, 7)
    assert (said["format"], said["graph"], said["seed"]) == (FORMAT, graph.fingerprint, 7)
    assert said["entities"] == 30
    assert said["torch"] == torch.__version__
    (tmp_path / PROVENANCE).write_text(json.dumps(said))
    write_manifest(tmp_path)
    assert read_provenance(tmp_path) == said
    trained_graph(tmp_path, graph)


def test_a_run_of_another_graph_is_refused(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / PROVENANCE).write_text(json.dumps(provenance(graph, 0) | {"graph": "0123456789ab"}))
    write_manifest(tmp_path)
    with pytest.raises(OtherGraph) as refused:
        trained_graph(tmp_path, graph)
    assert (refused.value.expected, refused.value.found) == ("0123456789ab", graph.fingerprint)


def test_a_run_gets_its_graph_with_the_same_triples_held_out(tmp_path: Path) -> None:
    whole = made(tmp_path, tsv((f"a{n % 9}", "r", f"b{n % 7}") for n in range(60)))
    held = whole.with_held_out(5, 3)
    (tmp_path / PROVENANCE).write_text(json.dumps(provenance(held, 0)))
    write_manifest(tmp_path)
    again = trained_graph(tmp_path, Graph.open(whole.path))
    assert np.array_equal(again.valid.triples(), held.valid.triples())
    assert trained_graph(tmp_path, held) is held
    with pytest.raises(FolderError, match="other triples held out"):
        trained_graph(tmp_path, whole.with_held_out(5, 4))


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no run here"):
        read_provenance(tmp_path)
    with pytest.raises(FolderError, match="no such folder"):
        read_provenance(tmp_path / "absent")
    for text, said in (("{", "cannot be read"), ('{"format": 99}', "has format 99, but this halfgraph reads format")):
        (tmp_path / PROVENANCE).write_text(text)
        with pytest.raises(FolderError, match=said):
            read_provenance(tmp_path)


@pytest.mark.parametrize("text", ["[]", "3", '"words"', '{"format": 1}'])
def test_a_provenance_that_lacks_what_it_should_have_is_refused(graph: Graph, tmp_path: Path, text: str) -> None:
    (tmp_path / PROVENANCE).write_text(text)
    with pytest.raises(FolderError):
        trained_graph(tmp_path, graph)


def test_no_file_of_the_house_writes_or_loads_a_pickle_of_weights() -> None:
    house = Path(__file__).parents[2] / "src" / "halfgraph"
    for room in ("model", "training", "evaluation"):
        for path in (house / room).glob("*.py"):
            text = path.read_text(encoding="utf-8")
            for words in ("torch.save", "torch.load", "import pickle", "allow_pickle=True", "joblib"):
                assert words not in text, f"{path}: {words}"
