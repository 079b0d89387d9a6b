"""The Oxigraph store of a graph, built from its triples and the statements set aside when first needed."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, Store, parse

from halfgraph.errors import FolderError
from halfgraph.graph.description import AGAIN as GRAPH_AGAIN
from halfgraph.graph.description import LAST_WITHOUT_MANIFEST
from halfgraph.graph.files import excerpt
from halfgraph.graph.folder import ASIDE, Graph
from halfgraph.graph.manifest import check_file, check_folder, require_manifest
from halfgraph.graph.named_graphs import in_default_graph
from halfgraph.graph.new_folder import new_folder

AGAIN = "Remove this folder: it is made again from the graph."


def open_store(graph: Graph, view: str = "whole") -> Store:
    """Open the read-only store of a view: its triples with every literal, type and label."""
    path = store_folder(graph, view)
    try:
        return Store.read_only(str(path))
    except (OSError, RuntimeError) as error:
        raise FolderError(path, f"cannot be opened: {excerpt(str(error))}", advice=AGAIN) from error


def store_folder(graph: Graph, view: str = "whole") -> Path:
    """Return the folder of the store of a view; build it if it does not exist."""
    path = store_path(graph, view)
    view = view if graph.has_split else "train"
    if path.is_dir():
        check_folder(path, AGAIN)
        if graph.description["format"] > LAST_WITHOUT_MANIFEST:
            require_manifest(path, AGAIN)
        return path
    try:
        with new_folder(path, made_by="the store", wait=True) as folder:
            store = Store(str(folder))
            store.bulk_extend(quads(graph, view))
            store.flush()
            del store  # closes it before the folder is renamed
    except FolderError:
        if not path.is_dir():  # otherwise another process has built it meanwhile
            raise
    return path


def store_path(graph: Graph, view: str) -> Path:
    """Return the path of the folder of the store of a view, whether it exists or not."""
    return graph.path / f"store-{_stored_name(graph, view if graph.has_split else 'train')}"


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise FolderError for a store whose files cannot be read while it is queried."""
    try:
        yield
    except OSError as error:
        raise FolderError(path, f"cannot be read: {excerpt(str(error))}", advice=AGAIN) from error


def _stored_name(graph: Graph, view: str) -> str:
    """Return the name of a view in the folder, where the triples that a run has held out belong to train."""
    if graph.held_out is None:
        return view
    return "train" if view in ("known", "whole") else f"{view}-{graph.held_out['count']}-{graph.held_out['seed']}"


def quads(graph: Graph, view: str = "whole") -> Iterator[Quad]:
    """Yield every statement of a view: its triples and those set aside; in a union, all also in the default graph."""
    yield from _triples(graph, view)
    edges, is_union = graph.view(view), graph.is_union
    for quad in statements_aside(graph):
        if isinstance(quad.graph_name, DefaultGraph):
            yield quad
        elif (triple := _ids(graph, quad)) is None:
            yield quad
            if is_union:
                yield Quad(quad.subject, quad.predicate, quad.object)
        elif triple[2] in edges.tails_of(triple[0], triple[1]):  # and not held out from the view
            yield quad


def statements_aside(graph: Graph) -> Iterator[Quad]:
    """Yield the statements that the import has set aside."""
    aside = check_file(graph.path / ASIDE, GRAPH_AGAIN)
    try:
        yield from parse(path=str(aside), format=RdfFormat.N_QUADS) if aside.stat().st_size else ()
    except (OSError, SyntaxError) as error:
        raise FolderError(aside, f"cannot be read: {excerpt(str(error))}", advice=GRAPH_AGAIN) from error


def _ids(graph: Graph, quad: Quad) -> tuple[int, int, int] | None:
    """Return the ids of a statement in a named graph, or None if it is not a triple of the graph."""
    relation = graph.find_relation(quad.predicate.value)
    head, tail = (_entity(graph, term) for term in (quad.subject, quad.object))
    return None if relation is None or head is None or tail is None else (head, relation, tail)


def _entity(graph: Graph, term: object) -> int | None:
    if isinstance(term, BlankNode):
        return graph.entities.find(f"_:{term.value}")
    return graph.find_entity(term.value) if isinstance(term, NamedNode) else None


def _triples(graph: Graph, view: str) -> Iterator[Quad]:
    """Yield the triples of a view that are in the default graph."""
    term = graph.namer.term
    relations = [NamedNode(graph.namer.iri(name)) for name in graph.relations.names]
    edges, named_only = graph.view(view), graph.named_only
    for head in range(edges.entity_count):
        names, tails = edges.neighbours(head)
        forward = np.flatnonzero((names & 1) == 0)
        if len(named_only):
            triples = np.stack([np.full_like(forward, head), names[forward], tails[forward]], axis=1)
            forward = forward[in_default_graph(triples, named_only, edges.entity_count, edges.relation_count)]
        if len(forward):
            subject = term(graph.entities.name(head))
            for i in forward.tolist():
                yield Quad(subject, relations[names[i] // 2], term(graph.entities.name(int(tails[i]))))
