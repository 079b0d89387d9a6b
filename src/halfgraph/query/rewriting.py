"""Rewriting of queries: ids filled in, variables replaced, unions split, negations left out."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from halfgraph.query.tree import (
    Anchor,
    Column,
    Project,
    Query,
    Union,
    children,
    has_negation,
    intersect,
    nodes,
    positive_parts,
    rebuild,
    type_of,
)

Change = Callable[[Query, Query], Query]  # from a node, and the same node on rewritten children, to its replacement


def rewrite(query: Query, change: Change) -> Query:
    """Return the query rebuilt from its anchors on, each node replaced by what `change` returns."""
    new: dict[int, Query] = {}
    for node in nodes(query):
        new[id(node)] = change(node, rebuild(node, [new[id(child)] for child in children(node)]))
    return new[id(query)]


def map_ids(query: Query, entity: Callable[[Column], Column], relation: Callable[[Column], Column]) -> Query:
    """Return the query with every entity and relation replaced."""
    return map_node_ids(query, entity, relation)[id(query)]


def map_node_ids(
    query: Query, entity: Callable[[Column], Column], relation: Callable[[Column], Column]
) -> dict[int, Query]:
    """Return every node with its entity or relation replaced, by the id of the node that it replaces."""
    new: dict[int, Query] = {}
    for node in nodes(query):
        match node:
            case Anchor():
                new[id(node)] = Anchor(entity(node.entity), name=node.name, span=node.span)
            case Project(source, old, type_id):
                new[id(node)] = Project(new[id(source)], relation(old), type_id, name=node.name, span=node.span)
            case _:
                new[id(node)] = rebuild(node, [new[id(child)] for child in children(node)])
    return new


def fill(query: Query, anchors: NDArray[np.int32], relations: NDArray[np.int32]) -> Query:
    """Return a query whose ids are column numbers with the ids of the columns.

    The columns are (anchors,) and (relations,) for one query, (n, anchors) and (n, relations) for a batch.
    """

    def ids(columns: NDArray[np.int32], column: Column) -> Column:
        return int(columns[column]) if columns.ndim == 1 else columns[:, column]

    return map_ids(query, lambda column: ids(anchors, column), lambda column: ids(relations, column))


def replace_node(query: Query, old: Query, new: Query) -> Query:
    """Return the query with one node replaced wherever it is used."""
    return rewrite(query, lambda node, rebuilt: new if node is old else rebuilt)


def pin(query: Query, variable: Query, entity: Column) -> Query:
    """Return the query with a variable replaced by an entity, or by a column of entities."""
    return replace_node(query, variable, Anchor(entity))


def disjuncts(query: Query) -> list[Query]:
    """Return queries without unions that together have the answers: one for each choice of a part of each union.

    A union inside a negation stays.
    """
    union = next((node for node in nodes(query, negated=False) if isinstance(node, Union)), None)
    if union is None:
        return [query]

    def choose(number: int) -> Query:
        def chosen(node: Query, rebuilt: Query) -> Query:
            return intersect([children(rebuilt)[number]], union.type_id) if node is union else rebuilt

        return rewrite(query, chosen)

    return [disjunct for number in range(len(union.parts)) for disjunct in disjuncts(choose(number))]


def without_negation(query: Query) -> Query:
    """Return the query without its negated parts, for interpretations that cannot express them."""
    return rewrite(query, _without_negated_parts) if has_negation(query) else query


def _without_negated_parts(_: Query, rebuilt: Query) -> Query:
    kept = positive_parts(rebuilt)
    return rebuilt if len(kept) == len(children(rebuilt)) else intersect(kept, type_of(rebuilt))
