"""The page of one entity: its type, its triples by relation in both directions, and its literals."""

import numpy as np
from pyoxigraph import Literal, QuerySolutions

from halfgraph.answering.engine import Engine
from halfgraph.answering.store_rows import EntityNames
from halfgraph.graph.knowledge_graph import Ids
from halfgraph.serving.schema import EntityPage, LiteralValue, Neighbours
from halfgraph.sparql.syntax_tree import Call, Filter, Iri, Triple, Variable, select
from halfgraph.sparql.writer import write

MOST_LITERALS = 100


def entity_page(engine: Engine, name: str, limit: int) -> EntityPage:
    """Return what the graph knows about an entity, with at most `limit` neighbours for each relation."""
    graph, names = engine.graph, engine.names
    number = names.resolve(name)
    edges = graph.view(engine.view)
    return EntityPage(
        *names.described(number),
        int(edges.starts[number + 1] - edges.starts[number]),
        _neighbours(names, edges.neighbours(number), 0, limit),
        _neighbours(names, edges.neighbours(number), 1, limit),
        _literals(engine, number),
    )


def _neighbours(names: EntityNames, edges: tuple[Ids, Ids], inverse: int, limit: int) -> list[Neighbours]:
    relations, tails = edges
    neighbours = []
    for relation in np.unique(relations[(relations & 1) == inverse]).tolist():
        others = tails[relations == relation]
        first = [names.entity(int(other)) for other in others[:limit]]
        neighbours.append(Neighbours(names.relation(relation), first, len(others)))
    return neighbours


def _literals(engine: Engine, number: int) -> list[LiteralValue]:
    name = engine.graph.entities.name(number)
    if name.startswith("_:"):
        return []
    pattern = Triple(Iri(engine.graph.namer.iri(name)), Variable("p"), Variable("o"))
    literal = Filter(Call("ISLITERAL", (Variable("o"),)))
    rows = engine.store.local.query(write(select([pattern, literal], ["p", "o"], limit=MOST_LITERALS)))
    assert isinstance(rows, QuerySolutions)
    pairs = [(row["p"], row["o"]) for row in rows]
    return [LiteralValue(p.value, o.value) for p, o in pairs if isinstance(o, Literal)]
