"""The manifest: files are checked by size, beginning and checksum, links and wrong types of file refused."""

import json
import os
from pathlib import Path

import pytest

from halfgraph.errors import FolderError
from halfgraph.graph import manifest
from halfgraph.graph.manifest import check_file, check_folder, has_file, read_json, require_fields, write_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    (made / "large").write_bytes(bytes(10_000))
    (made / "small.json").write_text('{"a": 1}')
    write_manifest(made)
    return made


def test_a_large_file_is_checked_by_its_beginning_and_size(folder: Path) -> None:
    def change(at: int) -> None:
        with (folder / "large").open("r+b") as file:
            file.seek(at)
            file.write(b"x")

    change(9_000)
    check_file(folder / "large", "", large=5_000)
    with pytest.raises(FolderError, match="has changed since it was written"):
        check_file(folder / "large", "")
    with pytest.raises(FolderError, match="has changed since it was written"):
        check_folder(folder, "")
    change(10)
    with pytest.raises(FolderError, match="has changed"):
        check_file(folder / "large", "", large=5_000)
    change(10_000)
    with pytest.raises(FolderError, match=r"has 10,001 bytes, but manifest\.json says 10,000"):
        check_file(folder / "large", "", large=5_000)


def test_what_is_no_file_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    for name, make, said in (
        ("link", lambda path: path.symlink_to(tmp_path / "secret"), "is a link out of its folder"),
        ("pipe", os.mkfifo, "is not a file"),
        ("inner", Path.mkdir, "is not a file"),
        ("loop", lambda path: path.symlink_to(path), "cannot be read"),
    ):
        make(folder / name)
        with pytest.raises(FolderError, match=f"{name}: {said}"):
            check_file(folder / name, "Make it again.")
    (folder / "more").touch()
    with pytest.raises(FolderError, match=r"not one of the files that manifest\.json lists.*or make it again"):
        check_file(folder / "more", "Make it again.")
    (folder / "large").unlink()
    with pytest.raises(FolderError, match="is missing"):
        has_file(folder / "large", "")
    assert not has_file(folder / "none", "")


def test_a_link_to_a_file_in_the_folder_is_that_file(folder: Path) -> None:
    (folder / "large").rename(folder / "moved")
    (folder / "large").symlink_to("moved")
    assert check_file(folder / "large", "") == folder / "large"


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 200_000, '{"format": 1}', '{"format": 1, "files": {"a": 3}}'])
def test_a_broken_manifest_is_one_clear_error(folder: Path, content: str) -> None:
    (folder / "manifest.json").write_text(content)
    with pytest.raises(FolderError, match=r"manifest\.json: .*run: halfgraph doctor FOLDER --renew"):
        check_file(folder / "large", "")


def test_a_new_version_that_takes_its_place_meanwhile_is_no_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = json.loads((folder / "manifest.json").read_text())["files"]
    (folder / "large").write_bytes(b"new")
    write_manifest(folder)
    seen = iter([old])
    read = manifest.read_manifest
    monkeypatch.setattr(manifest, "read_manifest", lambda path: next(seen, None) or read(path))
    check_file(folder / "large", "")


def test_json_that_is_too_long_or_lacks_fields_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_json(folder / "small.json", "") == {"a": 1}
    fields = {"a": int, "b": {"c": str}}
    require_fields({"a": 1, "b": {"c": ""}}, fields, folder, "")
    for content, name in (({"a": -1}, "a"), ({"a": True}, "a"), ({"a": 1, "b": []}, "b"), ({"a": 1, "b": {}}, "b.c")):
        with pytest.raises(FolderError, match=f'has no valid "{name}"'):
            require_fields(content, fields, folder, "")
    monkeypatch.setattr(manifest, "LONGEST_JSON", 5)
    with pytest.raises(FolderError, match="has 8 bytes, more than the 5 that are read"):
        read_json(folder / "small.json", "")
