"""What is known of one entity: its type, its triples by relation in both directions, and its literals."""

from dataclasses import asdict
from typing import Any

import numpy as np
from pyoxigraph import Literal, QuerySolutions

from halfgraph.answering.engine import Engine
from halfgraph.answering.store_rows import Names
from halfgraph.graph.knowledge_graph import Ids, KnowledgeGraph

MOST_LITERALS = 100


def entity(engine: Engine, name: str, limit: int) -> dict[str, Any]:
    """The page of an entity, ready for JSON; `limit` neighbours are named for each relation, all are counted."""
    graph, names = engine.graph, engine.names
    number = names.resolve(name)
    edges: KnowledgeGraph = getattr(graph, engine.view)
    return {
        **asdict(names.entity(number)),
        "type": names.type_of(number),
        "degree": int(edges.starts[number + 1] - edges.starts[number]),
        "out": _neighbours(names, edges.neighbours(number), 0, limit),
        "in": _neighbours(names, edges.neighbours(number), 1, limit),
        "literals": _literals(engine, number),
    }


def _neighbours(names: Names, edges: tuple[Ids, Ids], inverse: int, limit: int) -> list[dict[str, Any]]:
    """The neighbours of an entity by relation, in one direction."""
    relations, tails = edges
    found = []
    for relation in np.unique(relations[(relations & 1) == inverse]).tolist():
        others = tails[relations == relation]
        some = [asdict(names.entity(int(other))) for other in others[:limit]]
        found.append({"relation": asdict(names.relation(relation)), "others": some, "count": len(others)})
    return found


def _literals(engine: Engine, number: int) -> list[dict[str, str]]:
    """The literals that the store has of an entity; used and dropped here, as pyoxigraph asks."""
    name = engine.graph.entities.name(number)
    if name.startswith("_:"):
        return []
    text = f"SELECT ?p ?o {{ <{engine.graph.namer.iri(name)}> ?p ?o FILTER isLiteral(?o) }} LIMIT {MOST_LITERALS}"
    rows = engine.facts.store.query(text)
    assert isinstance(rows, QuerySolutions)
    pairs = [(row["p"], row["o"]) for row in rows]
    return [{"relation": p.value, "value": o.value} for p, o in pairs if isinstance(o, Literal)]
