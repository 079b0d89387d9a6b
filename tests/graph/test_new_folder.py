"""Locks, and writes that fail or are killed at any step."""

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from halfgraph.errors import FolderError
from halfgraph.graph.files import write_atomically
from halfgraph.graph.manifest import check_file, has_file, remove_file, replaced_file, write_manifest
from halfgraph.graph.new_folder import folder_lock, new_folder

HOLDER = """
import sys
from pathlib import Path
from halfgraph.graph.new_folder import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
CALLS = ("open", "fsync", "replace", "rename", "unlink")


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that holds the lock of a folder."""
    arguments = [sys.executable, "-c", HOLDER, str(tmp_path)]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_says_who_holds_it_and_ends_with_its_process(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    said = rf"is in use by process {holder.pid} on .+ since \d{{4}}-\d\d-\d\d .+ UTC: -c .*Wait until it ends"
    with pytest.raises(FolderError, match=said), folder_lock(tmp_path):
        pass
    holder.kill()
    holder.communicate()
    assert (tmp_path / ".lock").exists()
    with folder_lock(tmp_path):
        assert f"process {os.getpid()} " in (tmp_path / ".lock").read_text()
    assert not (tmp_path / ".lock").exists()


def test_two_makers_of_one_folder_are_told_so_at_once(tmp_path: Path) -> None:
    def second() -> None:
        with new_folder(tmp_path / "a", made_by="the second"):
            pass

    with new_folder(tmp_path / "a", made_by="the first") as folder:
        (folder / "x").touch()
        with pytest.raises(FolderError, match=f"is in use by process {os.getpid()}"):
            second()
    with pytest.raises(FolderError, match="exists already"):
        second()
    assert {path.name for path in tmp_path.iterdir()} == {"a"}


def test_a_folder_that_cannot_be_changed_or_is_gone_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    with folder_lock(tmp_path / "run"):
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(FolderError, match="cannot be written: No such file"):
            write_atomically(tmp_path / "run" / "file", "text")
    for number in (errno.EACCES, errno.EROFS, errno.ENOSPC):

        def refuse(*_: object, number: int = number) -> int:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refuse)
            with pytest.raises(FolderError, match=f"cannot be written: {os.strerror(number)}"), folder_lock(tmp_path):
                pass


def count_calls(work: Callable[[], None]) -> int:
    """How often some work calls the file system."""
    with pytest.MonkeyPatch.context() as patch:
        calls: list[str] = []
        patch_calls(patch, lambda name: calls.append(name))
        work()
    return len(calls)


def patch_calls(patch: pytest.MonkeyPatch, before: Callable[[str], None]) -> None:
    for name in CALLS:
        original = getattr(os, name)

        def call(
            *given: object, name: str = name, original: Callable[..., object] = original, **others: object
        ) -> object:
            before(name)
            return original(*given, **others)

        patch.setattr(os, name, call)


class Failing:
    """Fails at one call, with an error or by the end of the process."""

    def __init__(self, at: int, *, kill: bool) -> None:
        self.left, self.kill = at, kill

    def __call__(self, name: str) -> None:
        self.left -= 1
        if self.left == 0:
            if self.kill:
                os._exit(9)
            raise OSError(errno.EIO, f"{name} fails")


def attempt(work: Callable[[], None], failing: Failing) -> bool:
    """Whether some work ends well although one call fails; a killed one does not."""
    if failing.kill:
        if child := os.fork():
            return os.waitpid(child, 0)[1] == 0
        try:
            _patched(work, failing)
        finally:
            os._exit(0)
    try:
        _patched(work, failing)
    except FolderError:
        return False
    return True


def _patched(work: Callable[[], None], failing: Failing) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch_calls(patch, failing)
        work()


@pytest.mark.parametrize("kill", [False, True], ids=["failing", "killed"])
def test_a_new_folder_is_whole_or_not_there_whatever_call_fails(tmp_path: Path, kill: bool) -> None:
    def work() -> None:
        with new_folder(place / "a" / "b", made_by="the test") as folder:
            (folder / "x").write_text("1")
            (folder / "y").write_text("2")

    place = tmp_path / "counted"
    total = count_calls(work)
    assert total > 10
    for at in range(1, total + 1):
        place = tmp_path / str(at)
        ended = attempt(work, Failing(at, kill=kill))
        folder = place / "a" / "b"
        if folder.exists():
            assert [check_file(folder / name, "").read_text() for name in ("x", "y")] == ["1", "2"]
        else:
            assert not ended
            assert kill or not place.exists(), at
            work()  # what was left does not hinder it
            assert {path.name for path in (place / "a").iterdir()} == {"b"}


@pytest.mark.parametrize("kill", [False, True], ids=["failing", "killed"])
def test_a_replaced_or_removed_file_is_old_or_new_and_fits_the_manifest(tmp_path: Path, kill: bool) -> None:
    def work() -> None:
        with replaced_file(folder / "x", advice="") as part:
            part.write_text(f"new {next(numbers)}")
        remove_file(folder / "y")
        with replaced_file(folder / "z", advice="") as part:
            part.write_text("first")

    def start(name: str) -> Path:
        made = tmp_path / name
        made.mkdir()
        for file in ("x", "y"):
            (made / file).write_text("old")
        write_manifest(made)
        return made

    numbers = count()
    folder = start("counted")
    for at in range(1, count_calls(work) + 1):
        folder = start(str(at))
        for _ in range(2):
            attempt(work, Failing(at, kill=kill))
        assert check_file(folder / "x", "").read_text()[:3] in ("old", "new")
        assert not has_file(folder / "y", "") or check_file(folder / "y", "").read_text() == "old"
        assert not has_file(folder / "z", "") or check_file(folder / "z", "").read_text() == "first"
        work()
        assert check_file(folder / "x", "").read_text().startswith("new")
        assert not has_file(folder / "y", "")
        (folder / "z").unlink()
        with pytest.raises(FolderError, match="z: is missing"):
            has_file(folder / "z", "")


def test_everything_is_on_the_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[tuple[str, str]] = []
    rename, replace = os.rename, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda handle: events.append(("sync", str(Path(f"/proc/self/fd/{handle}").readlink())))
    )
    monkeypatch.setattr(os, "rename", lambda old, new: [events.append(("name", str(old))), rename(old, new)])
    monkeypatch.setattr(os, "replace", lambda old, new: [events.append(("name", str(old))), replace(old, new)])
    with new_folder(tmp_path / "a", made_by="the test") as folder:
        (folder / "x").write_text("1")
    part = str(folder)
    order = [(what, re.sub(r"/\.manifest\.json\.part-.*", "/manifest.json", path)) for what, path in events]
    manifest, named = f"{part}/manifest.json", ("name", part)
    assert order == [
        ("sync", f"{part}/x"),
        *(("sync", manifest), ("name", manifest), ("sync", part), ("sync", part)),
        named,
        ("sync", str(tmp_path)),
    ]
