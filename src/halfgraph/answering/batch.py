"""Many queries at once: those of the same form become columns of one query and are answered together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.answering.predicted_rows import PredictedRows, Ranked, predicted_page
from halfgraph.answering.schema import Answers
from halfgraph.answering.store_rows import EntityNames, GraphStore
from halfgraph.prediction.embedding import EmbeddingIndex, answer_types, top_entities
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.program import QueryBatch, compile_query
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Query
from halfgraph.sparql.read import Reading
from halfgraph.sparql.syntax_tree import count_by
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
        reading, steps = group.reading, (array.tobytes() for array in group.batch.program.arrays)
        key = (*steps, reading.target, reading.distinct, reading.limit, reading.offset)
        by_form.setdefault(key, []).append(group)
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
class BatchAnswers:
    """Answers groups of queries by embedding."""

    index: EmbeddingIndex
    store: GraphStore
    names: EntityNames
    exact: Exact
    predicted_rows: PredictedRows
    _complete: dict[int, bool] = field(default_factory=dict, repr=False)

    def known(self, batch: QueryBatch) -> Ragged | None:
        """Return the exact answers of each query of a batch; None if only the store knows them.

        The store has more than the graph: literals, several classes of an entity, statements that were set aside. For
        relations all of whose statements are triples of the graph, the two have the same answers.
        """
        if (batch.program.types >= 0).any() or batch.program.has_shared_variables or not batch.relations.size:
            return None
        return self.exact.answer_sets(batch) if self._are_complete(np.unique(batch.relations // 2).tolist()) else None

    def _are_complete(self, relations: Sequence[int]) -> bool:
        unknown = {self.names.relation(2 * one).entity: one for one in relations if one not in self._complete}
        if unknown:
            rows = self.store.rows(count_by(list(unknown))).bindings
            counts = {row["relation"]["value"]: int(row["count"]["value"]) for row in rows}
            for iri, relation in unknown.items():
                self._complete[relation] = counts.get(iri, 0) == self._counts[relation]
        return all(self._complete[relation] for relation in relations)

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        graph = self.exact.graph
        return np.bincount(np.asarray(graph.relations), minlength=graph.relation_count)[::2]

    def answers(self, group: QueryGroup, known: Ragged, top: int, any_type: bool) -> Iterator[Answers]:
        reading, target = group.reading, group.reading.target
        pages = [predicted_page(int(size), reading.limit, top) for size in known.sizes() - reading.offset]
        best = self._best(group.batch.tree(), known, max(page.stop for page in pages), any_type)
        end = None if reading.limit is None else reading.offset + reading.limit
        for row, page in enumerate(pages):
            exact = [self.names.known_entity(target, number) for number in known[row][reading.offset : end].tolist()]
            predicted = self.predicted_rows.answers(EMBEDDING, reading.query, best[row][page])
            yield Answers([target], exact, predicted, target=target)

    @torch.no_grad()
    def _best(self, query: Query, known: Ragged, count: int, any_type: bool) -> list[Ranked]:
        types = self.names.graph.types
        vectors = [F.normalize(one, dim=-1) for one in self.index.encoder.encode(disjuncts(without_negation(query)))]
        best: list[Ranked] = [[] for _ in range(len(known))]
        chosen = np.full(len(known), -1) if any_type else answer_types(self.index.encoder, types, query, known)
        for type_id in np.unique(chosen).tolist():
            among, members = self.names.of_type(None if type_id < 0 else type_id), np.flatnonzero(chosen == type_id)
            for chunk in np.array_split(members, -(-len(members) * (among.stop - among.start) // MOST_COSINES)):
                scores = self._scores(vectors, chunk, among)
                ranked = top_entities(scores, count, first=among.start, without=[known[row] for row in chunk])
                for row, entities in zip(chunk, ranked, strict=True):
                    best[row] = entities
        return best

    def _scores(self, vectors: Sequence[torch.Tensor], rows: NDArray[np.int64], among: slice) -> torch.Tensor:
        chosen, entities = torch.from_numpy(rows), self.index.vectors[among].t()
        scores = [one[chosen if len(one) > 1 else torch.zeros_like(chosen)] @ entities for one in vectors]
        return scores[0] if len(scores) == 1 else torch.stack(scores).amax(dim=0)
