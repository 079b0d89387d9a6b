"""Names of a query that its graph does not have: warnings, as a query with such a name can still be answered."""

from collections.abc import Iterator
from itertools import islice

from pyoxigraph import NamedNode, Store

from halfgraph.errors import UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.sparql.parse import Request
from halfgraph.sparql.syntax_tree import RDF_TYPE, Describe, Iri, PathOperation, Triple, Update, walk
from halfgraph.sparql.translate import Names

MOST = 5  # warnings for one query


def unknown_names(request: Request, graph: Graph, store: Store) -> list[UnknownName]:
    """Return the names in the patterns of a request that neither the graph nor its store has, with the nearest ones."""
    names = Names(graph, request)
    seen = {(node.value, what): node for node, what in reversed(list(_names(request)))}  # the first of each
    nodes = sorted(((node, what) for (_, what), node in seen.items()), key=lambda pair: pair[0].span)
    unknown = (_unknown(node, what, names) for node, what in nodes if not _occurs(node.value, store))
    return list(islice((error for error in unknown if error is not None), MOST))


def _names(request: Request) -> Iterator[tuple[Iri, str]]:
    """Yield the names that the text has in its patterns, each with what it should be."""
    assert not isinstance(request.tree, Update), "updates are refused"
    if isinstance(request.tree, Describe):
        yield from ((subject, "entity") for subject in request.tree.subjects if isinstance(subject, Iri))
    for triple in walk(request.tree.where):  # a CONSTRUCT may write new names
        if isinstance(triple, Triple):
            is_type = triple.predicate == Iri(RDF_TYPE)
            ends = ((triple.subject, "entity"), (triple.object, "type" if is_type else "entity"))
            path = walk(triple.predicate) if isinstance(triple.predicate, Iri | PathOperation) else ()
            for node, what in (*ends, *((node, "relation") for node in path)):
                if isinstance(node, Iri) and node.span[1] and node.value != RDF_TYPE:  # the label service has no span
                    yield node, what


def _occurs(iri: str, store: Store) -> bool:
    """Return whether any statement has an IRI in any place."""
    node = NamedNode(iri)
    patterns = ((node, None, None, None), (None, node, None, None), (None, None, node, None), (None, None, None, node))
    return any(next(store.quads_for_pattern(*pattern), None) is not None for pattern in patterns)


def _unknown(node: Iri, what: str, names: Names) -> UnknownName | None:
    look = {"entity": names.entity, "relation": names.relation, "type": names.type_id}[what]
    try:
        look(node)
    except UnknownName as error:
        return error
    return None
