"""Statements to a graph on disk: which entities there are, their kinds and ids, and a report of what became of all."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from halfgraph import __version__
from halfgraph.errors import EmptyGraph, UnknownName
from halfgraph.graph.demo import NamedTriples
from halfgraph.graph.files import Reading
from halfgraph.graph.folder import (
    ASIDE,
    DESCRIPTION,
    FORMAT,
    VIEWS,
    Graph,
    fingerprint,
    new_folder,
    save_view,
    save_vocabulary,
)
from halfgraph.graph.kinds import How, decide
from halfgraph.graph.knowledge_graph import Kinds, KnowledgeGraph
from halfgraph.graph.reading import beside, files_of, read_file, read_pairs
from halfgraph.graph.splitting import Shares, split
from halfgraph.graph.statements import SPLITS, Statements
from halfgraph.graph.vocabulary import Vocabulary

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class Choices:
    """What an import may be told: how to read, kinds, labels and the split."""

    reading: Reading = field(default_factory=Reading)
    kinds: How = "nearest"
    kinds_file: Path | None = None
    labels_files: tuple[Path, ...] = ()
    language: str = "en"
    untyped: Literal["vote", "thing"] = "vote"
    smallest_kind: int = 1
    self_loops: Literal["keep", "drop"] = "keep"
    split: Shares | None = None
    seed: int = 0


def import_graph(sources: Sequence[Path], out: Path, choices: Choices) -> Graph:
    """The graph made of the sources, in its folder."""
    files = [file for source in sources for file in files_of(source)]
    choices = _with_files_beside(sources, choices)
    named = [str(source) for source in sources]

    def gather(statements: Statements) -> None:
        for part, path in files:
            read_file(path, part, statements, choices.reading)

    return make_graph(gather, out, choices, {"sources": named})


def import_named(graph: NamedTriples, out: Path, choices: Choices, source: str) -> Graph:
    """The graph made of triples in memory, such as the demo graph's."""

    def gather(statements: Statements) -> None:
        for triple in graph.triples:
            statements.add("train", *triple)
        statements.counts["read"] = len(graph.triples)
        for entity, kind in graph.kinds.items():
            statements.add_type(entity, kind)
        for name, label in graph.labels.items():
            statements.add_label(name, label)

    return make_graph(gather, out, choices, {"sources": [source], "base": graph.base, "attribution": graph.attribution})


def make_graph(gather: Callable[[Statements], None], out: Path, choices: Choices, provenance: dict[str, Any]) -> Graph:
    """The graph of what `gather` finds, in its folder, which is complete or not there."""
    with new_folder(out, made_by="the graph") as folder:
        with (folder / ASIDE).open("w", encoding="utf-8") as aside:
            statements = Statements(aside, choices.language)
            gather(statements)
            _read_files(statements, choices)
        _write(folder, statements, choices, provenance)
    return Graph.open(out)


def _with_files_beside(sources: Sequence[Path], choices: Choices) -> Choices:
    """The choices, with the types and labels files of a source folder where none were given."""
    folder = next((source for source in sources if source.is_dir()), None)
    if folder is None:
        return choices
    kinds = choices.kinds_file or (beside(folder, "types") if choices.kinds != "one" else None)
    found = (beside(folder, "labels"), beside(folder, "relations"))
    labels = choices.labels_files or tuple(path for path in found if path is not None)
    return replace(choices, kinds_file=kinds, labels_files=labels)


def _read_files(statements: Statements, choices: Choices) -> None:
    """Nothing; the kinds and labels that come in files of their own are added."""
    skip_bad = choices.reading.skip_bad
    if choices.kinds_file is not None:
        for number, entity, kind in read_pairs(choices.kinds_file, skip_bad, statements):
            if entity in statements.names:
                statements.add_type(entity, kind)
            elif skip_bad:
                statements.counts["types of unknown entities"] += 1
            else:
                raise _unknown_entity(entity, choices.kinds_file, number, statements)
    for path in choices.labels_files:
        for _, name, label in read_pairs(path, skip_bad, statements):
            statements.add_label(name, label)


