"""Named graphs: which statements the default graph has, that is, what a query without GRAPH and FROM sees."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import Ids, triple_keys
from halfgraph.graph.statements import Statements

# own: the statements outside named graphs; union: all statements; auto: own, or union if the default graph were empty
Mask = NDArray[np.bool_]
DefaultGraph = Literal["auto", "own", "union"]
USED_FOR = {  # for the report of an import, by whether the default graph is a union
    False: "exact queries with GRAPH or FROM",
    True: "exact queries; the default graph is the union of all graphs",
}


def is_union_default(statements: Statements, choice: DefaultGraph) -> bool:
    """Return whether the default graph of an import also has the statements of the named graphs."""
    named = statements.counts["in a named graph"]
    return choice == "union" or (choice == "auto" and 0 < named == statements.counts["read"])


def only_in_named_graphs(triples: Ids, named: Ids, entity_count: int, relation_count: int) -> NDArray[np.int64]:
    """Return the sorted keys of the triples that the default graph does not have.

    `triples` (n, 3) has a row for each time that a triple was read, `named` one for each time in a named graph.
    """
    keys, counts = np.unique(triple_keys(triples, entity_count, relation_count), return_counts=True)
    named_keys, named_counts = np.unique(triple_keys(named, entity_count, relation_count), return_counts=True)
    is_named = np.isin(keys, named_keys)
    only: NDArray[np.int64] = keys[is_named][counts[is_named] == named_counts[np.isin(named_keys, keys)]]
    return only


def in_default_graph(triples: Ids, only_named: NDArray[np.int64], entity_count: int, relation_count: int) -> Mask:
    """Mark the triples (n, 3) whose keys are not among `only_named`, which is sorted and not empty."""
    keys = triple_keys(triples, entity_count, relation_count)
    places = np.minimum(np.searchsorted(only_named, keys), len(only_named) - 1)
    mask: Mask = only_named[places] != keys
    return mask
