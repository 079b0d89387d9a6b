"""A graph folder: graph.json, memory-mapped arrays, names, and statements set aside for the store."""

import contextlib
import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError
from halfgraph.graph.files import PART, is_full, part_path
from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph
from halfgraph.graph.names import Namer
from halfgraph.graph.splitting import Shares, split
from halfgraph.graph.vocabulary import Texts, Vocabulary

FORMAT = 1
DESCRIPTION = "graph.json"
ASIDE = "aside.nq"
_AGAIN = "Import the graph again."
# The splits of each view; a graph without a split has only the first.
VIEWS = {
    "train": ("train",),
    "valid": ("valid",),
    "test": ("test",),
    "known": ("train", "valid"),
    "whole": ("train", "valid", "test"),
}


@dataclass(frozen=True)
class Graph:
    """A knowledge graph with its names, types and splits, opened from a folder."""

    path: Path
    description: Mapping[str, Any] = field(repr=False)
    _views: dict[str, KnowledgeGraph] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a graph folder."""
        path = Path(path)
        if PART in path.name:
            problem = "is incomplete: it is still being written, or its import was killed"
            raise FolderError(path, problem, advice="Pass the folder that the import creates.")
        made_by = "halfgraph import SOURCE --out FOLDER"
        return cls(path, _upgrade(read_description(path / DESCRIPTION, "graph", made_by, _AGAIN)))

    @property
    def fingerprint(self) -> str:
        """Hash of the names, types and triples."""
        return str(self.description["fingerprint"])

    @property
    def has_split(self) -> bool:
        """True if there are valid or test triples."""
        return bool(self.description["split"])

    @property
    def held_out(self) -> Mapping[str, Any] | None:
        """The count, seed and share of `with_held_out`; None for a graph as it was imported."""
        held_out: Mapping[str, Any] | None = self.description.get("held_out")
        return held_out

    def with_held_out(self, count: int, seed: int) -> Self:
        """Return this graph without a split as one with at most `count` random validation triples, and no test triples.

        Every entity and relation keeps a training triple. The same count and seed hold out the same triples.
        """
        assert not self.has_split, "a split holds out triples already"
        whole = self.whole
        parts = split(whole.triples(), Shares(whole.triple_count - count, count, 0), seed)
        views = {name: KnowledgeGraph.of(parts[name], self.types, whole.relation_count) for name in parts}
        sizes = {name: view.triple_count for name, view in views.items()}
        held_out = {"count": sizes["valid"], "seed": seed, "share": round(sizes["valid"] / whole.triple_count, 4)}
        counts = {**self.description["counts"], "triples": sizes}
        graph = replace(self, description={**self.description, "split": True, "counts": counts, "held_out": held_out})
        graph._views.update(views, known=whole, whole=whole)
        return graph

    @cached_property
    def entities(self) -> Vocabulary:
        return self._vocabulary("entities")

    @cached_property
    def relations(self) -> Vocabulary:
        """The names and labels; relation r of an edge has the name r // 2."""
        return self._vocabulary("relations")

    @cached_property
    def types(self) -> EntityTypes:
        types = self.description["types"]
        return EntityTypes(tuple(types["names"]), np.array(types["starts"], np.int64))

    def is_type_stated(self, entity: int) -> bool:
        """Return whether the graph states the type of an entity, or a subclass of it; if not, the import chose it."""
        type_id = int(self.types.of(entity))
        return entity < int(self.types.starts[type_id]) + int(self.description["types"]["stated"][type_id])

    def untyped(self) -> NDArray[np.int64]:
        """Return the entities whose type the graph does not state."""
        starts, stated = self.types.starts, np.asarray(self.description["types"]["stated"])
        ranges = [np.arange(first, last) for first, last in zip(starts[:-1] + stated, starts[1:], strict=True)]
        return np.concatenate([np.empty(0, np.int64), *ranges])

    @cached_property
    def namer(self) -> Namer:
        return Namer(self.description["base"])

    @property
    def train(self) -> KnowledgeGraph:
        """The training triples; all triples if there is no split."""
        return self.view("train")

    @property
    def valid(self) -> KnowledgeGraph:
        return self.view("valid")

    @property
    def test(self) -> KnowledgeGraph:
        return self.view("test")

    @property
    def known(self) -> KnowledgeGraph:
        return self.view("known")

    @property
    def whole(self) -> KnowledgeGraph:
        return self.view("whole")

    def view(self, name: str) -> KnowledgeGraph:
        """Return the triples of a view, a key of VIEWS; without a split, valid and test are empty."""
        name = name if self.has_split or name in ("valid", "test") else "train"
        if name not in self._views:
            relation_count = 2 * int(self.description["counts"]["relations"])
            if self.has_split or name == "train":
                starts, relations, tails = self._arrays(name, VIEW_PARTS)
                self._views[name] = KnowledgeGraph(starts, relations, tails, self.types, relation_count)
            else:
                self._views[name] = KnowledgeGraph.of(np.empty((0, 3), np.int32), self.types, relation_count)
        return self._views[name]

    def find_entity(self, iri: str, *, or_name: bool = False) -> int | None:
        """Return the entity with this IRI, or None; with `or_name` also by its name or another spelling of the IRI."""
        return self._find(self.entities, iri, or_name)

    def find_relation(self, iri: str) -> int | None:
        """Return the relation, in its own direction (an even number), with this IRI, or None."""
        number = self._find(self.relations, iri)
        return None if number is None else 2 * number

    def _find(self, words: Vocabulary, iri: str, or_name: bool = False) -> int | None:
        names = (name for name in self.namer.names(iri) if or_name or self.namer.iri(name) == iri)
        return next((number for name in names if (number := words.find(name)) is not None), None)

    def relation_name(self, relation: int) -> str:
        """Return the name of a directed relation; an inverse ends with ^-1."""
        return self.relations.name(relation // 2) + ("^-1" if relation & 1 else "")

    def _vocabulary(self, name: str) -> Vocabulary:
        parts = self._arrays(name, VOCABULARY_PARTS)
        return Vocabulary(Texts(parts[0], parts[1]), Texts(parts[2], parts[3]), parts[4], parts[5])

    def _arrays(self, name: str, parts: Sequence[str]) -> list[NDArray[Any]]:
        return [load_array(self.path / f"{name}.{part}.npy", _AGAIN) for part in parts]


VIEW_PARTS = ("starts", "relations", "tails")
VOCABULARY_PARTS = ("names", "name_offsets", "labels", "label_offsets", "hashes", "by_hash")


def read_description(path: Path, what: str, made_by: str, again: str) -> dict[str, Any]:
    """Read the JSON file that describes a folder, and check its format; `made_by` and `again` are advice for errors."""
    try:
        description = dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError) as error:
        problem = f"no {what} here" if path.parent.is_dir() else "no such folder"
        raise FolderError(path.parent, problem, advice=f"Make one with: {made_by}") from error
    except (OSError, TypeError, ValueError) as error:
        raise FolderError(path, f"cannot be read: {error}", advice=again) from error
    if description.get("format") != FORMAT:
        problem = f"has format {description.get('format')}, but this halfgraph reads format {FORMAT}"
        raise FolderError(path.parent, problem, advice=again)
    return description


