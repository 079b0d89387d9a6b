"""Import statements into a graph folder: ids, types, split, and a report of what was read."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal as RdfLiteral

from halfgraph import __version__
from halfgraph.errors import InputError, suggest
from halfgraph.graph.arrays import save_array
from halfgraph.graph.demo import NamedTriples
from halfgraph.graph.description import FORMAT
from halfgraph.graph.files import ReadOptions, excerpt
from halfgraph.graph.folder import (
    ASIDE,
    DESCRIPTION,
    NAMED_ONLY,
    VIEWS,
    Graph,
    fingerprint,
    save_view,
    save_vocabulary,
)
from halfgraph.graph.isolation import lift_limits, relayed, run_isolated
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.graph.named_graphs import USED_FOR, DefaultGraph, is_union_default, only_in_named_graphs
from halfgraph.graph.names import Namer
from halfgraph.graph.new_folder import new_folder
from halfgraph.graph.reading import TABLES, beside, files_of, read_file, read_pairs
from halfgraph.graph.splitting import Shares, split
from halfgraph.graph.statements import LABEL, SPLITS, TYPE, Statements
from halfgraph.graph.types import GUESSED, How, Triples, Untyped, number

_NAMED = "named"  # beside the splits while ids are given


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import: reading, types, labels and the split."""

    reading: ReadOptions = field(default_factory=ReadOptions)
    types: How = "nearest"
    types_file: Path | None = None
    labels_files: tuple[Path, ...] = ()
    language: str = "en"
    untyped: Untyped = "vote"
    smallest_type: int = 1
    self_loops: Literal["keep", "drop"] = "keep"
    default_graph: DefaultGraph = "auto"
    split: Shares | None = None
    seed: int = 0


def import_graph(
    sources: Sequence[Path],
    out: Path,
    choices: ImportOptions,
    named: Sequence[str] | None = None,
    *,
    isolated: bool = True,
) -> Graph:
    """Import files or folders into a new graph folder; `named` replaces the paths in the provenance.

    An isolated import reads the files in a process of its own, which may die of them.
    """
    files = [file for source in sources for file in files_of(source)]
    choices = _with_files_beside(sources, choices)
    sources_named = named or [os.fsencode(source).decode(errors="replace") for source in sources]

    reading = replace(choices.reading, progress=relayed(choices.reading.progress))

    def gather(statements: Statements) -> None:
        for part, path in files:
            read_file(path, part, statements, reading)

    return make_graph(gather, out, choices, {"sources": list(sources_named)}, isolated=isolated)


def import_named(graph: NamedTriples, out: Path, choices: ImportOptions, source: str) -> Graph:
    """Import triples in memory, such as those of the demo, into a new graph folder."""
    namer = Namer(graph.base)

    def gather(statements: Statements) -> None:
        for triple in graph.triples:
            statements.add("train", *triple)
        statements.counts["read"] = len(graph.triples)
        for entity, class_name in graph.types.items():
            _add_type(statements, namer, entity, class_name)
        for name, label in graph.labels.items():
            _add_label(statements, namer, name, label)

    return make_graph(gather, out, choices, {"sources": [source], "base": graph.base, "attribution": graph.attribution})


def make_graph(
    gather: Callable[[Statements], None],
    out: Path,
    choices: ImportOptions,
    provenance: dict[str, Any],
    *,
    isolated: bool = False,
) -> Graph:
    """Import the statements that `gather` adds; the folder is complete or does not exist."""
    namer = Namer(provenance.get("base") or choices.reading.base)
    with new_folder(out, made_by="the graph") as folder:
        work = partial(_make, folder, gather, namer, choices, provenance)
        run_isolated(work, choices.reading.progress) if isolated else work()
    return Graph.open(out)


def _make(
    folder: Path,
    gather: Callable[[Statements], None],
    namer: Namer,
    choices: ImportOptions,
    provenance: Mapping[str, Any],
) -> None:
    """Fill the folder of a graph."""
    with (folder / ASIDE).open("w", encoding="utf-8") as aside:
        statements = Statements(aside, choices.language)
        gather(statements)
        _read_files(statements, namer, choices)
    lift_limits()
    _refuse_clashes(statements, namer, provenance)
    _write(folder, statements, namer, choices, provenance)


