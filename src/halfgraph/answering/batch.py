"""Many queries at once: those of the same form become columns of one query and are answered together."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.answering.cells import to_json
from halfgraph.answering.predicted_rows import Ranked, best_entities
from halfgraph.answering.schema import Answers
from halfgraph.prediction.base import map_chunks
from halfgraph.prediction.embedding import EmbeddingIndex, top_entities
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.link_features import CACHE
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.query.program import QueryBatch, compile_query
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Project, Query, nodes
from halfgraph.sparql.read import Reading
from halfgraph.sparql.templates import Template, TextNames

MOST_COSINES = 1 << 24  # in memory at a time: 64 MB
AT_ONCE = 64  # queries whose links are computed together
TextTemplate = tuple[int, Template, TextNames]  # the index of a text, its template and its names
Entities = NDArray[np.int32]
Rank = Callable[[Sequence[Entities]], list[Ranked]]  # the best entities of each query that are not known answers


@dataclass(frozen=True)
class QueryGroup:
    """Queries of the same form: the indexes of their texts, the reading of the first, and their ids as columns."""

    indexes: Sequence[int]
    reading: Reading
    batch: QueryBatch


def group_queries(read: Iterable[TextTemplate]) -> Iterator[QueryGroup]:
    """Group queries that differ only in entities, relations and directions."""
    by_template: dict[int, list[TextTemplate]] = {}
    for item in read:
        by_template.setdefault(id(item[1]), []).append(item)
    by_form: dict[tuple[object, ...], list[QueryGroup]] = {}
    for items in by_template.values():
        group = _of_template(items)
        steps = (array.tobytes() for array in group.batch.program.arrays)
        by_form.setdefault((*steps, group.reading.target), []).append(group)
    for groups in by_form.values():
        columns = (np.concatenate([getattr(one.batch, name) for one in groups]) for name in ("anchors", "relations"))
        indexes = [index for group in groups for index in group.indexes]
        yield QueryGroup(indexes, groups[0].reading, QueryBatch(groups[0].batch.program, *columns))


def _of_template(items: Sequence[TextTemplate]) -> QueryGroup:
    template = items[0][1]
    names = (np.array([getattr(one[2], what) for one in items], np.int32).T for what in ("entities", "relations"))
    batch = compile_query(template.filled(*names).query)
    columns = (np.broadcast_to(ids, (len(items), ids.shape[1])) for ids in (batch.anchors, batch.relations))
    return QueryGroup([index for index, *_ in items], template.reading, QueryBatch(batch.program, *columns))


def _relations(query: Query) -> list[int]:
    """The relations of a query, the last first."""
    return [int(node.relation) for node in reversed(nodes(query)) if isinstance(node, Project)]


@dataclass(frozen=True)
class BatchRanking:
    """Ranks entities for many queries; a chunk of them comes with a function that takes their known answers."""

    index: EmbeddingIndex
    executor: Callable[[], LinkExecutor]

    def chunks(self, mode: str, read: Sequence[TextTemplate], top: int) -> Iterator[tuple[list[TextTemplate], Rank]]:
        """Yield the queries in chunks, in another order, each with its function."""
        yield from self._by_embedding(read, top) if mode == EMBEDDING else self._by_links(read, top)

    def _by_embedding(self, read: Sequence[TextTemplate], top: int) -> Iterator[tuple[list[TextTemplate], Rank]]:
        items = {item[0]: item for item in read}
        for group in group_queries(read):
            yield [items[index] for index in group.indexes], partial(self._nearest, group.batch.tree(), top)

    def _by_links(self, read: Sequence[TextTemplate], top: int) -> Iterator[tuple[list[TextTemplate], Rank]]:
        """Threads score the next chunks while the caller asks the store, which holds the interpreter's lock."""
        queries = {index: template.filled(*names[:2]).query for index, template, names in read}
        ordered = sorted(read, key=lambda item: _relations(queries[item[0]]))  # links of a relation come together
        executor, size = self.executor(), max(1, min(AT_ONCE, CACHE // len(self.index.vectors)))

        def scores(rows: slice) -> NDArray[np.float32]:
            return np.stack(list(executor.batch_scores([queries[index] for index, *_ in ordered[rows]])))

        for rows, found in map_chunks(scores, len(ordered), size):
            yield ordered[rows], partial(best_entities, found, top)

    @torch.no_grad()
    def _nearest(self, query: Query, top: int, without: Sequence[Entities]) -> list[Ranked]:
        vectors = [F.normalize(one, dim=-1) for one in self.index.encoder.encode(disjuncts(without_negation(query)))]
        best: list[Ranked] = []
        parts = -(-len(without) * len(self.index.vectors) // MOST_COSINES)
        for rows in np.array_split(np.arange(len(without)), parts):
            best += top_entities(self._scores(vectors, rows), top, first=0, without=[without[row] for row in rows])
        return best

    def _scores(self, vectors: Sequence[torch.Tensor], rows: NDArray[np.int64]) -> torch.Tensor:
        chosen, entities = torch.from_numpy(rows), self.index.vectors.t()
        scores = [one[chosen if len(one) > 1 else torch.zeros_like(chosen)] @ entities for one in vectors]
        return scores[0] if len(scores) == 1 else torch.stack(scores).amax(dim=0)


def json_line(answers: Answers) -> str:
    """Return `to_dict` of answers as JSON; known answers that other queries of the batch have too are written once."""
    values = to_json(replace(answers, known=()))
    known = f"[{', '.join(answer.json for answer in answers.known)}]"
    texts = (known if key == "known" else json.dumps(value, ensure_ascii=False) for key, value in values.items())
    return "{" + ", ".join(f'"{key}": {text}' for key, text in zip(values, texts, strict=True)) + "}"
