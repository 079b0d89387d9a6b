"""The manifest of a folder: size and checksum of each file, written last, and the checks against it.

A file is checked when it is opened: a large one by its size and its beginning, any other by the checksum of all its
bytes. While a file is replaced it has two entries, the old and the new one, so that the manifest is right before and
after the new file takes its name. Folders of earlier versions (see description.py) have no manifest; only their content
is checked. In a folder of this version a missing manifest is damage.
"""

import contextlib
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from halfgraph.errors import FolderError
from halfgraph.graph.files import atomic_path, sync, write_atomically

MANIFEST = "manifest.json"
FORMAT = 1
LARGE = 64 << 20  # bytes; larger files are checked by their size and beginning
BEGINNING = 4096  # bytes
LONGEST_JSON = 256 << 20  # bytes of a JSON file
RENEW = "If you trust the files as they are, run: halfgraph doctor FOLDER --renew"
UNLISTED = ("LOCK", "LOG")  # files that the store's library writes whenever it opens a store
Entry = list[Any] | None  # size, checksum of the beginning, checksum of all; None: the file is absent
Entries = dict[str, list[Entry]]  # one for each file, or more while it is replaced or removed


def write_manifest(folder: Path) -> None:
    """Write the manifest of a folder as it is, when all its files are on the disk."""
    entries: Entries = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith((".", MANIFEST, *UNLISTED)):
            sync(path)
            entries[path.name] = [_entry(path)]
    _write(folder, entries)


def _write(folder: Path, entries: Entries, advice: str = "Choose another place.") -> None:
    content = json.dumps({"format": FORMAT, "files": entries}, indent=0)
    write_atomically(folder / MANIFEST, content, advice=advice)


def _entry(path: Path) -> list[Any]:
    with path.open("rb") as file:
        beginning = hashlib.sha256(file.read(BEGINNING)).hexdigest()
        file.seek(0)
        return [path.stat().st_size, beginning, hashlib.file_digest(file, "sha256").hexdigest()]


@contextlib.contextmanager
def replaced_file(path: Path, *, advice: str) -> Iterator[Path]:
    """Path of a temporary file that takes the name `path`, as `atomic_path`, and its place in the manifest."""
    with atomic_path(path, advice=advice) as part:
        yield part
        entries, entry = read_manifest(path.parent), _entry(part)
        if entries is not None:
            _write(path.parent, entries | {path.name: [*entries.get(path.name, [None]), entry]}, advice)
    if entries is not None:
        _write(path.parent, entries | {path.name: [entry]}, advice)


def remove_file(path: Path) -> None:
    """Remove a file, if there is one, and its entry in the manifest."""
    entries = read_manifest(path.parent) or {}
    if path.name in entries:
        _write(path.parent, entries | {path.name: [*entries[path.name], None]})
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        problem = f"cannot be removed: {error.strerror or error}"
        raise FolderError(path, problem, advice="Check the permissions of its folder.") from error
    if path.name in entries:
        del entries[path.name]
        _write(path.parent, entries)


