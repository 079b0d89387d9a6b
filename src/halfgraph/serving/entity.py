"""What is known of one entity: its kind, its triples by relation in both directions, and its literals."""

from typing import Any

import numpy as np
from pyoxigraph import Literal, QuerySolutions

from halfgraph.answering.engine import Engine
from halfgraph.errors import UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.prefixes import Prefixes

MOST_LITERALS = 100


def entity(engine: Engine, name: str, limit: int) -> dict[str, Any]:
    """The page of an entity, ready for JSON; `limit` neighbours are named for each relation, all are counted."""
    graph = engine.graph
    number = find(graph, name)
    edges: KnowledgeGraph = getattr(graph, engine.view)
    return {
        **named(graph, number),
        "kind": graph.kinds.names[int(graph.kinds.of(number))],
        "degree": int(edges.starts[number + 1] - edges.starts[number]),
        "out": _neighbours(graph, edges, number, 0, limit),
        "in": _neighbours(graph, edges, number, 1, limit),
        "literals": _literals(engine, number),
    }


def find(graph: Graph, name: str) -> int:
    """The number of an entity by its IRI or its name, also shortened by a prefix; an error names the nearest."""
    bare = name.strip().removeprefix("<").removesuffix(">")
    prefix, colon, local = bare.partition(":")
    spaces = Prefixes.of(graph).namespaces
    whole = [spaces[prefix] + local] if colon and prefix in spaces else []
    for candidate in (one for text in (bare, *whole) for one in graph.namer.names(text)):
        if (number := graph.entities.find(candidate)) is not None:
            return number
    near = [named(graph, number)["entity"] for number in graph.entities.nearest(bare[:200])]
    raise UnknownName(bare[:200], what="entity", nearest=near)


def named(graph: Graph, number: int) -> dict[str, str]:
    """The IRI and the label of an entity."""
    name = graph.entities.name(number)
    return {"entity": name if name.startswith("_:") else graph.namer.iri(name), "label": graph.entities.label(number)}


def _neighbours(graph: Graph, edges: KnowledgeGraph, number: int, inverse: int, limit: int) -> list[dict[str, Any]]:
    """The neighbours of an entity by relation, in one direction."""
    relations, tails = edges.neighbours(number)
    found = []
    for relation in np.unique(relations[(relations & 1) == inverse]).tolist():
        others = tails[relations == relation]
        name = graph.relations.name(relation // 2)
        found.append(
            {
                "relation": {"entity": graph.namer.iri(name), "label": graph.relations.label(relation // 2)},
                "others": [named(graph, int(other)) for other in others[:limit]],
                "count": len(others),
            }
        )
    return found


def _literals(engine: Engine, number: int) -> list[dict[str, str]]:
    """The literals that the store has of an entity; used and dropped here, as pyoxigraph asks."""
    name = engine.graph.entities.name(number)
    if name.startswith("_:"):
        return []
    text = f"SELECT ?p ?o {{ <{engine.graph.namer.iri(name)}> ?p ?o FILTER isLiteral(?o) }} LIMIT {MOST_LITERALS}"
    rows = engine.store.query(text)
    assert isinstance(rows, QuerySolutions)
    pairs = [(row["p"], row["o"]) for row in rows]
    return [{"relation": p.value, "value": o.value} for p, o in pairs if isinstance(o, Literal)]
