"""Many queries at once: those of the same form become columns of one query and are answered together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.answering.predicted_rows import PredictedRows, Ranked
from halfgraph.answering.schema import Answers, KnownAnswer
from halfgraph.prediction.embedding import EmbeddingIndex, top_entities
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.query.exact import Ragged
from halfgraph.query.program import QueryBatch, compile_query
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Query
from halfgraph.sparql.read import Reading
from halfgraph.sparql.templates import Template, TextNames

MOST_COSINES = 1 << 24  # in memory at a time: 64 MB
TextTemplate = tuple[int, Template, TextNames]  # the index of a text, its template and its names


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


@dataclass(frozen=True)
class KnownRows:
    """The store's rows for a query, and the entities of all its answers, those that LIMIT leaves out too."""

    variables: Sequence[str]
    answers: Sequence[KnownAnswer]
    entities: NDArray[np.int32]


@dataclass(frozen=True)
class BatchAnswers:
    """Answers groups of queries by embedding."""

    index: EmbeddingIndex
    predicted_rows: PredictedRows

    def answers(self, group: QueryGroup, known: Sequence[KnownRows], top: int) -> Iterator[Answers]:
        """Yield the answers of each query: its known rows, then the best other entities."""
        best = self._best(group.batch.tree(), Ragged.of([rows.entities for rows in known]), top)
        for rows, ranked in zip(known, best, strict=True):
            predicted = self.predicted_rows.answers(EMBEDDING, ranked)
            yield Answers(rows.variables, rows.answers, predicted, target=group.reading.target)

    @torch.no_grad()
    def _best(self, query: Query, known: Ragged, count: int) -> list[Ranked]:
        vectors = [F.normalize(one, dim=-1) for one in self.index.encoder.encode(disjuncts(without_negation(query)))]
        best: list[Ranked] = []
        for rows in np.array_split(np.arange(len(known)), -(-len(known) * len(self.index.vectors) // MOST_COSINES)):
            without = [known[row] for row in rows]
            best += top_entities(self._scores(vectors, rows), count, first=0, without=without)
        return best

    def _scores(self, vectors: Sequence[torch.Tensor], rows: NDArray[np.int64]) -> torch.Tensor:
        chosen, entities = torch.from_numpy(rows), self.index.vectors.t()
        scores = [one[chosen if len(one) > 1 else torch.zeros_like(chosen)] @ entities for one in vectors]
        return scores[0] if len(scores) == 1 else torch.stack(scores).amax(dim=0)