def _with_files_beside(sources: Sequence[Path], choices: ImportOptions) -> ImportOptions:
    """Return the choices with the types and labels files of a source folder, where none were given."""
    folder = next((source for source in sources if source.is_dir()), None)
    if folder is None:
        return choices
    types = choices.types_file or (beside(folder, "types", TABLES) if choices.types != "one" else None)
    paths = [beside(folder, stem, TABLES) for stem in ("labels", "relations")]
    labels = choices.labels_files or tuple(path for path in paths if path is not None)
    return replace(choices, types_file=types, labels_files=labels)


def _read_files(statements: Statements, namer: Namer, choices: ImportOptions) -> None:
    skip_bad = choices.reading.skip_bad
    if choices.types_file is not None:
        for line, entity, class_name in read_pairs(choices.types_file, skip_bad, statements):
            if entity in statements.names:
                _add_type(statements, namer, entity, class_name)
            elif skip_bad:
                statements.counts["types of unknown entities"] += 1
            else:
                near = suggest(entity, list(statements.names), cutoff=80)
                meant = f" (did you mean {excerpt(near[0])}?)" if near else ""
                problem = f"no entity {excerpt(entity)} in this graph{meant}"
                advice = "Correct or remove the line, or pass --skip-bad to skip such lines."
                raise InputError(problem, path=choices.types_file, line=line, advice=advice)
    for path in choices.labels_files:
        for _, name, label in read_pairs(path, skip_bad, statements):
            _add_label(statements, namer, name, label)


def _add_type(statements: Statements, namer: Namer, entity: str, class_name: str) -> None:
    """Add a type that is not from RDF, also as an RDF statement for the store."""
    statements.add_type(entity, class_name)
    statements.counts["types in a file"] += 1
    statements.aside.write(f"{namer.term(entity)} <{TYPE}> {namer.term(class_name)} .\n")


def _add_label(statements: Statements, namer: Namer, name: str, label: str) -> None:
    """Add a label that is not from RDF, also as an RDF statement for the store."""
    statements.add_label(name, label)
    statements.aside.write(f"{namer.term(name)} <{LABEL}> {RdfLiteral(label)} .\n")


def _refuse_clashes(statements: Statements, namer: Namer, provenance: Mapping[str, Any]) -> None:
    """Raise InputError if two names of entities or relations have the same IRI."""
    for names in (statements.names, statements.relations):
        if (clash := namer.clash(names)) is not None:
            first, second = map(excerpt, clash)
            problem = f'the names "{first}" and "{second}" would both be <{excerpt(namer.iri(clash[0]))}>'
            advice = "Write the same name for the same thing, or pass another --base."
            raise InputError(problem, path=", ".join(provenance["sources"]), advice=advice)


def _parts(statements: Statements, choices: ImportOptions) -> dict[str, Triples]:
    """Return the triples of each split by provisional ids, without self-loops if these are dropped.

    Sources without a triple between two entities make a graph with exact answers and nothing to learn.
    """
    parts = {name: statements.splits[name].stacked() for name in SPLITS if statements.splits.get(name)}
    statements.counts["self-loops"] = sum(int(_loops(triples).sum()) for triples in parts.values())
    if len(statements.named):
        parts[_NAMED] = statements.named.stacked()
    if choices.self_loops == "drop":
        parts = {name: triples[~_loops(triples)] for name, triples in parts.items()}
    return parts if sum(map(len, parts.values())) else {"train": np.empty((0, 3), np.int32)}


def _loops(triples: Triples) -> NDArray[np.bool_]:
    return np.equal(triples[:, 0], triples[:, 2])


