"""Questions, queries with a known answer and negatives, and the sampler that draws them from a graph."""

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query._kernels import edges_of
from halfgraph.query.exact import Ragged, map_threads
from halfgraph.query.program import QueryBatch
from halfgraph.query.structures import Structure
from halfgraph.query.tree import Query, nodes, shared_variables, type_of
from halfgraph.workload._sampling_kernels import BY_ANSWER, BY_RELATION, BY_TRIPLE, PATIENCE, REASONS, draw_block

Ids = NDArray[np.int32]
Uniform = Literal["answers", "relations", "triples"]
HOW: Mapping[str, int] = {"answers": BY_ANSWER, "relations": BY_RELATION, "triples": BY_TRIPLE}
BLOCK = 8192  # questions drawn from one seed: the result does not depend on the number of threads
COLUMNS = ("anchors", "relations", "answers", "negative", "hard_negative", "missing")  # that every draw gives


@dataclass(frozen=True)
class Questions:
    """Questions of one structure, as columns; only validation and test questions have the last five."""

    structure: Structure
    anchors: Ids  # (n, anchors)
    relations: Ids  # (n, relations)
    answers: Ids  # (n,)
    negative: Ids  # (n,): of the answer's type and not an answer; -1 if there is none
    hard_negative: Ids  # (n,): the same, and some paths of the query lead to it but not all
    missing: Ids | None = None  # (n,): how many triples of the drawn path the training graph lacks
    easy: Ragged | None = None  # the answers on the training graph
    hard: Ragged | None = None  # the answers that need a missing triple
    negatives: Ragged | None = None  # many negatives, for one question in ten
    hard_negatives: Ragged | None = None

    def __len__(self) -> int:
        return len(self.answers)

    def batch(self) -> QueryBatch:
        return QueryBatch(self.structure.program, self.anchors, self.relations)

    def query(self, i: int) -> Query:
        return self.structure.fill(self.anchors[i], self.relations[i])

    def take(self, rows: NDArray[np.integer]) -> "Questions":

        def pick(column: Any) -> Any:
            return column.take(rows) if isinstance(column, Ragged) else None if column is None else column[rows]

        return replace(self, **{f.name: pick(getattr(self, f.name)) for f in fields(self) if f.name != "structure"})


@dataclass(frozen=True)
class Drawn:
    """Drawn questions, and the number of those kept and rejected by reason."""

    questions: Questions
    tally: Counter[str]


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
    truth: KnowledgeGraph | None = None  # ... and the graph on which negatives are not answers
    threads: int | None = None  # default: one for each core

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """The graphs as the kernels read them, and the edges by relation."""
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
        """Draw questions of a structure, fewer if the graph has too few; the same for any number of threads."""
        _check(structure)
        seeds = np.random.SeedSequence([seed, zlib.crc32(structure.name.encode()), stream])
        sizes = [min(BLOCK, count - first) for first in range(0, max(count, 1), BLOCK)]
        numbers = seeds.generate_state(len(sizes), np.uint64)
        wants = (self.known is not None, negatives, hard_negatives and structure.has_intersection)
        columns = (structure.anchor_count, structure.relation_count)
        given = (*self._arrays, structure.program.arrays, columns, HOW[self.uniform], wants)
        poor: list[int] = []  # blocks with few of their questions: all blocks after the first such are left out

        def work(block: int) -> tuple[Any, ...]:
            if any(earlier < block for earlier in poor):
                return ()
            size = sizes[block]
            most = max(PATIENCE, size * (20_000 if self.known is not None else 2_000))
            drawn: tuple[Any, ...] = draw_block(*given, numbers[block], size, most)
            if len(drawn[0]) * 10 < size:
                poor.append(block)
            return drawn

        blocks = map_threads(work, range(len(sizes)), self.threads)
        blocks = blocks[: min(poor, default=len(blocks)) + 1]
        joined: Any = [np.concatenate([block[number] for block in blocks]) for number in range(len(COLUMNS))]
        tally = sum((block[-1] for block in blocks), np.zeros(len(REASONS), np.int64)).tolist()
        return Drawn(Questions(structure, *joined), +Counter(dict(zip(REASONS, tally, strict=True))))


def _check(structure: Structure) -> None:
    """Raise SettingError for a structure that cannot be drawn edge by edge."""
    if shared_variables(structure.query):
        raise SettingError("structure", f"{structure.name} uses a variable twice, and only trees can be sampled")
    if any(type_of(node) is not None for node in nodes(structure.query)):
        raise SettingError("structure", f"{structure.name} restricts a type, and only free variables can be sampled")


def every_edge(graph: KnowledgeGraph, structure: Structure) -> Questions:
    """Return each edge of a graph, in both directions, as a one-edge question without negatives."""
    none = np.full(len(graph.tails), -1, dtype=np.int32)
    heads = graph.heads()[:, None]
    return Questions(structure, heads, np.asarray(graph.relations)[:, None], np.asarray(graph.tails), none, none)
