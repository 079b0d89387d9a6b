"""Many questions at once: those of one form are columns of one query, walked, compared and answered together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.answering.cutting import Cut
from halfgraph.answering.schema import Answers, PredictedAnswer
from halfgraph.answering.store_rows import Facts, Names
from halfgraph.prediction.embedding import EmbeddingIndex, answer_types, top_entities
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.program import Batch, compile_query
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Query
from halfgraph.sparql.queries import count
from halfgraph.sparql.read import Reading
from halfgraph.sparql.syntax_tree import Iri, Triple, Variable
from halfgraph.sparql.templates import Template
from halfgraph.sparql.templates import TextNames as Named

AT_ONCE = 1 << 24  # cosines in memory at a time: 64 MB
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Together:
    """Questions of one form: where they stand among all, what they ask, and their names as columns."""

    places: Sequence[int]
    reading: Reading  # of one of them
    batch: Batch

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def query(self) -> Query:
        """What all of them ask, with columns in place of names."""
        return self.batch.tree()


def gather(found: Iterable[tuple[int, Template, Named]]) -> Iterator[Together]:
    """Questions with their places, those that differ in names and directions alone together."""
    by_template: dict[int, list[tuple[int, Template, Named]]] = {}
    for one in found:
        by_template.setdefault(id(one[1]), []).append(one)
    by_form: dict[tuple[object, ...], list[Together]] = {}
    for some in by_template.values():
        group = _of_template(some)
        reading, program = group.reading, group.batch.program
        steps = tuple(array.tobytes() for array in program.arrays)
        key = (*steps, reading.target, reading.distinct, reading.limit, reading.offset)
        by_form.setdefault(key, []).append(group)
    for groups in by_form.values():
        columns = (np.concatenate([getattr(one.batch, name) for one in groups]) for name in ("anchors", "relations"))
        places = [place for one in groups for place in one.places]
        yield Together(places, groups[0].reading, Batch(groups[0].batch.program, *columns))


def _of_template(some: Sequence[tuple[int, Template, Named]]) -> Together:
    """Questions of one template: each name of its tree by the names of each text."""
    template = some[0][1]
    one = compile_query(template.reading.query)
    named = [np.array([getattr(names, what) for *_, names in some], np.int32) for what in ("entities", "relations")]
    entities = _columns(one.anchors[0], template.names.entities, named[0])
    relations = _columns(one.relations[0] & ~1, template.names.relations, named[1]) + (one.relations[0] & 1)
    return Together([place for place, *_ in some], template.reading, Batch(one.program, entities, relations))


def _columns(own: Ids, names: Sequence[int], named: Ids) -> Ids:
    """A column for each id of a template's tree: those of the texts that it stands for, or itself where for none."""
    columns = [named[:, names.index(one)] if one in names else np.full(len(named), one) for one in own.tolist()]
    return np.stack(columns, axis=1).astype(np.int32)


@dataclass(frozen=True)
class Batches:
    """What answers many questions of a graph."""

    index: EmbeddingIndex
    facts: Facts
    names: Names
    exact: Exact
    _complete: dict[int, bool] = field(default_factory=dict, repr=False)

    def known(self, batch: Batch) -> Ragged | None:
        """The entities that are known to answer each question of a batch; None where only the store can tell.

        The store has more than the graph: literals, several classes of an entity, what was set aside. Where a query
        keeps to relations all of whose statements are the graph's triples, the two have the same answers.
        """
        if (batch.program.types >= 0).any() or batch.program.has_shared_variables or not batch.relations.size:
            return None
        if not all(map(self._is_complete, np.unique(batch.relations // 2).tolist())):
            return None
        return self.exact.answer_sets(batch)

    def _is_complete(self, relation: int) -> bool:
        """Whether all statements of a relation in the store are triples of the graph."""
        if relation not in self._complete:
            iri = self.names.relation(2 * relation).entity
            rows = self.facts.rows(count([Triple(Variable("s"), Iri(iri), Variable("o"))], "n")).bindings
            self._complete[relation] = int(rows[0]["n"]["value"]) == self._counts[relation]
        return self._complete[relation]

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """How many triples each relation has."""
        graph = self.exact.graph
        return np.bincount(np.asarray(graph.relations), minlength=graph.relation_count)[::2]

    def answers(self, group: Together, known: Ragged, top: int, any_type: bool) -> Iterator[Answers]:
        """The answers of each question, in order."""
        reading = group.reading
        sizes = known.sizes() - reading.offset
        cuts = [Cut.of(int(size), reading.limit, top) for size in sizes]
        best = self._best(group.query, known, max(cut.skip + cut.take for cut in cuts), any_type)
        for row, cut in enumerate(cuts):
            end = None if reading.limit is None else reading.offset + reading.limit
            exact = [
                self.names.known_entity(reading.target, number) for number in known[row][reading.offset : end].tolist()
            ]
            chosen = best[row][cut.skip : cut.skip + cut.take]
            yield Answers([reading.target], exact, [self._predicted(*one) for one in chosen], target=reading.target)

    def _predicted(self, number: int, score: float) -> PredictedAnswer:
        entity = self.names.entity(number)
        return PredictedAnswer(entity.entity, entity.label, self.names.type_of(number), round(score, 4))

    @torch.no_grad()
    def _best(self, query: Query, known: Ragged, count: int, any_type: bool) -> list[list[tuple[int, float]]]:
        """The best entities of each question but for known ones, with their cosines."""
        rows = len(known)
        ways = [F.normalize(way, dim=-1) for way in self.index.encoder.encode(disjuncts(without_negation(query)))]
        found: list[list[tuple[int, float]]] = [[] for _ in range(rows)]
        starts = self.names.graph.types.starts
        types = (
            np.full(rows, -1) if any_type else answer_types(self.index.encoder, self.names.graph.types, query, known)
        )
        for type_id in np.unique(types):
            first, last = (0, int(starts[-1])) if type_id < 0 else (int(starts[type_id]), int(starts[type_id + 1]))
            places = np.flatnonzero(types == type_id)
            for some in np.array_split(places, -(-len(places) * (last - first) // AT_ONCE)):
                scores = self._scores(ways, some, slice(first, last))
                best = top_entities(scores, count, first=first, without=[known[row] for row in some])
                for row, entities in zip(some, best, strict=True):
                    found[row] = entities
        return found

    def _scores(self, ways: Sequence[torch.Tensor], rows: NDArray[np.int64], among: slice) -> torch.Tensor:
        """The cosines of some questions with the entities of a range: (rows, range)."""
        places = torch.from_numpy(rows)
        vectors = self.index.vectors[among].t()
        scores = [way[places if len(way) > 1 else torch.zeros_like(places)] @ vectors for way in ways]
        return scores[0] if len(scores) == 1 else torch.stack(scores).amax(dim=0)