def read_manifest(folder: Path) -> Entries | None:
    """Return the entries of a folder's manifest; None if it has none."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    status = path.stat()
    return dict(_read_manifest(path, status.st_mtime_ns, status.st_size, status.st_ino))


def require_manifest(folder: Path, advice: str) -> None:
    """Raise FolderError if a folder has no manifest, without which damage to its files goes unnoticed."""
    if read_manifest(folder) is None:
        problem = "is missing, so the files of this folder cannot be checked"
        raise FolderError(folder / MANIFEST, problem, advice=f"{_or(advice)} {RENEW}")


@lru_cache(64)
def _read_manifest(path: Path, *_: int) -> Mapping[str, list[Entry]]:
    advice = f"Restore it from a copy. {RENEW}"
    content = read_json(path, advice, listed=False)
    files = content.get("files")
    if content.get("format") != FORMAT or not isinstance(files, dict) or not all(map(_is_listing, files.values())):
        raise FolderError(path, f"is not a manifest of format {FORMAT}", advice=advice)
    return files


def _is_listing(value: object) -> bool:
    return isinstance(value, list) and all(entry is None or _is_entry(entry) for entry in value)


def _is_entry(value: object) -> bool:
    return isinstance(value, list) and [type(part) for part in value] == [int, str, str]


def check_file(path: Path, advice: str, *, large: float = LARGE) -> Path:
    """Return the path of a file after checking it: one with more than `large` bytes by its size and beginning."""
    for is_last in (False, True):  # the second time in case a new version has taken its place between the two steps
        entries = read_manifest(path.parent)
        size = _size(path, advice)
        if entries is None or any(_matches(path, size, entry, large) for entry in entries.get(path.name, ())):
            break
        if is_last:
            problem = _difference(entries.get(path.name), size)
            raise FolderError(path, problem, advice=_or(advice))
    return path


def has_file(path: Path, advice: str) -> bool:
    """Return whether an optional file is there; raise FolderError if the manifest says that it was."""
    listed = (read_manifest(path.parent) or {}).get(path.name)
    is_there = os.path.lexists(path)  # a broken link is there, and refused when it is opened
    if listed and None not in listed and not is_there:
        raise FolderError(path, "is missing", advice=_or(advice))
    return is_there


def _or(advice: str) -> str:
    return f"Restore it from a copy, or {advice[:1].lower()}{advice[1:]}" if advice else "Restore it from a copy."


def check_folder(folder: Path, advice: str) -> None:
    """Check all files that the manifest of a folder lists; raise FolderError for the first one that is damaged."""
    if folder.is_symlink():
        raise FolderError(folder, "is a link out of its folder", advice=advice)
    for path in folder.iterdir():
        _size(path, advice)
    total = 0  # the many files of a store count as one
    for name, entries in (read_manifest(folder) or {}).items():
        if None not in entries or (folder / name).exists():
            check_file(folder / name, advice, large=LARGE - total)
            total += (folder / name).stat().st_size


def _size(path: Path, advice: str) -> int:
    """Return the size of a regular file that is really in its folder."""
    try:
        status = path.stat()
        is_inside = not path.is_symlink() or path.resolve().is_relative_to(path.parent.resolve())
    except FileNotFoundError as error:
        raise FolderError(path, "is missing", advice=_or(advice)) from error
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError in Python 3.11
        problem = getattr(error, "strerror", None) or error
        raise FolderError(path, f"cannot be read: {problem}", advice=advice) from error
    if not is_inside:
        raise FolderError(path, "is a link out of its folder", advice="Put a copy of the file in its place.")
    if not stat.S_ISREG(status.st_mode):
        raise FolderError(path, "is not a file", advice=advice)
    return status.st_size


def _matches(path: Path, size: int, entry: Entry, large: float) -> bool:
    if entry is None or entry[0] != size:
        return False
    with open_file(path) as file:
        if hashlib.sha256(file.read(BEGINNING)).hexdigest() != entry[1]:
            return False
        file.seek(0)
        return size > large or hashlib.file_digest(file, "sha256").hexdigest() == entry[2]


def open_file(path: Path) -> io.BufferedReader:
    """Open a file of a folder to read it."""
    try:
        return path.open("rb")
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise FolderError(path, problem, advice="Check the permissions of the file.") from error


def _difference(entries: list[Entry] | None, size: int) -> str:
    sizes = [entry[0] for entry in entries or () if entry is not None]
    if not sizes:
        return f"is not one of the files that {MANIFEST} lists"
    if size not in sizes:
        return f"has {size:,} bytes, but {MANIFEST} says {sizes[-1]:,}"
    return f"has changed since it was written: its checksum is not the one in {MANIFEST}"


def read_json(path: Path, advice: str, *, listed: bool = True) -> dict[str, Any]:
    """Read an object from a JSON file of a folder; `listed` files are checked against the manifest."""
    if listed:
        check_file(path, advice)
    if (size := _size(path, advice)) > LONGEST_JSON:
        raise FolderError(path, f"has {size:,} bytes, more than the {LONGEST_JSON:,} that are read", advice=advice)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise FolderError(path, problem, advice=advice) from error
    if not isinstance(content, dict):
        raise FolderError(path, "is not a JSON object", advice=advice)
    return content


Fields = Mapping[str, Any]  # names with a type, or with the fields of an object


def require_fields(content: Mapping[str, Any], expected: Fields, path: Path, advice: str, inside: str = "") -> None:
    """Raise FolderError unless an object has these fields, with values of these types; no number may be negative."""
    for name, wanted in expected.items():
        value: Any = content.get(name)
        if isinstance(wanted, dict) and isinstance(value, dict):
            require_fields(value, wanted, path, advice, f"{inside}{name}.")
        elif type(value) is not wanted or (wanted is int and value < 0):
            raise FolderError(path, f'has no valid "{inside}{name}"', advice=advice)
