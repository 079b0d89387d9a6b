"""Many questions at once: those of one template are columns of one query, walked, compared and answered together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.answering.answers import Answers, Cell, Known, Predicted
from halfgraph.answering.cutting import Cut
from halfgraph.answering.facts import Facts, Names
from halfgraph.answering.index import Index
from halfgraph.graph.knowledge_graph import Kinds
from halfgraph.model.encoder import Encoder
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.program import compile_query
from halfgraph.query.tree import Anchor, Negate, Query, disjuncts, edges, kind_of, nodes, without_negation
from halfgraph.sparql.reading import Reading
from halfgraph.sparql.templates import Names as Named
from halfgraph.sparql.templates import Template

AT_ONCE = 1 << 24  # cosines in memory at a time: 64 MB
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Together:
    """Questions of one template: where they stand among all, and their names as columns."""

    template: Template
    places: Sequence[int]
    entities: Ids  # (n, entities)
    relations: Ids  # (n, relations)

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def reading(self) -> Reading:
        """What all of them ask, with columns in place of names."""
        return self.template.filled(self.entities, self.relations)


def gather(found: Sequence[tuple[int, Template, Named]]) -> Iterator[Together]:
    """Questions with their places, those of one template together."""
    groups: dict[int, list[tuple[int, Template, Named]]] = {}
    for one in found:
        groups.setdefault(id(one[1]), []).append(one)
    for some in groups.values():
        columns = (
            np.array([getattr(named, what) for _, _, named in some], dtype=np.int32).reshape(len(some), -1)
            for what in ("entities", "relations")
        )
        yield Together(some[0][1], [place for place, _, _ in some], *columns)


@dataclass(frozen=True)
class Batches:
    """What answers many questions of a graph."""

    index: Index
    facts: Facts
    names: Names
    exact: Exact
    _complete: dict[int, bool] = field(default_factory=dict, repr=False)

    def known(self, group: Together) -> Ragged | None:
        """The entities that are known to answer each question; None where only the store can tell.

        The store has more than the graph: literals, several classes of an entity, what was set aside. Where a query
        keeps to relations all of whose statements are the graph's triples, the two have the same answers.
        """
        query = group.reading.query
        if any(kind_of(node) is not None for node in nodes(query)) or isinstance(query, Anchor):
            return None
        if not all(self._is_complete(int(relation) // 2) for relation in _relations(query)):
            return None
        return self.exact.answer_sets(compile_query(query))

    def _is_complete(self, relation: int) -> bool:
        """Whether all statements of a relation in the store are triples of the graph."""
        if relation not in self._complete:
            iri = self.names.relation(2 * relation).entity
            rows = self.facts.rows(f"SELECT (COUNT(*) AS ?n) {{ ?s <{iri}> ?o }}").bindings
            self._complete[relation] = int(rows[0]["n"]["value"]) == self._counts[relation]
        return self._complete[relation]

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """How many triples each relation has."""
        graph = self.exact.graph
        return np.bincount(np.asarray(graph.relations), minlength=graph.relation_count)[::2]

    def answers(self, group: Together, known: Ragged, top: int, any_kind: bool) -> Iterator[Answers]:
        """The answers of each question, in order."""
        reading = group.reading
        sizes = known.sizes() - reading.offset
        cuts = [Cut.of(int(size), reading.limit, top) for size in sizes]
        best = self._best(reading, known, max(cut.skip + cut.take for cut in cuts), any_kind)
        for row, cut in enumerate(cuts):
            end = None if reading.limit is None else reading.offset + reading.limit
            exact = [self._known(reading.target, int(number)) for number in known[row][reading.offset : end]]
            chosen = best[row][cut.skip : cut.skip + cut.take]
            yield Answers([reading.target], exact, [self._predicted(*one) for one in chosen])

    def _known(self, target: str, number: int) -> Known:
        entity = self.names.entity(number)
        blank = entity.entity.startswith("_:")
        cell = Cell("bnode" if blank else "uri", entity.entity, entity.label)
        return Known(entity.entity, entity.label, self.names.kind_of(number), {target: cell})

    def _predicted(self, number: int, score: float) -> Predicted:
        entity = self.names.entity(number)
        return Predicted(entity.entity, entity.label, self.names.kind_of(number), round(score, 4))

    @torch.no_grad()
    def _best(self, reading: Reading, known: Ragged, count: int, any_kind: bool) -> list[list[tuple[int, float]]]:
        """The best entities of each question but for known ones, with their cosines."""
        rows = len(known)
        ways = [
            F.normalize(way, dim=-1) for way in self.index.encoder.encode(disjuncts(without_negation(reading.query)))
        ]
        found: list[list[tuple[int, float]]] = [[] for _ in range(rows)]
        starts = self.names.graph.kinds.starts
        kinds = (
            np.full(rows, -1)
            if any_kind
            else kinds_of_answers(self.index.encoder, self.names.graph.kinds, reading.query, known)
        )
        for kind in np.unique(kinds):
            first, last = (0, int(starts[-1])) if kind < 0 else (int(starts[kind]), int(starts[kind + 1]))
            places = np.flatnonzero(kinds == kind)
            for some in np.array_split(places, -(-len(places) * (last - first) // AT_ONCE)):
                scores = self._scores(ways, some, slice(first, last))
                _leave_out(scores, [known[row] for row in some], first)
                best, entities = scores.topk(min(count, scores.shape[1]))
                for row, cosines, numbers in zip(some, best.tolist(), (entities + first).tolist(), strict=True):
                    found[row] = [pair for pair in zip(numbers, cosines, strict=True) if pair[1] > -2]
        return found

    def _scores(self, ways: Sequence[torch.Tensor], rows: NDArray[np.int64], among: slice) -> torch.Tensor:
        """The cosines of some questions with the entities of a range: (rows, range)."""
        places = torch.from_numpy(rows)
        vectors = self.index.vectors[among].t()
        scores = [way[places if len(way) > 1 else torch.zeros_like(places)] @ vectors for way in ways]
        return scores[0] if len(scores) == 1 else torch.stack(scores).amax(dim=0)


def kinds_of_answers(encoder: Encoder, kinds: Kinds, query: Query, known: Ragged) -> NDArray[np.int64]:
    """The kind of the answers to each question of a batch: as of known ones, or else as its relations usually end."""
    assert not isinstance(query, Anchor | Negate)
    usual = encoder.kinds_of(query, len(known)).cpu().numpy()
    found = np.broadcast_to(usual, (len(known),)).astype(np.int64)
    if kind_of(query) is None:
        of_known = kinds.of(known.values)
        for row in np.flatnonzero(known.sizes()):
            found[row] = np.bincount(of_known[known.offsets[row] : known.offsets[row + 1]]).argmax()
    return found


def _leave_out(scores: torch.Tensor, known: Sequence[Ids], first: int) -> None:
    """Nothing; the scores of known answers become less than any cosine."""
    rows = np.repeat(np.arange(len(known)), [len(some) for some in known])
    places = np.concatenate([*known, np.empty(0, np.int32)]).astype(np.int64) - first
    inside = (places >= 0) & (places < scores.shape[1])
    scores[torch.from_numpy(rows[inside]), torch.from_numpy(places[inside])] = -torch.inf


def _relations(query: Query) -> NDArray[np.int32]:
    """Every relation that some question follows."""
    return np.unique(np.concatenate([np.atleast_1d(np.asarray(edge.relation)) for edge in edges(query)]))