def _write(
    folder: Path, statements: Statements, namer: Namer, choices: ImportOptions, provenance: Mapping[str, Any]
) -> None:
    parts = _parts(statements, choices)
    graph = number(statements, parts, choices.types, untyped=choices.untyped, smallest=choices.smallest_type)
    named = graph.parts.pop(_NAMED, None)
    parts, given = graph.parts, sum(map(len, graph.parts.values()))
    relation_count = 2 * len(graph.relations)
    is_union = is_union_default(statements, choices.default_graph)
    if named is not None and not is_union:
        every = _concatenated(parts, SPLITS)
        save_array(folder / NAMED_ONLY, only_in_named_graphs(every, named, len(graph.entities), relation_count))
    if choices.split is not None and given:
        once = KnowledgeGraph.of(_concatenated(parts, SPLITS), graph.types, relation_count).triples()
        parts = split(once, choices.split, choices.seed)
    has_split = set(parts) != {"train"}
    save_vocabulary(folder, "entities", graph.entities)
    save_vocabulary(folder, "relations", graph.relations)
    views = [view for view in VIEWS if has_split or view == "train"]
    counts = {}
    for view in views:
        last = view == views[-1]  # frees the memory of the triples
        edges = KnowledgeGraph.of(_concatenated(parts, VIEWS[view], forget=last), graph.types, relation_count)
        save_view(folder, view, edges)
        counts[view] = edges.triple_count
    literals = len(np.unique(np.frombuffer(statements.literals, dtype=np.int64)))
    description = {
        "format": FORMAT,
        "fingerprint": fingerprint(folder, graph.types, views),
        "counts": {
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "types": len(graph.types),
            "guessed_types": graph.ways.get(GUESSED, 0),  # entities
            "triples": {name: counts.get(name, 0) for name in SPLITS},
            "literals": literals,
        },
        "split": has_split,
        "union": is_union,
        "types": {
            "names": graph.types.names,
            "starts": graph.types.starts.tolist(),
            "stated": graph.stated,
            "ways": graph.ways,
        },
        "base": namer.base,
        "prefixes": statements.prefixes,
        "report": report(statements, given, literals, counts, choices),
        "provenance": {**provenance, "halfgraph": __version__, "made": time.strftime("%FT%TZ", time.gmtime())},
    }
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=1, ensure_ascii=False), encoding="utf-8")


def _concatenated(parts: dict[str, Triples], names: Sequence[str], *, forget: bool = False) -> Triples:
    """Return the triples of several splits; with `forget`, free the others."""
    chosen = [parts[name] for name in names if name in parts]
    if forget:
        parts.clear()
    return chosen[0] if len(chosen) == 1 else np.concatenate(chosen or [np.empty((0, 3), np.int32)])


def report(
    statements: Statements, given: int, literals: int, counts: Mapping[str, int], choices: ImportOptions
) -> list[dict[str, Any]]:
    """Return what was read: rows of `what`, `count` and `used_for`; `given` triples with, `literals` without copies."""
    seen = statements.counts
    used = sum(counts[name] for name in SPLITS if name in counts)
    duplicates = given - used + seen["literals"] - literals
    rows = [
        ("statements read", seen["read"], "all of the rows below"),
        ("triples of the graph", used, "training and queries"),
        ("duplicates", duplicates, "nothing: each triple and each literal counts once"),
        ("triples in more than one split", used - counts.get("whole", used), "every split, as published"),
        ("self-loops", seen["self-loops"], "nothing: dropped" if choices.self_loops == "drop" else "triples"),
        ("literals", literals, "exact queries"),
        ("labels", len(statements.labels), "display: the best label of each name"),
        ("types", seen["types"], "types of entities, exact queries"),
        ("types in a file", seen["types in a file"], "types of entities, exact queries"),
        ("schema", seen["schema"], "exact queries; subClassOf also for types"),
        ("triple terms", seen["triple terms"], "exact queries"),
        ("in a named graph", seen["in a named graph"], USED_FOR[is_union_default(statements, choices.default_graph)]),
        ("files without statements", seen["empty files"], "nothing"),
        ("blank nodes dropped", seen["blank nodes dropped"], "nothing: --blank-nodes drop"),
        ("malformed", seen["malformed"], "nothing: --skip-bad"),
        ("header lines", seen["header lines"], "nothing: names of columns; --no-header reads them as triples"),
        ("types of unknown entities", seen["types of unknown entities"], "nothing: --skip-bad"),
    ]
    always = ("statements read", "triples of the graph", "duplicates")
    return [{"what": what, "count": n, "used_for": use} for what, n, use in rows if n or what in always]
