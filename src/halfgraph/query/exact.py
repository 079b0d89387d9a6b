"""The meaning `Exact`: the set of entities that answer a query on a given graph."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.kernels import answer_sets, are_answers, edges_of, steps_of
from halfgraph.query.program import Batch, compile_query
from halfgraph.query.tree import Anchor, Intersect, Project, Query, Union, fold, shared_variables

Entities = NDArray[np.int32]


@dataclass(frozen=True)
class Ragged:
    """Several sets of entities: set i is values[offsets[i]:offsets[i + 1]]."""

    values: Entities
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sets: list[Entities]) -> "Ragged":
        """The sets, one after another."""
        offsets = np.zeros(len(sets) + 1, dtype=np.int64)
        np.cumsum([len(some) for some in sets], out=offsets[1:])
        return cls(np.concatenate([*sets, np.empty(0, np.int32)]).astype(np.int32), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Entities:
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def sizes(self) -> NDArray[np.int64]:
        """How many entities each set has."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.integer]) -> "Ragged":
        """Some of the sets."""
        return Ragged.of([self[int(row)] for row in rows])


@dataclass(frozen=True)
class Exact:
    """The answers on a graph; `relaxed` reads every intersection as a union, for hard negatives."""

    graph: KnowledgeGraph
    relaxed: bool = False
    edges: tuple[Any, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", edges_of(self.graph))

    def answers(self, query: Query) -> Entities:
        """The answers of one query, sorted."""
        shared = shared_variables(query)
        if not shared:
            return self.answer_sets(compile_query(query), threads=1)[0]
        # A variable used twice takes one value at a time on both ways: a join over its possible values.
        found = [self.answers(pinned(query, shared[0], int(value))) for value in self.answers(shared[0])]
        return np.unique(np.concatenate([*found, np.empty(0, np.int32)])).astype(np.int32)

    def has_answer(self, query: Query, entity: int) -> bool:
        """Whether an entity is an answer; leaves as soon as that is known."""
        shared = shared_variables(query)
        if shared:
            values = self.answers(shared[0])
            return any(self.has_answer(pinned(query, shared[0], int(value)), entity) for value in values)
        return bool(self.have_answers(compile_query(query), np.array([entity], np.int32), threads=1)[0])

    def answer_sets(self, batch: Batch, threads: int | None = None) -> Ragged:
        """The answers of each query of a batch without shared variables."""
        steps = steps_of(batch.program)

        def some(rows: slice) -> tuple[Entities, NDArray[np.int64]]:
            found: tuple[Entities, NDArray[np.int64]] = answer_sets(
                self.edges, steps, batch.anchors[rows], batch.relations[rows], self.relaxed
            )
            return found

        pieces = in_pieces(some, len(batch), threads)
        sizes = np.concatenate([np.diff(offsets) for _, offsets in pieces])
        return Ragged(np.concatenate([values for values, _ in pieces]), np.append(0, np.cumsum(sizes)))

    def have_answers(self, batch: Batch, entities: Entities, threads: int | None = None) -> NDArray[np.bool_]:
        """Whether each entity is an answer of its query."""
        steps = steps_of(batch.program)

        def some(rows: slice) -> NDArray[np.bool_]:
            found: NDArray[np.bool_] = are_answers(
                self.edges, steps, batch.anchors[rows], batch.relations[rows], entities[rows], self.relaxed
            )
            return found

        return np.concatenate(in_pieces(some, len(batch), threads))


def in_pieces(work: Callable[[slice], Any], count: int, threads: int | None) -> list[Any]:
    """What `work` gives for each piece of some rows, in order, on several threads where there are enough rows."""
    threads = threads or available_cores()
    size = max(64, -(-count // (4 * threads)))
    pieces = [slice(first, min(first + size, count)) for first in range(0, max(count, 1), size)]
    if threads == 1 or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, pieces))


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pinned(query: Query, variable: Query, entity: int) -> Query:
    """The query with a variable replaced by an entity."""
    return fold(query, _Pinned(variable, Anchor(entity)))


@dataclass(frozen=True)
class _Pinned:
    """A meaning: the same query with one node replaced."""

    variable: Query
    anchor_: Anchor

    def anchor(self, node: Anchor) -> Query:
        return node

    def project(self, node: Project, source: Query) -> Query:
        return self.anchor_ if node is self.variable else Project(source, node.relation, node.kind)

    def intersect(self, node: Intersect, parts: list[Query]) -> Query:
        return self.anchor_ if node is self.variable else Intersect(tuple(parts), node.kind)

    def union(self, node: Union, parts: list[Query]) -> Query:
        return self.anchor_ if node is self.variable else Union(tuple(parts), node.kind)
