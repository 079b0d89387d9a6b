"""A graph folder: graph.json, memory-mapped arrays, names, and statements set aside for the store."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError, SettingError
from halfgraph.graph.arrays import ArrayCheck, load_array, save_array
from halfgraph.graph.description import AGAIN, graph_description
from halfgraph.graph.files import PART
from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph
from halfgraph.graph.manifest import has_file
from halfgraph.graph.names import Namer
from halfgraph.graph.splitting import Shares, split
from halfgraph.graph.vocabulary import Texts, Vocabulary

DESCRIPTION = "graph.json"
ASIDE = "aside.nq"
NAMED_ONLY = "named-only.npy"  # keys of the triples that are not in the default graph
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
        return cls(path, graph_description(path / DESCRIPTION))

    def __repr__(self) -> str:
        counts = self.description["counts"]
        sizes = f"{counts['entities']:,} entities of {len(self.types):,} types, {counts['relations']:,} relations"
        return f"Graph({str(self.path)!r}: {sizes}, {sum(counts['triples'].values()):,} triples)"

    @property
    def fingerprint(self) -> str:
        """Hash of the names, types and triples."""
        return str(self.description["fingerprint"])

    @property
    def has_split(self) -> bool:
        """True if there are valid or test triples."""
        return bool(self.description["split"])

    @property
    def is_union(self) -> bool:
        """True if the default graph has the statements of all graphs, as it always had in earlier versions."""
        return bool(self.description.get("union", True))

    @cached_property
    def named_only(self) -> NDArray[np.int64]:
        """The sorted keys (`triple_keys`) of the triples that only named graphs have."""
        path = self.path / NAMED_ONLY
        return load_array(path, AGAIN, np.int64) if has_file(path, AGAIN) else np.empty(0, np.int64)

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
        check_view(name)
        name = name if self.has_split or name in ("valid", "test") else "train"
        if name not in self._views:
            relation_count = 2 * int(self.description["counts"]["relations"])
            if self.has_split or name == "train":
                starts, relations, tails = self._arrays(name, VIEW_PARTS)
                view = KnowledgeGraph(starts, relations, tails, self.types, relation_count)
                self._check_view(name, view)
                self._views[name] = view
            else:
                self._views[name] = KnowledgeGraph.of(np.empty((0, 3), np.int32), self.types, relation_count)
        return self._views[name]

    def _check_view(self, name: str, view: KnowledgeGraph) -> None:
        count, edges, check = int(self.types.starts[-1]), len(view.relations), self._array_check
        check.ranges(f"{name}.starts.npy", view.starts, edges, count)
        check.ids(f"{name}.relations.npy", view.relations, edges, view.relation_count)
        check.ids(f"{name}.tails.npy", view.tails, edges, count)

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
        names, name_offsets, labels, label_offsets, hashes, by_hash = self._arrays(name, VOCABULARY_PARTS)
        count, check = int(self.description["counts"][name]), self._array_check
        check.ranges(f"{name}.name_offsets.npy", name_offsets, len(names), count)
        check.ranges(f"{name}.label_offsets.npy", label_offsets, len(labels), count)
        check.length(f"{name}.hashes.npy", hashes, count)
        check.ids(f"{name}.by_hash.npy", by_hash, count, count)
        return Vocabulary(Texts(names, name_offsets), Texts(labels, label_offsets), hashes, by_hash)

    def _arrays(self, name: str, parts: Mapping[str, Any]) -> list[NDArray[Any]]:
        return [load_array(self.path / f"{name}.{part}.npy", AGAIN, dtype) for part, dtype in parts.items()]

    @cached_property
    def _array_check(self) -> ArrayCheck:
        return ArrayCheck.of(self.path, AGAIN)


def check_view(name: str, known: Sequence[str] = tuple(VIEWS)) -> None:
    """Raise SettingError unless a view is one of the known ones."""
    if name not in known:
        raise SettingError("--view", f'there is no view "{name}"', advice=f"Known: {', '.join(known)}.")


VIEW_PARTS = {"starts": np.int64, "relations": np.int32, "tails": np.int32}
VOCABULARY_PARTS = {
    "names": np.uint8,
    "name_offsets": np.int64,
    "labels": np.uint8,
    "label_offsets": np.int64,
    "hashes": np.uint32,
    "by_hash": np.int32,
}


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
