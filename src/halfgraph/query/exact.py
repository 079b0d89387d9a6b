"""Exact answers: the set of entities that answer a query on a given graph."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import UnknownName
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query._kernels import answer_sets, are_answers, contiguous, edges_of
from halfgraph.query.fold import fold
from halfgraph.query.program import QueryBatch, compile_query
from halfgraph.query.rewriting import pin, replace_node
from halfgraph.query.tree import (
    Anchor,
    Column,
    Intersect,
    Negate,
    Project,
    Query,
    Union,
    check_negations,
    has_choice,
    nodes,
    shared_variables,
    type_of,
)

Entities = NDArray[np.int32]
T = TypeVar("T")
AT_ONCE = 512  # values of a shared variable joined in one batch, so that their answers fit in memory
NOTHING = Union(())


@dataclass(frozen=True)
class Ragged:
    """Several sets of entities: set i is values[offsets[i]:offsets[i + 1]]."""

    values: Entities
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sets: list[Entities]) -> "Ragged":
        offsets = np.zeros(len(sets) + 1, dtype=np.int64)
        np.cumsum(list(map(len, sets)), out=offsets[1:])
        return cls(np.concatenate([*sets, np.empty(0, np.int32)]).astype(np.int32), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Entities:
        row = range(len(self))[i]
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.integer]) -> "Ragged":
        return Ragged.of([self[int(row)] for row in rows])


@dataclass(frozen=True)
class Exact:
    """Exact answers on a graph."""

    graph: KnowledgeGraph
    edges: tuple[Any, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", edges_of(self.graph))

    def answers(self, query: Query) -> Entities:
        check_negations(query)
        if not shared_variables(query):
            return self.answer_sets(compile_query(query), threads=1)[0]
        if isinstance(query, Union):  # part by part: joined together, their shared variables would multiply
            return self.restrict(_merge([self.answers(part) for part in query.parts]), type_of(query))
        if self._by_node(query):
            return _merge([fold(tree, _Sets(self)) for tree in self._trees(query)])
        return _merge([self.answer_sets(compile_query(tree), threads=1).values for tree in self._trees(query)])

    def restrict(self, entities: Entities, type_id: int | None) -> Entities:
        """Return the entities of a type; None stands for any."""
        return entities if type_id is None else entities[self.graph.types.of(entities) == type_id]

    def _by_node(self, query: Query) -> bool:
        """Whether a negated path shares a variable within itself, so that the query is evaluated node by node."""
        negations = (node for node in nodes(query) if isinstance(node, Negate))
        return any(map(shared_variables, negations))

    def _trees(self, query: Query) -> Iterator[Query]:
        """Yield queries, or batches, without shared variables outside negations that together have the answers.

        A shared variable has the same value on all its paths: this is a join over its possible values. The last one is
        joined in batches.
        """
        shared = shared_variables(query, negated=False)
        if not shared:
            yield query
            return
        values, size = self.answers(shared[0]), 1 if len(shared) > 1 or self._by_node(query) else AT_ONCE
        for first in range(0, len(values), size):
            column: Column = values[first : first + size] if size > 1 else int(values[first])
            yield from self._trees(pin(query, shared[0], column))
        if has_choice(query):  # a branch may not need the variable
            yield from self._trees(replace_node(query, shared[0], NOTHING))

    def answer_sets(self, batch: QueryBatch, threads: int | None = None, *, relaxed: bool = False) -> Ragged:
        """Return the answers of each query; `relaxed` reads intersections as unions and ignores negations."""
        self._check(batch)
        if batch.program.has_shared_variables:
            assert not relaxed, "only trees have relaxed answers"
            return Ragged.of([self.answers(batch.query(row)) for row in range(len(batch))])
        pieces = self._run(lambda *arrays: answer_sets(*arrays, relaxed), batch, threads)
        sizes = np.concatenate([np.diff(offsets) for _, offsets in pieces])
        return Ragged(np.concatenate([values for values, _ in pieces]), np.append(0, np.cumsum(sizes)))

    def have_answers(self, batch: QueryBatch, entities: Entities, threads: int | None = None) -> NDArray[np.bool_]:
        """Return for each entity whether it is an answer of its query, a tree of short paths."""
        self._check(batch, entities)
        assert not batch.program.has_shared_variables
        return np.concatenate(self._run(are_answers, batch, threads, entities))

    def _run(self, kernel: Any, batch: QueryBatch, threads: int | None, *columns: Entities) -> list[Any]:
        """Run a kernel on pieces of the batch and of further columns."""
        arrays = [contiguous(column) for column in (batch.anchors, batch.relations, *columns)]

        def work(rows: slice) -> Any:
            return kernel(self.edges, batch.program.arrays, *(array[rows] for array in arrays))

        return in_pieces(work, len(batch), threads)

    def _check(self, batch: QueryBatch, entities: Entities | None = None) -> None:
        """Raise UnknownName for ids outside the graph: the kernels would read beyond its arrays."""
        assert entities is None or len(entities) == len(batch)
        bounds = {"entity": self.graph.entity_count, "type": len(self.graph.types)}
        columns = (("entity", batch.anchors, 0), ("entity", entities, 0), ("type", batch.program.types, -1))
        for what, numbers, least in columns:
            if numbers is None or not numbers.size:
                continue
            for number in (int(numbers.min()), int(numbers.max())):
                if not least <= number < bounds[what]:
                    raise UnknownName(str(number), what=f"{what} number")


@dataclass(frozen=True)
class _Sets:
    """The interpretation that yields each node's set, for queries that share variables inside negations only."""

    exact: Exact

    def anchor(self, node: Anchor) -> Entities:
        return np.array([node.entity], np.int32)

    def project(self, node: Project, source: Entities) -> Entities:
        tails = [self.exact.graph.tails_of(int(head), int(node.relation)) for head in source]
        return self.exact.restrict(_merge(tails), node.type_id)

    def intersect(self, node: Intersect, parts: list[Entities]) -> Entities:
        included: list[Entities] = []
        excluded: list[Entities] = []
        for child, part in zip(node.parts, parts, strict=True):
            (excluded if isinstance(child, Negate) else included).append(part)
        return self.exact.restrict(np.setdiff1d(reduce(np.intersect1d, included), _merge(excluded)), node.type_id)

    def union(self, node: Union, parts: list[Entities]) -> Entities:
        return self.exact.restrict(_merge(parts), node.type_id)

    def negate(self, node: Negate, part: Entities) -> Entities:  # noqa: ARG002  ignores the shared variables
        return self.exact.answers(node.part)


def _merge(sets: list[Entities]) -> Entities:
    """Return the sorted union of the sets."""
    return np.unique(np.concatenate([*sets, np.empty(0, np.int32)]))


def in_pieces(work: Callable[[slice], Any], count: int, threads: int | None) -> list[Any]:
    """Apply `work` to slices of the rows, on several threads if there are enough, and return the results in order."""
    threads = threads or available_cores()
    size = max(64, -(-count // (4 * threads)))
    pieces = [slice(first, min(first + size, count)) for first in range(0, max(count, 1), size)]
    return map_threads(work, pieces, threads)


def map_threads(work: Callable[[Any], T], items: Sequence[Any], threads: int | None) -> list[T]:
    """Apply `work` to the items, on several threads if there are several items, and return the results in order."""
    if threads == 1 or len(items) == 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads or available_cores()) as pool:
        return list(pool.map(work, items))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
