"""Triples in memory: the edges of both directions, sorted by head, relation and tail.

Relation 2r is a relation as the user named it and 2r + 1 its inverse, so the inverse of any relation is `r ^ 1`.
Entities are numbered type by type, so a type is a range of ids.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError

Ids = NDArray[np.int32]
PIECE = 65_536


@dataclass(frozen=True)
class EntityTypes:
    """Types of entities: type k has the ids starts[k] to starts[k + 1]."""

    names: tuple[str, ...]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.names)

    def of(self, entities: NDArray[np.integer] | int) -> NDArray[np.int64]:
        return np.searchsorted(self.starts, entities, side="right") - 1

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


@dataclass(frozen=True)
class KnowledgeGraph:
    """Edges of a graph; the outgoing edges of entity e are starts[e] to starts[e + 1]."""

    starts: NDArray[np.int64]
    relations: Ids
    tails: Ids
    types: EntityTypes
    relation_count: int  # both directions

    @classmethod
    def of(cls, triples: Ids, types: EntityTypes, relation_count: int) -> "KnowledgeGraph":
        """Make a graph of triples (n, 3): head, even relation, tail; duplicates count once."""
        entity_count = int(types.starts[-1])
        keys = edge_keys(triples, entity_count, relation_count)
        del triples  # frees them if the caller keeps none: memory peaks here
        starts = np.searchsorted(keys, np.arange(entity_count + 1) * (relation_count * entity_count))
        relations, tails = split_keys(keys, entity_count, relation_count)
        return cls(starts, relations, tails, types, relation_count)

    @property
    def entity_count(self) -> int:
        return len(self.starts) - 1

    @property
    def triple_count(self) -> int:
        """The number of triples; each has two edges."""
        return len(self.tails) // 2

    def neighbours(self, entity: int) -> tuple[Ids, Ids]:
        """Return the relations and tails of the outgoing edges of an entity."""
        edges = slice(self.starts[entity], self.starts[entity + 1])
        return self.relations[edges], self.tails[edges]

    def tails_of(self, head: int, relation: int) -> Ids:
        relations, tails = self.neighbours(head)
        first, last = np.searchsorted(relations, [relation, relation + 1])
        return tails[first:last]

    def degrees(self) -> NDArray[np.int64]:
        """Return the degree of each entity: its number of triples (a self-loop counts twice)."""
        return np.diff(self.starts)

    def heads(self) -> Ids:
        """Return the head of every edge, in the order of the edges."""
        return np.repeat(np.arange(self.entity_count, dtype=np.int32), self.degrees())

    def triples(self) -> Ids:
        """Return every triple once, (n, 3): head, even relation, tail."""
        forward = (self.relations & 1) == 0
        return np.stack([self.heads()[forward], self.relations[forward], self.tails[forward]], axis=1)


def edge_keys(triples: Ids, entity_count: int, relation_count: int) -> NDArray[np.int64]:
    """Return one sorted number for each edge, in both directions, without duplicates."""
    if entity_count * relation_count * entity_count >= 2**63:
        problem = f"{entity_count:,} entities and {relation_count:,} relations are too many for 63-bit edge keys"
        raise SettingError("graph", problem)
    count = len(triples)
    keys = np.empty(2 * count, dtype=np.int64)
    for half, (head, tail, flip) in enumerate(((0, 2, 0), (2, 0, 1))):
        part = keys[half * count : (half + 1) * count]
        part[:] = triples[:, head]
        part *= relation_count
        part += triples[:, 1] ^ flip
        part *= entity_count
        part += triples[:, tail]
    keys.sort()
    return _distinct(keys)


def triple_keys(triples: Ids, entity_count: int, relation_count: int) -> NDArray[np.int64]:
    """Return one number for each triple (n, 3)."""
    heads, relations, tails = triples.astype(np.int64).T
    keys: NDArray[np.int64] = (heads * relation_count + relations) * entity_count + tails
    return keys


def _distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Remove duplicates from sorted numbers, in place."""
    kept, last = 0, -1
    for first in range(0, len(keys), PIECE):
        piece = keys[first : first + PIECE]
        new = np.empty(len(piece), dtype=bool)
        np.not_equal(piece[1:], piece[:-1], out=new[1:])
        new[0] = piece[0] != last
        last = int(piece[-1])
        distinct = piece[new]
        keys[kept : kept + len(distinct)] = distinct
        kept += len(distinct)
    return keys[:kept]


def split_keys(keys: NDArray[np.int64], entity_count: int, relation_count: int) -> tuple[Ids, Ids]:
    """Return the relations and tails of edge keys."""
    relations, tails = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    for first in range(0, len(keys), PIECE):  # in pieces: wide intermediate numbers would double the peak memory
        piece = slice(first, first + PIECE)
        rest, tails[piece] = np.divmod(keys[piece], entity_count)
        np.remainder(rest, relation_count, out=relations[piece], casting="unsafe")
    return relations, tails