def _unknown_entity(name: str, path: Path, line: int, statements: Statements) -> UnknownName:
    """The error for a types file that names an entity which the graph does not have."""
    from rapidfuzz import process

    nearest = [found for found, _, _ in process.extract(name, list(statements.names), limit=1, score_cutoff=80)]
    error = UnknownName(name, what="entity", nearest=nearest, where=f"{path}, line {line}")
    error.args = (f"{error.args[0].rstrip('.')}. Remove the line, or pass --skip-bad to set such lines aside.",)
    return error


@dataclass(frozen=True)
class Numbered:
    """A graph ready to be written: final ids, kind by kind and in the order of the names."""

    parts: dict[str, Triples]
    entities: Vocabulary
    relations: Vocabulary
    kinds: Kinds
    ways: Mapping[str, int]  # how many entities got their kind by which way


def number(statements: Statements, choices: Choices, parts: dict[str, Triples]) -> Numbered:
    """The triples by final ids; the names are moved out of the statements."""
    is_used = np.zeros(len(statements.names), dtype=bool)
    for triples in parts.values():
        is_used[triples[:, 0]] = is_used[triples[:, 2]] = True
    used = np.flatnonzero(is_used)
    places = np.cumsum(is_used, dtype=np.int32) - 1
    _renumber(parts, places)
    triples = np.concatenate(list(parts.values())) if len(parts) > 1 else next(iter(parts.values()))
    decision = decide(statements, used, triples, choices.kinds, untyped=choices.untyped, smallest=choices.smallest_kind)
    names = [name for name, kept in zip(statements.names, is_used.tolist(), strict=True) if kept]
    statements.names.clear()
    by_name = _by_name(names)
    order = by_name[np.argsort(decision.kinds[by_name], kind="stable")]
    _renumber(parts, _inverse(order))
    entities = _vocabulary([names[place] for place in order.tolist()], statements)
    relation_names = list(statements.relations)
    relation_order = _by_name(relation_names)
    for triples in parts.values():
        triples[:, 1] = 2 * _inverse(relation_order)[triples[:, 1]]
    relations = _vocabulary([relation_names[place] for place in relation_order.tolist()], statements)
    starts = np.searchsorted(decision.kinds[order], np.arange(len(decision.names) + 1)).astype(np.int64)
    return Numbered(parts, entities, relations, Kinds(tuple(decision.names), starts), decision.counts)


def _by_name(names: list[str]) -> Triples:
    """The places of the names in the order of the alphabet."""
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int32)


def _renumber(parts: dict[str, Triples], numbers: Triples) -> None:
    """Nothing; the heads and tails of the triples get new numbers, in place."""
    for triples in parts.values():
        triples[:, 0], triples[:, 2] = numbers[triples[:, 0]], numbers[triples[:, 2]]


def _inverse(order: Triples) -> Triples:
    """The new number of each old one."""
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return numbers


def _vocabulary(names: list[str], statements: Statements) -> Vocabulary:
    """The names with their labels."""
    nothing = (0, "")
    return Vocabulary.of(names, [statements.labels.get(name, nothing)[1] for name in names])


def _parts(statements: Statements, choices: Choices, provenance: Mapping[str, Any]) -> dict[str, Triples]:
    """The triples of each split by provisional ids, self-loops aside where that was asked."""
    parts = {name: statements.splits[name].stacked() for name in SPLITS if statements.splits.get(name)}
    for name, triples in parts.items():
        loops = triples[:, 0] == triples[:, 2]
        statements.counts["self-loops"] += int(loops.sum())
        if choices.self_loops == "drop" and loops.any():
            parts[name] = triples[~loops]
    if not sum(map(len, parts.values())):
        raise _nothing_to_learn(statements, provenance)
    return parts


def _nothing_to_learn(statements: Statements, provenance: Mapping[str, Any]) -> EmptyGraph:
    """The error for sources without a triple between entities, with what was there instead."""
    found = ", ".join(f"{count:,} {what}" for what, count in statements.counts.items() if count and what != "read")
    advice = "Pass --schema use to learn from the class hierarchy." if statements.counts["schema"] else ""
    return EmptyGraph(
        f"no triple between two entities among {statements.counts['read']:,} statements"
        + (f" ({found})" * bool(found)),
        path=", ".join(provenance["sources"]),
        advice=advice or "A graph needs triples whose object is an entity, not a literal.",
    )


