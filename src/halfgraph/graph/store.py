"""The Oxigraph store of a graph: built from its arrays and what was set aside when it is first needed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store, parse

from halfgraph.graph.folder import ASIDE, Graph, new_folder
from halfgraph.graph.statements import LABEL, TYPE


def open_store(graph: Graph, view: str = "whole") -> Store:
    """The store of a view of the graph with every literal, type and label, read-only."""
    return Store.read_only(str(store_folder(graph, view)))


def store_folder(graph: Graph, view: str = "whole") -> Path:
    """The folder of the store of a view, built now if it is not there."""
    path = graph.path / f"store-{view if graph.has_split else 'train'}"
    if not path.is_dir():
        with new_folder(path, made_by="the store") as folder:
            store = Store(str(folder))
            store.bulk_extend(quads(graph, view))
            store.flush()
            del store  # closes it, so that the folder can be renamed
    return path


def quads(graph: Graph, view: str = "whole") -> Iterator[Quad]:
    """Every statement of a view: its triples, kinds and labels where they came from files, and what was set aside."""
    yield from _triples(graph, view)
    if "kinds" in graph.description["beside"]:
        yield from _kinds(graph)
    if "labels" in graph.description["beside"]:
        yield from _labels(graph)
    aside = graph.path / ASIDE
    if aside.stat().st_size:
        yield from parse(path=str(aside), format=RdfFormat.N_QUADS)


def _triples(graph: Graph, view: str) -> Iterator[Quad]:
    """The triples of a view."""
    term = graph.namer.term
    relations = [NamedNode(graph.namer.iri(name)) for name in graph.relations.names]
    edges = getattr(graph, view)
    for head in range(edges.entity_count):
        names, tails = edges.neighbours(head)
        forward = np.flatnonzero((names & 1) == 0)
        if len(forward):
            subject = term(graph.entities.name(head))
            for place in forward.tolist():
                yield Quad(subject, relations[names[place] // 2], term(graph.entities.name(int(tails[place]))))


def _kinds(graph: Graph) -> Iterator[Quad]:
    """The kind of each entity as its rdf:type."""
    classes = [NamedNode(graph.namer.iri(name)) for name in graph.kinds.names]
    kinds = graph.kinds.of(np.arange(len(graph.entities)))
    for name, kind in zip(graph.entities.names, kinds.tolist(), strict=True):
        yield Quad(graph.namer.term(name), NamedNode(TYPE), classes[kind])


def _labels(graph: Graph) -> Iterator[Quad]:
    """The label of each entity and relation as its rdfs:label."""
    for words in (graph.entities, graph.relations):
        for name, label in zip(words.names, words.labels, strict=True):
            if label:
                yield Quad(graph.namer.term(name), NamedNode(LABEL), Literal(label))
