"""Facts of a graph for one row query: known links and memberships in arrays, and the probabilities of missing ones."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.base import Scores
from halfgraph.prediction.lineage import Event, link_event
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.link_predictor import LARGE, LinkPredictor, Pair

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
Likely = NDArray[np.float64]
Note = Callable[[str], None]
ROWS = 1 << 18  # probabilities computed for one step of a search, if that is more than the least number of rows
LEAST_ROWS, LEAST_LARGE = 48, 4  # rows of probabilities; in a graph so large that none are kept
SURE = np.float32(0.999999)  # the most probable missing link; known ones have 1
BEAM_NOTE = "The search kept the best partial rows only: less likely rows may be missing."
MOST_CLASSES = 256  # classes that a variable is tried for


@dataclass
class Facts:
    """What is known and what may be missing; keeps the rows of probabilities that a query asks for."""

    executor: LinkExecutor
    class_scores: Callable[[str, bool], Scores]
    all_classes: Callable[[], Sequence[str]]
    probabilities: dict[Event, float] = field(default_factory=dict)  # of the events met so far
    notes: list[str] = field(default_factory=list)
    cuts: int = 0  # how often something was cut off
    _rows: dict[Pair, Scores] = field(default_factory=dict)
    _keys: dict[int, Ids] = field(default_factory=dict)

    @property
    def links(self) -> LinkPredictor:
        return self.executor.links

    @property
    def graph(self) -> KnowledgeGraph:
        return self.executor.links.graph

    @cached_property
    def count(self) -> int:
        """The number of entities."""
        return self.graph.entity_count

    @cached_property
    def relations(self) -> Ids:
        """All relations in the direction of the triples."""
        return np.arange(0, self.graph.relation_count, 2)

    @cached_property
    def classes(self) -> list[str]:
        """The classes that a variable may stand for."""
        names = list(self.all_classes())
        if len(names) > MOST_CLASSES:
            self.note(f"A variable class is predicted among the first {MOST_CLASSES} of {len(names):,} classes.")
        return names[:MOST_CLASSES]

    @cached_property
    def beam(self) -> int:
        """The number of heads whose missing links are computed in one step."""
        if self.count > LARGE:
            return LEAST_LARGE
        return max(LEAST_ROWS, ROWS // max(self.count, 1))

    def note(self, sentence: str) -> None:
        """Tell the user what was cut off, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def cut(self, sentence: str) -> None:
        """Count and tell that something was cut off."""
        self.cuts += 1
        self.note(sentence)

    # Known links

    def known_keys(self, relation: int) -> Ids:
        """Return head * entities + tail of every triple of a relation, sorted."""
        if relation not in self._keys:
            heads, tails = self.links.triples.of_relation(relation)
            self._keys[relation] = heads.astype(np.int64) * self.count + tails
        return self._keys[relation]

    def is_known(self, heads: Ids, relation: int, tails: Ids) -> Mask:
        """Return for each pair of head and tail whether the graph has the link."""
        keys, wanted = self.known_keys(relation), heads * self.count + tails
        if not len(keys):
            return np.zeros(len(wanted), dtype=bool)
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return keys[places] == wanted

    def known_tails(self, heads: Ids, relation: int) -> tuple[Ids, Ids]:
        """Return all known tails of some heads, and for each tail the position of its head."""
        keys = self.known_keys(relation)
        first, last = np.searchsorted(keys, heads * self.count), np.searchsorted(keys, (heads + 1) * self.count)
        sizes = last - first
        rows = np.repeat(np.arange(len(heads)), sizes)
        places = np.arange(len(rows)) - np.repeat(sizes.cumsum() - sizes, sizes) + np.repeat(first, sizes)
        return rows, keys[places] % self.count

    def known_of(self, head: int, relation: int) -> Ids:
        """Return the known tails of one head."""
        keys = self.known_keys(relation)
        first, last = keys.searchsorted((head * self.count, (head + 1) * self.count))
        return keys[first:last] - head * self.count

    def has_link(self, head: int, relation: int, tail: int) -> bool:
        """Whether the graph has one link."""
        keys, wanted = self.known_keys(relation), head * self.count + tail
        place = int(keys.searchsorted(wanted))
        return place < len(keys) and int(keys[place]) == wanted

    def known_counts(self, relation: int) -> Ids:
        """Number of known tails of every entity: (entities,)."""
        return self.links.known_tails(relation)

    def fan_out(self, relation: int) -> float:
        """Mean number of tails of the heads of a relation."""
        counts = self.known_counts(relation)
        return float(counts.sum()) / max(1, int(np.count_nonzero(counts)))

    # Missing links

    def fetch(self, pairs: Iterable[Pair]) -> None:
        """Compute the missing links of pairs of head and relation together."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._rows]
        if new:
            self._rows |= self.links.rows(new)

    def row(self, head: int, relation: int) -> Scores:
        """Probabilities of the missing links of a head, 0 for known ones: (entities,)."""
        self.fetch([(head, relation)])
        return self._rows[head, relation]

    def tails(self, head: int, relation: int) -> Scores:
        """Probabilities of all links of a head, 1 for known ones: (entities,)."""
        scores = np.minimum(self.row(head, relation), SURE)
        scores[self.known_of(head, relation)] = 1.0
        return scores

    def link(self, head: int, relation: int, tail: int) -> float:
        """Probability of one link; 1 if it is known."""
        event = link_event(head, relation, tail)
        likely = self.probabilities.get(event)
        if likely is None:
            known = self.has_link(head, relation, tail)
            likely = 1.0 if known else min(self._missing(head, relation, tail), float(SURE))
            self.probabilities[event] = likely
        return likely

    def _missing(self, head: int, relation: int, tail: int) -> float:
        if (head, relation) not in self._rows:
            if (tail, relation ^ 1) in self._rows:
                return float(self._rows[tail, relation ^ 1][head])
            if self.count > LARGE:
                return self.links.probability(head, relation, tail)
        return float(self.row(head, relation)[tail])

    def pair_scores(self, heads: Ids, relation: int, tails: Ids) -> Likely:
        """Probability of the link of each pair of head and tail, the best pairs first; those beyond the beam have 0.

        Known links have 1. Missing ones are computed from the end with fewer entities.
        """
        scores = self.is_known(heads, relation, tails).astype(np.float64)
        open_ = np.flatnonzero(scores == 0)
        if not len(open_):
            return scores
        ends = (heads[open_], tails[open_], relation), (tails[open_], heads[open_], relation ^ 1)
        starts, others, directed = min(ends, key=lambda end: len(np.unique(end[0])))
        every = list(dict.fromkeys(starts.tolist()))
        chosen = every[: self.beam]
        if len(chosen) < len(every):
            self.cut(BEAM_NOTE)
        self.fetch((start, directed) for start in chosen)
        for start in chosen:
            own = starts == start
            scores[open_[own]] = np.minimum(self.row(start, directed)[others[own]], SURE)
        return scores

    def missing_tails(self, relation: int) -> Scores:
        """Estimated number of missing tails of every entity, at most 1: (entities,)."""
        return np.minimum(self.links.missing_tails(relation), 1.0)

    # Classes

    def members(self, iri: str, subclasses: bool) -> Scores:
        """Probability of every entity to be in a class: (entities,)."""
        return self.class_scores(iri, subclasses)
