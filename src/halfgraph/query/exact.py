"""The meaning `Exact`: the set of entities that answer a query on a given graph."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import UnknownName
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query._kernels import answer_sets, are_answers, edges_of, plain, steps_of
from halfgraph.query.program import Batch, compile_query
from halfgraph.query.tree import (
    Anchor,
    Column,
    Intersect,
    Negate,
    Project,
    Query,
    Rebuilt,
    Union,
    check_negations,
    fold,
    nodes,
    shared_variables,
    type_of,
    without_negation,
)

Entities = NDArray[np.int32]
LONGEST = 3  # relations on a path that membership is looked for backwards; the ways back grow with each relation
AT_ONCE = 512  # values of a shared variable joined in one batch, so that their answers fit in memory


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
        place = range(len(self))[i]
        return self.values[self.offsets[place] : self.offsets[place + 1]]

    def sizes(self) -> NDArray[np.int64]:
        """How many entities each set has."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.integer]) -> "Ragged":
        """Some of the sets."""
        return Ragged.of([self[int(row)] for row in rows])


@dataclass(frozen=True)
class Exact:
    """The answers on a graph; `relaxed` reads every intersection as a union, negations left out, for hard negatives."""

    graph: KnowledgeGraph
    relaxed: bool = False
    edges: tuple[Any, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", edges_of(self.graph))

    def answers(self, query: Query) -> Entities:
        """The answers of one query, sorted."""
        check_negations(query)
        if not shared_variables(query):
            return self.answer_sets(compile_query(query), threads=1)[0]
        if isinstance(query, Union):  # each part by itself: joined together, their shared variables would multiply
            found = _one_set([self.answers(part) for part in query.parts])
            return found if query.type_id is None else found[self.graph.types.of(found) == query.type_id]
        if _joins_in_negations(query) and not self.relaxed:
            return _one_set([self._set(one) for one in self._pinned(query)])
        return _one_set([self.answer_sets(batch, threads=1).values for batch in self._joined(query)])

    def has_answer(self, query: Query, entity: int) -> bool:
        """Whether an entity is an answer; leaves as soon as that is known."""
        check_negations(query)
        if _joins_in_negations(query) and not self.relaxed:
            return entity in self.answers(query)
        return any(
            self.have_answers(batch, np.full(len(batch), entity, np.int32), threads=1).any()
            for batch in self._joined(query)
        )

    def _joined(self, query: Query) -> Iterator[Batch]:
        """Batches without shared variables that together have the query's answers."""
        query = without_negation(query) if self.relaxed else query
        shared = shared_variables(query)
        if not shared:
            yield compile_query(query)
        elif len(shared) == 1:
            # A variable used twice takes one value at a time on both ways: a join over its possible values.
            values = self.answers(shared[0])
            for first in range(0, len(values), AT_ONCE):
                yield compile_query(pinned(query, shared[0], values[first : first + AT_ONCE]))
            yield from (batch for one in self._without(query, shared[0]) for batch in self._joined(one))
        else:
            for value in self.answers(shared[0]):
                yield from self._joined(pinned(query, shared[0], int(value)))
            yield from (batch for one in self._without(query, shared[0]) for batch in self._joined(one))

    def _without(self, query: Query, variable: Query) -> list[Query]:
        """The query where a variable has no value, if it may: a branch that does not need the variable may do."""
        may = self.relaxed or any(isinstance(node, Union) for node in nodes(query))
        return [_replaced(query, variable, Union(()))] if may else []

    def _pinned(self, query: Query) -> Iterator[Query]:
        """Queries that share variables inside negations only and together have the query's answers."""
        outside = {id(node) for node in nodes(query, negated=False)}
        shared = next((node for node in shared_variables(query) if id(node) in outside), None)
        if shared is None:
            yield query
            return
        for value in self.answers(shared):
            yield from self._pinned(pinned(query, shared, int(value)))
        yield from (each for one in self._without(query, shared) for each in self._pinned(one))

    def _set(self, query: Query) -> Entities:
        """The answers of a query that shares variables inside negations only, node by node."""
        match query:
            case Anchor():
                found = np.array([query.entity], np.int32)
            case Project():
                heads = self._set(query.source)
                found = _one_set([self.graph.tails_of(int(head), int(query.relation)) for head in heads])
            case Union():
                found = _one_set([self._set(part) for part in query.parts])
            case Intersect():
                sets = [self._set(part) for part in query.parts if not isinstance(part, Negate)]
                found = reduce(np.intersect1d, sets)
                negated = [self.answers(part.part) for part in query.parts if isinstance(part, Negate)]
                found = np.setdiff1d(found, _one_set(negated))
            case Negate():
                raise AssertionError("a negation is a part of an intersection")
        type_id = type_of(query)
        return found if type_id is None else found[self.graph.types.of(found) == type_id]

    def answer_sets(self, batch: Batch, threads: int | None = None) -> Ragged:
        """The answers of each query of a batch."""
        self._check(batch)
        if batch.program.joins:
            return Ragged.of([self.answers(batch.query(row)) for row in range(len(batch))])
        steps, anchors, relations = steps_of(batch.program), plain(batch.anchors), plain(batch.relations)

        def some(rows: slice) -> tuple[Entities, NDArray[np.int64]]:
            found: tuple[Entities, NDArray[np.int64]] = answer_sets(
                self.edges, steps, anchors[rows], relations[rows], self.relaxed
            )
            return found

        pieces = in_pieces(some, len(batch), threads)
        sizes = np.concatenate([np.diff(offsets) for _, offsets in pieces])
        return Ragged(np.concatenate([values for values, _ in pieces]), np.append(0, np.cumsum(sizes)))

    def have_answers(self, batch: Batch, entities: Entities, threads: int | None = None) -> NDArray[np.bool_]:
        """Whether each entity is an answer of its query."""
        self._check(batch, entities)
        if batch.program.joins:
            found = [self.has_answer(batch.query(row), int(entity)) for row, entity in enumerate(entities)]
            return np.array(found, dtype=bool)
        if batch.program.longest > LONGEST:
            return self._among_answers(batch, entities, threads)
        steps, anchors, relations = steps_of(batch.program), plain(batch.anchors), plain(batch.relations)
        candidates = plain(entities)

        def some(rows: slice) -> NDArray[np.bool_]:
            found: NDArray[np.bool_] = are_answers(
                self.edges, steps, anchors[rows], relations[rows], candidates[rows], self.relaxed
            )
            return found

        return np.concatenate(in_pieces(some, len(batch), threads))

    def _among_answers(self, batch: Batch, entities: Entities, threads: int | None) -> NDArray[np.bool_]:
        """The same from the whole sets of answers."""
        sets = self.answer_sets(batch, threads)
        rows = np.repeat(np.arange(len(batch)), sets.sizes())
        found = np.zeros(len(batch), dtype=bool)
        found[rows[sets.values == entities[rows]]] = True
        return found

    def _check(self, batch: Batch, entities: Entities | None = None) -> None:
        """Nothing, or an error for numbers that are none of the graph's: the kernels would read beside its arrays."""
        assert entities is None or len(entities) == len(batch)
        bounds = {"entity": self.graph.entity_count, "type": len(self.graph.types)}
        columns = (("entity", batch.anchors, 0), ("entity", entities, 0), ("type", batch.program.types, -1))
        for what, numbers, least in columns:
            if numbers is None or not numbers.size:
                continue
            for number in (int(numbers.min()), int(numbers.max())):
                if not least <= number < bounds[what]:
                    raise UnknownName(str(number), what=f"{what} number")


def _joins_in_negations(query: Query) -> bool:
    """Whether a negated path uses a variable of its own twice."""
    return any(isinstance(node, Negate) and shared_variables(node) for node in nodes(query))


def _one_set(sets: list[Entities]) -> Entities:
    """The entities of several sets, sorted."""
    return np.unique(np.concatenate([*sets, np.empty(0, np.int32)]))


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


def pinned(query: Query, variable: Query, entity: Column) -> Query:
    """The query with a variable replaced by an entity, or a batch by a column of them."""
    return _replaced(query, variable, Anchor(entity))


def _replaced(query: Query, variable: Query, by: Query) -> Query:
    """The query with one node replaced."""
    return fold(query, _Replaced(variable, by))


@dataclass(frozen=True)
class _Replaced(Rebuilt):
    """One node replaced."""

    variable: Query
    by: Query

    def project(self, node: Project, source: Query) -> Query:
        return self.by if node is self.variable else super().project(node, source)

    def intersect(self, node: Intersect, parts: list[Query]) -> Query:
        return self.by if node is self.variable else super().intersect(node, parts)

    def union(self, node: Union, parts: list[Query]) -> Query:
        return self.by if node is self.variable else super().union(node, parts)
