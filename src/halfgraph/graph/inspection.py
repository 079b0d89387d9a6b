"""Inspection of a folder: every file checked against the manifest, also those of its stores and of a run's graph."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from halfgraph.errors import FolderError
from halfgraph.graph.description import FORMAT, LAST_WITHOUT_MANIFEST
from halfgraph.graph.manifest import LARGE, MANIFEST, UNLISTED, check_file, read_json, read_manifest, write_manifest
from halfgraph.graph.new_folder import folder_lock

BY_HAND = ("examples.json",)  # files that users put there
DESCRIPTIONS = ("graph.json", "workload.json", "provenance.json")


@dataclass(frozen=True)
class FileReport:
    """A file, how it was checked, and what is wrong with it, if anything."""

    path: str
    bytes: int
    checked: str
    problem: str = ""


def inspect(folder: Path, *, whole: bool) -> Iterator[FileReport]:
    """Check all files of a graph, workload or run; `whole`: large files completely too."""
    _require_folder(folder)
    needs_manifest = _format(folder) > LAST_WITHOUT_MANIFEST
    for own in (folder, *sorted(folder.glob("store-*"))):
        yield from _inspect(own, whole, needs_manifest)
    provenance = folder / "provenance.json"
    with contextlib.suppress(FolderError):  # damage that is reported already
        if provenance.is_file() and (path := read_json(provenance, "").get("graph_path")):
            yield from _inspect_graph(Path(str(path)), whole)


def _inspect_graph(graph: Path, whole: bool) -> Iterator[FileReport]:
    if graph.is_dir():
        yield from inspect(graph, whole=whole)
    else:
        yield FileReport(str(graph), 0, "", "the graph of the run is not there")


def renew(folder: Path) -> None:
    """Write the manifest of a folder, and those of its stores, for the files as they are now."""
    _require_folder(folder)
    with folder_lock(folder):
        for own in (folder, *sorted(folder.glob("store-*"))):
            write_manifest(own)


def _require_folder(folder: Path) -> None:
    if not any((folder / name).exists() for name in (MANIFEST, *DESCRIPTIONS)):
        problem = "no graph, workload or run here" if folder.is_dir() else "no such folder"
        raise FolderError(folder, problem, advice="Pass a folder that halfgraph has made.")


def _format(folder: Path) -> int:
    """The format of a folder, as its description says; that of today if the description is damaged."""
    with contextlib.suppress(FolderError):
        for path in (folder / name for name in DESCRIPTIONS):
            if path.is_file() and type(number := read_json(path, "", listed=False).get("format")) is int:
                return number
    return FORMAT


def _inspect(folder: Path, whole: bool, needs_manifest: bool) -> Iterator[FileReport]:
    entries = read_manifest(folder)
    if entries is None and needs_manifest:
        yield FileReport(str(folder / MANIFEST), 0, "", "is missing, so the files of this folder cannot be checked")
        return
    if entries is None:
        yield FileReport(str(folder), 0, f"not checked: no {MANIFEST}, as in folders of earlier versions")
        return
    present = {path.name for path in folder.iterdir() if not path.name.startswith((".", "store-", MANIFEST, *UNLISTED))}
    for name in sorted(present.union(name for name, versions in entries.items() if None not in versions)):
        path = folder / name
        if name in BY_HAND and name not in entries:
            continue
        size = path.stat().st_size if path.is_file() else 0
        large = math.inf if whole else LARGE
        checked = "checksum" if size <= large else "size and beginning"
        try:
            check_file(path, "", large=large)
            yield FileReport(str(path), size, checked)
        except FolderError as error:
            yield FileReport(str(path), size, checked, error.problem)