def _write(folder: Path, statements: Statements, choices: Choices, provenance: Mapping[str, Any]) -> None:
    """Nothing; the graph is numbered, split if asked, and written."""
    graph = number(statements, choices, _parts(statements, choices, provenance))
    given = {name: len(triples) for name, triples in graph.parts.items()}
    parts = graph.parts
    if choices.split is not None:
        parts = split(np.unique(np.concatenate(list(parts.values())), axis=0), choices.split, choices.seed)
    save_vocabulary(folder, "entities", graph.entities)
    save_vocabulary(folder, "relations", graph.relations)
    views = [view for view in VIEWS if len(parts) > 1 or view == "train"]
    counts = {}
    for view in views:
        edges = KnowledgeGraph.of(_together(parts, VIEWS[view]), graph.kinds, 2 * len(graph.relations))
        save_view(folder, view, edges)
        counts[view] = edges.triple_count
    description = {
        "format": FORMAT,
        "fingerprint": fingerprint(folder, graph.kinds, views),
        "counts": {
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "kinds": len(graph.kinds),
            "triples": {name: counts.get(name, 0) for name in SPLITS},
            "literals": statements.literal_count(),
        },
        "split": len(parts) > 1,
        "kinds": {
            "names": graph.kinds.names,
            "starts": graph.kinds.starts.tolist(),
            "ways": graph.ways,
        },
        "beside": _beside_statements(choices, provenance),
        "base": provenance.get("base") or choices.reading.base,
        "prefixes": statements.prefixes,
        "report": report(statements, given, counts, choices),
        "provenance": {
            **provenance,
            "halfgraph": __version__,
            "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
    }
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=1, ensure_ascii=False), encoding="utf-8")


def _beside_statements(choices: Choices, provenance: Mapping[str, Any]) -> list[str]:
    """What of the graph was not said by statements and so is not among those set aside: kinds, labels."""
    in_memory = "attribution" in provenance
    told = {"kinds": choices.kinds_file is not None, "labels": bool(choices.labels_files)}
    return [what for what, from_file in told.items() if from_file or in_memory]


def _together(parts: dict[str, Triples], names: Sequence[str]) -> Triples:
    """The triples of several splits."""
    found = [parts[name] for name in names if name in parts]
    return found[0] if len(found) == 1 else np.concatenate(found or [np.empty((0, 3), np.int32)])


def report(
    statements: Statements, given: Mapping[str, int], counts: Mapping[str, int], choices: Choices
) -> list[dict[str, Any]]:
    """What was read and what became of it: rows of what, how many, and their fate."""
    seen = statements.counts
    used = sum(counts[name] for name in SPLITS if name in counts)
    rows = [
        ("statements read", seen["read"], "sorted as below"),
        ("triples of the graph", used, "learnt from"),
        ("duplicates", sum(given.values()) - used, "counted once"),
        ("triples in more than one split", used - counts.get("whole", used), "kept as published"),
        ("self-loops", seen["self-loops"], "dropped" if choices.self_loops == "drop" else "kept"),
        ("literals", seen["literals"], "set aside, in the store"),
        ("labels", len(statements.labels), "the best one for each name, shown to people"),
        ("types", len(statements.types), "used for kinds"),
        ("schema", seen["schema"], "set aside, in the store; subClassOf used for kinds"),
        ("triple terms", seen["triple terms"], "set aside, in the store"),
        ("in a named graph", seen["in a named graph"], "learnt from, and kept under that name in the store"),
        ("blank nodes dropped", seen["blank nodes dropped"], "dropped, as asked"),
        ("malformed", seen["malformed"], "skipped, as asked"),
        ("types of unknown entities", seen["types of unknown entities"], "skipped, as asked"),
    ]
    always = ("statements read", "triples of the graph", "duplicates")
    return [{"what": what, "count": n, "fate": fate} for what, n, fate in rows if n or what in always]
