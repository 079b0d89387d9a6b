"""Triples whose subject or object has a type that is rare for the relation, though it is not rare elsewhere."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.folder import Graph
from halfgraph.graph.types import UNTYPED

FEWEST = 50  # triples of a relation with a stated type, to know what is usual
USUAL = 0.8  # least share of the usual type
RARE = 0.01  # largest share of a type that clashes
RARER = 5.0  # times rarer than among the ends of all triples
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class TypeClash:
    """A triple whose end (0: subject, 1: object) has a type that a small share of the relation's triples has there."""

    head: int
    relation: int
    tail: int
    end: int
    type_id: int
    count: int  # triples of the relation with this type there
    total: int  # triples of the relation with a stated type there
    usual: int

    @property
    def share(self) -> float:
        return self.count / self.total


def type_clashes(graph: Graph, view: str = "whole") -> list[TypeClash]:
    """Return the clashes of a view, the rarest types first; only types that the graph states count."""
    triples = graph.view(view).triples().astype(np.int64)
    is_stated = _is_stated(graph)
    clashes = []
    for end, column in enumerate((0, 2)):
        stated = triples[is_stated[triples[:, column]]]
        types, relations = graph.types.of(stated[:, column]), stated[:, 1] // 2
        counts = np.zeros((len(graph.relations), len(graph.types)))
        np.add.at(counts, (relations, types), 1)
        shares, clash = _clashing(counts)
        usual = shares.argmax(axis=1)
        for row in np.flatnonzero(clash[relations, types]).tolist():
            (head, _, tail), relation, type_id = stated[row].tolist(), int(relations[row]), int(types[row])
            numbers = int(counts[relation, type_id]), int(counts[relation].sum()), int(usual[relation])
            clashes.append(TypeClash(head, 2 * relation, tail, end, type_id, *numbers))
    return sorted(clashes, key=lambda own: (own.share, own.relation, own.head, own.tail, own.end))


def _is_stated(graph: Graph) -> NDArray[np.bool_]:
    is_stated = np.ones(len(graph.entities), dtype=bool)
    is_stated[graph.untyped()] = False
    if UNTYPED in graph.types.names:
        number = graph.types.names.index(UNTYPED)
        is_stated[graph.types.starts[number] : graph.types.starts[number + 1]] = False
    return is_stated


def _clashing(counts: NDArray[np.float64]) -> tuple[Shares, NDArray[np.bool_]]:
    """Return the shares of types for each relation, and where a type clashes: (relations, types) each."""
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(totals, 1)
    everywhere = counts.sum(axis=0) / max(counts.sum(), 1)
    is_clear = (totals >= FEWEST) & (shares.max(axis=1, keepdims=True, initial=0) >= USUAL)
    return shares, is_clear & (shares <= RARE) & (RARER * shares <= everywhere)
