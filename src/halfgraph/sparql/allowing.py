"""Which entities the store lets pass by what a query says of literals."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Store

from halfgraph.graph.folder import Graph
from halfgraph.sparql.reading import Reading

AT_ONCE = 1_000  # entities asked about in one query
Asked = Callable[[str], Iterable[str]]  # the IRIs that answer a query of one variable


def allowed(asked: Asked | Store, reading: Reading, graph: Graph, entities: Sequence[int]) -> NDArray[np.bool_]:
    """Which entities (n,) the restriction of a reading is true of, by the store; all where there is none.

    A blank node cannot be asked about by name, so it is never let pass.
    """
    if not reading.restriction:
        return np.ones(len(entities), dtype=bool)
    ask = _asking(asked) if isinstance(asked, Store) else asked
    terms = [graph.namer.term(graph.entities.name(int(entity))) for entity in entities]
    found: set[str] = set()
    for first in range(0, len(terms), AT_ONCE):
        named = " ".join(str(term) for term in terms[first : first + AT_ONCE] if not isinstance(term, BlankNode))
        found |= set(ask(restricted(reading, named)))
    return np.array([not isinstance(term, BlankNode) and term.value in found for term in terms], dtype=bool)


def restricted(reading: Reading, named: str) -> str:
    """The query for those of some entities, named as SPARQL does, that the restriction is true of."""
    return f"SELECT DISTINCT ?{reading.target} {{ VALUES ?{reading.target} {{ {named} }} {reading.restriction} }}"


def _asking(store: Store) -> Asked:
    """What asks a store; its rows are used up here, as pyoxigraph asks."""
    return lambda text: [row[0].value for row in store.query(text)]  # type: ignore[union-attr]
