"""Questions: queries with a known answer, drawn backwards from the answer, with entities that are no answer."""

import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query._kernels import edges_of, steps_of
from halfgraph.query.exact import Ragged, available_cores
from halfgraph.query.program import Batch, compile_structure
from halfgraph.query.structures import Structure
from halfgraph.query.tree import Query, nodes, shared_variables, type_of
from halfgraph.workload.drawing import BY_ANSWER, BY_RELATION, BY_TRIPLE, PATIENCE, REASONS, draw_block

Ids = NDArray[np.int32]
Uniform = Literal["answers", "relations", "triples"]
HOW: Mapping[str, int] = {"answers": BY_ANSWER, "relations": BY_RELATION, "triples": BY_TRIPLE}
BLOCK = 8192  # questions drawn from one seed: the result does not depend on how many workers share the blocks


@dataclass(frozen=True)
class Questions:
    """Questions of one structure, as columns; the last five are there for validation and test questions only."""

    structure: Structure
    anchors: Ids  # (n, anchors)
    relations: Ids  # (n, relations)
    answers: Ids  # (n,)
    negative: Ids  # (n,): of the answer's type and no answer; -1 where none was asked for
    hard_negative: Ids  # (n,): the same, and on some path of the query but not on all
    missing: Ids | None = None  # (n,): how many triples of the drawn path the training graph lacks
    easy: Ragged | None = None  # the answers that the training graph gives
    hard: Ragged | None = None  # the answers that need a missing triple
    negatives: Ragged | None = None  # many negatives, for one question in ten
    hard_negatives: Ragged | None = None

    def __len__(self) -> int:
        return len(self.answers)

    def batch(self) -> Batch:
        """The queries as columns of one program."""
        return Batch(compile_structure(self.structure), self.anchors, self.relations)

    def query(self, i: int) -> Query:
        """One of the queries."""
        return self.structure.fill(self.anchors[i], self.relations[i])

    def take(self, rows: NDArray[np.integer]) -> "Questions":
        """Some of the questions."""

        def some(column: Any) -> Any:
            return column.take(rows) if isinstance(column, Ragged) else None if column is None else column[rows]

        return replace(self, **{f.name: some(getattr(self, f.name)) for f in fields(self) if f.name != "structure"})


@dataclass(frozen=True)
class Drawn:
    """Questions with the count of those thrown away, by reason."""

    questions: Questions
    tally: dict[str, int]


@dataclass(frozen=True)
class Sampler:
    """Draws questions from a graph.

    `uniform` says what a question's target is uniform over: the entities ("answers"), the relations that lead to it
    ("relations", then over the triples of the relation), or the triples ("triples", so that an entity is drawn in
    proportion to its degree). Every further edge is uniform over the edges of the entity reached so far.
    """

    graph: KnowledgeGraph
    uniform: Uniform = "answers"
    known: KnowledgeGraph | None = None  # for held-out questions: the training graph, on which they have no answer
    held_from: KnowledgeGraph | None = None  # ... the graph that must lack one of their triples
    truth: KnowledgeGraph | None = None  # ... and the graph on which negatives are no answers
    threads: int = field(default_factory=available_cores)

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """The graphs as the kernels take them."""
        edges = edges_of(self.graph)
        known = edges if self.known is None else edges_of(self.known)
        held_from = known if self.held_from is None else edges_of(self.held_from)
        truth = edges if self.truth is None else edges_of(self.truth)
        if self.uniform == "relations":
            order = np.argsort(self.graph.relations, kind="stable")
            starts = np.searchsorted(self.graph.relations[order], np.arange(self.graph.relation_count + 1))
        else:
            order, starts = np.empty(0, np.int64), np.zeros(1, np.int64)
        return edges, known, held_from, truth, (order.astype(np.int64), starts.astype(np.int64))

    def draw(
        self,
        structure: Structure,
        count: int,
        seed: int,
        *,
        negatives: bool = True,
        hard_negatives: bool = True,
        stream: int = 0,
    ) -> Drawn:
        """So many questions of a structure, or as many as the graph gives; the same for any number of threads."""
        _check(structure)
        seeds = np.random.SeedSequence([seed, zlib.crc32(structure.name.encode()), stream])
        sizes = [min(BLOCK, count - first) for first in range(0, max(count, 1), BLOCK)]
        numbers = seeds.generate_state(len(sizes), np.uint64)
        held_out = self.known is not None
        wants = (held_out, negatives, hard_negatives and structure.has_intersection)
        columns = (structure.anchor_count, structure.relation_count)
        steps = steps_of(compile_structure(structure))

        poor: list[int] = []  # blocks that gave few of their questions: those after the first such are left out

        def block(place: int) -> tuple[Any, ...]:
            if any(earlier < place for earlier in poor):
                return ()
            most = max(PATIENCE, sizes[place] * (20_000 if held_out else 2_000))
            how = HOW[self.uniform]
            drawn: tuple[Any, ...] = draw_block(
                *self._arrays, steps, columns, how, wants, numbers[place], sizes[place], most
            )
            if len(drawn[0]) * 10 < sizes[place]:
                poor.append(place)
            return drawn

        blocks = self._blocks(block, len(sizes))
        return _joined(structure, blocks[: min(poor, default=len(blocks)) + 1])

    def _blocks(self, block: Any, count: int) -> list[tuple[Any, ...]]:
        """What each block gives, in order."""
        if self.threads == 1 or count <= 1:
            return [block(place) for place in range(count)]
        self._arrays  # noqa: B018  made before the threads start
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(block, range(count)))


def _check(structure: Structure) -> None:
    """Nothing, or an error for a structure that cannot be drawn edge by edge."""
    if shared_variables(structure.query):
        raise SettingError("structure", f"{structure.name} uses a variable twice, and only trees are drawn")
    if any(type_of(node) is not None for node in nodes(structure.query)):
        raise SettingError("structure", f"{structure.name} restricts a type, and only free variables are drawn")


def _joined(structure: Structure, blocks: list[tuple[Any, ...]]) -> Drawn:
    """The blocks as one set of questions."""
    columns: Any = [np.concatenate([block[place] for block in blocks]) for place in range(6)]
    tally = sum((block[6] for block in blocks), np.zeros(len(REASONS), np.int64))
    reasons = {reason: int(n) for reason, n in zip(REASONS, tally, strict=True) if n}
    return Drawn(Questions(structure, *columns), reasons)


def every_edge(graph: KnowledgeGraph, structure: Structure) -> Questions:
    """Each edge of a graph as a one-edge question, both directions, without negatives."""
    none = np.full(len(graph.tails), -1, dtype=np.int32)
    heads = graph.heads()[:, None]
    return Questions(structure, heads, np.asarray(graph.relations)[:, None], np.asarray(graph.tails), none, none)
