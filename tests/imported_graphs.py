"""Graphs made on the spot for a test."""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyoxigraph import Quad, RdfFormat, Store, serialize

from halfgraph.graph.files import ReadOptions
from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions, import_graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from oracles import Edge, Named

READING = set(ReadOptions.__dataclass_fields__)


def choices_of(**given: Any) -> ImportOptions:
    """The choices of an import, those of its reading among them."""
    reading = ReadOptions(**{name: given.pop(name) for name in READING & set(given)})
    return ImportOptions(reading=reading, **given)


def made(folder: Path, content: str | bytes, ending: str = "tsv", **given: Any) -> Graph:
    """The graph of one file."""
    number = len(list(folder.iterdir()))
    source = folder / f"source{number}.{ending}"
    source.write_bytes(content.encode() if isinstance(content, str) else content)
    return import_graph([source], folder / f"graph{number}", choices_of(**given), isolated=False)


@contextlib.contextmanager
def short_lived(content: str | bytes, ending: str = "tsv", **given: Any) -> Iterator[Graph]:
    """The graph of one file, gone afterwards; for hypothesis, which cannot use pytest's folders."""
    with tempfile.TemporaryDirectory() as folder:
        yield made(Path(folder), content, ending, **given)


def tsv(triples: Iterable[Named]) -> str:
    """Triples as a TSV file."""
    return "".join("\t".join(triple) + "\n" for triple in triples)


def nt(triples: Iterable[Named]) -> str:
    """Triples of IRIs as N-Triples."""
    return "".join(f"<{head}> <{relation}> <{tail}> .\n" for head, relation, tail in triples)


def rdf(quads: Iterable[Quad], syntax: RdfFormat) -> bytes:
    """Statements in an RDF syntax, without their graphs where the syntax has none."""
    quads = list(quads)
    return serialize(quads if syntax.supports_datasets else [quad.triple for quad in quads], format=syntax) or b""


def triples_by_name(graph: Graph, view: KnowledgeGraph) -> list[Named]:
    """The triples of a view by name."""
    name = graph.entities.name
    return [(name(h), graph.relations.name(r // 2), name(t)) for h, r, t in view.triples().tolist()]


def edges_by_name(graph: Graph, view: KnowledgeGraph) -> list[Edge]:
    """The edges of a view by name, read entity by entity; an inverse relation is written ^r."""
    found = []
    for head in range(view.entity_count):
        for relation, tail in zip(*view.neighbours(head), strict=True):
            mark = "^" if relation & 1 else ""
            found.append(
                (graph.entities.name(head), mark + graph.relations.name(relation // 2), graph.entities.name(tail))
            )
    return found


def types_by_name(graph: Graph) -> dict[str, str]:
    """The type of each entity."""
    types = graph.types.of(np.arange(len(graph.entities))).tolist()
    return {name: graph.types.names[type_id] for name, type_id in zip(graph.entities.names, types, strict=True)}


def report_of(graph: Graph) -> dict[str, int]:
    """The report of an import: how many of what."""
    return {row["what"]: row["count"] for row in graph.description["report"]}


def stored(content: bytes, syntax: RdfFormat, base: str = "http://halfgraph.local/") -> Store:
    """Store of pyoxigraph with the triples of a file."""
    store = Store()
    store.load(content, syntax, base_iri=base)
    return store
