"""Final ids: entities type by type, and relations, in alphabetical order; independent of the input's order."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import EntityTypes
from halfgraph.graph.statements import Statements
from halfgraph.graph.types import How, Untyped, assign_types
from halfgraph.graph.vocabulary import Vocabulary

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class Numbered:
    """A graph with final ids, ready to be written."""

    parts: dict[str, Triples]
    entities: Vocabulary
    relations: Vocabulary
    types: EntityTypes
    ways: Mapping[str, int]  # number of entities that got their type in each way


def number(
    statements: Statements, parts: dict[str, Triples], how: How, *, untyped: Untyped = "vote", smallest: int = 1
) -> Numbered:
    """Give entities and relations their final ids; frees the names of the statements."""
    is_used = np.zeros(len(statements.names), dtype=bool)
    for triples in parts.values():
        is_used[triples[:, 0]] = is_used[triples[:, 2]] = True
    used = np.flatnonzero(is_used)
    positions = np.cumsum(is_used, dtype=np.int32) - 1
    _renumber(parts, positions)
    triples = np.concatenate(list(parts.values())) if len(parts) > 1 else next(iter(parts.values()))
    assignment = assign_types(statements, used, triples, how, untyped=untyped, smallest=smallest)
    names = [name for name, kept in zip(statements.names, is_used.tolist(), strict=True) if kept]
    statements.names.clear()
    by_name = _by_name(names)
    order = by_name[np.argsort(assignment.types[by_name], kind="stable")]
    _renumber(parts, _inverse(order))
    entities = _vocabulary([names[i] for i in order.tolist()], statements)
    relation_names = list(statements.relations)
    relation_order = _by_name(relation_names)
    for triples in parts.values():
        triples[:, 1] = 2 * _inverse(relation_order)[triples[:, 1]]
    relations = _vocabulary([relation_names[i] for i in relation_order.tolist()], statements)
    starts = np.searchsorted(assignment.types[order], np.arange(len(assignment.names) + 1)).astype(np.int64)
    return Numbered(parts, entities, relations, EntityTypes(tuple(assignment.names), starts), assignment.counts)


def _by_name(names: list[str]) -> Triples:
    """Return the positions of the names in alphabetical order."""
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int32)


def _renumber(parts: dict[str, Triples], numbers: Triples) -> None:
    """Replace the heads and tails of the triples by new ids, in place."""
    for triples in parts.values():
        triples[:, 0], triples[:, 2] = numbers[triples[:, 0]], numbers[triples[:, 2]]


def _inverse(order: Triples) -> Triples:
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return numbers


def _vocabulary(names: list[str], statements: Statements) -> Vocabulary:
    return Vocabulary.of(names, [statements.labels.get(name, (0, ""))[1] for name in names])
