"""The Oxigraph store of a graph: built from its arrays and what was set aside when it is first needed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, Store, parse

from halfgraph.errors import FolderError
from halfgraph.graph.folder import ASIDE, Graph, new_folder


def open_store(graph: Graph, view: str = "whole") -> Store:
    """The store of a view of the graph with every literal, type and label, read-only."""
    return Store.read_only(str(store_folder(graph, view)))


def store_folder(graph: Graph, view: str = "whole") -> Path:
    """The folder of the store of a view, built now if it is not there."""
    view = view if graph.has_split else "train"
    path = graph.path / f"store-{view}"
    if path.is_dir():
        return path
    try:
        with new_folder(path, made_by="the store") as folder:
            store = Store(str(folder))
            store.bulk_extend(quads(graph, view))
            store.flush()
            del store  # closes it, so that the folder can be renamed
    except FolderError:
        if not path.is_dir():  # if it is, another process has built it meanwhile
            raise
    return path


def quads(graph: Graph, view: str = "whole") -> Iterator[Quad]:
    """Every statement of a view: its triples and what was set aside, all of it also in the default graph."""
    yield from _triples(graph, view)
    aside = graph.path / ASIDE
    if not aside.stat().st_size:
        return
    edges = graph.view(view)
    for quad in parse(path=str(aside), format=RdfFormat.N_QUADS):
        if isinstance(quad.graph_name, DefaultGraph):
            yield quad
        elif (triple := _ids(graph, quad)) is None:
            yield quad
            yield Quad(quad.subject, quad.predicate, quad.object)
        elif triple[2] in edges.tails_of(triple[0], triple[1]):  # and not held out from the view
            yield quad


def _ids(graph: Graph, quad: Quad) -> tuple[int, int, int] | None:
    """The triple behind a statement in a named graph, if it is one of the graph's."""
    relation = graph.find_relation(quad.predicate.value)
    head, tail = (_entity(graph, term) for term in (quad.subject, quad.object))
    return None if relation is None or head is None or tail is None else (head, relation, tail)


def _entity(graph: Graph, term: object) -> int | None:
    if isinstance(term, BlankNode):
        return graph.entities.find(f"_:{term.value}")
    return graph.find_entity(term.value) if isinstance(term, NamedNode) else None


def _triples(graph: Graph, view: str) -> Iterator[Quad]:
    """The triples of a view."""
    term = graph.namer.term
    relations = [NamedNode(graph.namer.iri(name)) for name in graph.relations.names]
    edges = graph.view(view)
    for head in range(edges.entity_count):
        names, tails = edges.neighbours(head)
        forward = np.flatnonzero((names & 1) == 0)
        if len(forward):
            subject = term(graph.entities.name(head))
            for place in forward.tolist():
                yield Quad(subject, relations[names[place] // 2], term(graph.entities.name(int(tails[place]))))