def load_array(path: Path, advice: str = "") -> NDArray[Any]:
    """Open an array as a memory map, or read it if it is empty."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r" if path.stat().st_size > 128 else None)
    except (EOFError, OSError, ValueError) as error:
        raise FolderError(path, f"cannot be read: {error}", advice=advice) from error
    return array


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as .npy; unlike np.save, report a full disk as such."""
    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data)


def save_vocabulary(folder: Path, name: str, words: Vocabulary) -> None:
    """Write the arrays of a vocabulary."""
    texts: tuple[NDArray[Any], ...] = (words.names.blob, words.names.offsets, words.labels.blob, words.labels.offsets)
    for part, array in zip(VOCABULARY_PARTS, (*texts, words.hashes, words.by_hash), strict=True):
        save_array(folder / f"{name}.{part}.npy", array)


def save_view(folder: Path, name: str, graph: KnowledgeGraph) -> None:
    """Write the arrays of a view."""
    for part in VIEW_PARTS:
        save_array(folder / f"{name}.{part}.npy", getattr(graph, part))


def fingerprint(folder: Path, types: EntityTypes, views: Sequence[str]) -> str:
    """Return twelve hexadecimal digits of a hash over the names, types and triples in a folder."""
    digest = hashlib.sha256(json.dumps([types.names, types.starts.tolist()]).encode())
    names = [f"{what}.{part}" for what in ("entities", "relations") for part in ("names", "name_offsets")]
    for name in [*names, *(f"{view}.{part}" for view in views for part in VIEW_PARTS)]:
        digest.update(np.ascontiguousarray(load_array(folder / f"{name}.npy")).data)
    return digest.hexdigest()[:12]


def refuse_existing(path: Path, *, made_by: str) -> None:
    """Raise FolderError if the path exists."""
    if path.exists():
        raise FolderError(path, "exists already", advice=f"Remove it, or write {made_by} to another --out.")


@contextlib.contextmanager
def new_folder(path: Path, *, made_by: str) -> Iterator[Path]:
    """Temporary folder that takes the name `path` if the block ends without an error, and is removed otherwise."""
    part = part_path(path)
    missing: list[Path] = []
    try:
        refuse_existing(path, made_by=made_by)
        missing = [parent for parent in path.parents if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(path)
        part.mkdir()
        yield part
        part.rename(path)
    except OSError as error:
        problem = error.strerror or ("No space left on device" if is_full(error) else str(error))
        advice = "No files were kept. Make room or choose another place." if is_full(error) else "Choose another place."
        raise FolderError(path, f"cannot be written: {problem}", advice=advice) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        for parent in missing:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()


def _remove_stale(path: Path) -> None:
    """Remove the incomplete folders that killed processes left beside `path`."""
    for part in path.parent.glob(f".{glob.escape(path.name)}{PART}*"):
        # In a container a process may well have the number that the killed one had.
        if part == part_path(path) or not _is_running(part.name.rpartition(PART)[2].partition("-")[0]):
            shutil.rmtree(part, ignore_errors=True)


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError, ValueError):
        return True
    return True


def _upgrade(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description with today's keys: earlier versions had other names, and did not mark guessed types."""
    if "kinds" in description:
        description["types"] = description.pop("kinds")
        description["counts"]["types"] = description["counts"].pop("kinds")
    for row in description.get("report", ()):
        if "fate" in row:
            row["used_for"] = row.pop("fate")
    types = description["types"]
    types.setdefault("stated", np.diff(types["starts"]).tolist())
    description["counts"].setdefault("guessed_types", types["ways"].get("vote of their relations", 0))
    return description
