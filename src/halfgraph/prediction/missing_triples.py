"""The most probable missing triples of a whole graph.

Every pair of head and relation is looked at, and its tails are scored unless an upper bound of the log-odds shows that
they cannot be among the triples wanted. In a large graph, heads are left out that neither have the relation nor have
neighbours that do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfgraph.prediction.base import map_chunks
from halfgraph.prediction.link_features import Ids
from halfgraph.prediction.link_predictor import LARGE, Group, LinkPredictor

BLOCK = 64  # heads at a time
NUMBERS = 1 << 24  # bounds in memory at a time, for each thread: 64 MB


class MissingTriple(NamedTuple):
    """A missing triple with its probability."""

    head: int
    relation: int
    tail: int
    probability: float


@dataclass(frozen=True)
class LikelyTriples:
    """The most probable missing triples, best first; `left_out` pairs of head and relation were not looked at."""

    triples: list[MissingTriple]
    pairs: int
    left_out: int


@dataclass
class _Best:
    """The best triples so far; once there are enough, the last of them sets the least probability of others."""

    least: float
    limit: int
    columns: list[NDArray[np.float64]] = field(default_factory=list)  # rows of probability, relation, head, tail
    count: int = 0

    def add(self, found: NDArray[np.float64]) -> None:
        self.columns.append(found)
        self.count += len(found)
        if self.count > 2 * self.limit:
            self.columns = [self.sorted()]
            self.count = len(self.columns[0])
            self.least = max(self.least, float(self.columns[0][-1, 0]))

    def sorted(self) -> NDArray[np.float64]:
        rows = np.concatenate([*self.columns, np.empty((0, 4))])
        order = np.lexsort((rows[:, 3], rows[:, 2], rows[:, 1], -rows[:, 0]))
        return rows[order[: self.limit]]


def likely_triples(
    links: LinkPredictor,
    *,
    least: float,
    limit: int,
    relations: Sequence[int] | None = None,
    heads: Ids | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> LikelyTriples:
    """Return at most `limit` missing triples of at least the probability `least`.

    They are of all relations and heads by default; an odd relation is an inverse. `progress` gets the number of pairs
    of head and relation, and how many of them are done since the last call.
    """
    entities = np.arange(links.graph.entity_count) if heads is None else np.unique(heads)
    chosen = range(0, links.graph.relation_count, 2) if relations is None else relations
    size = max(1, min(BLOCK, NUMBERS // links.graph.entity_count))
    blocks, pairs = list[Group](), 0
    for relation in chosen:
        own = _possible_heads(links, relation, entities)
        pairs += len(own)
        blocks += [(relation, own[first : first + size]) for first in range(0, len(own), size)]
    best = _Best(least, limit)
    for rows, found in map_chunks(lambda row: _score(links, blocks[row.start], best.least), len(blocks), 1):
        best.add(found)
        progress(pairs, len(blocks[rows.start][1]))
    triples = [_exact(links, *map(int, row[1:])) for row in best.sorted()]
    triples.sort(key=lambda one: (-one.probability, one[:3]))
    return LikelyTriples(triples, pairs, len(chosen) * len(entities) - pairs)


def _possible_heads(links: LinkPredictor, relation: int, entities: Ids) -> Ids:
    """Return the heads to look at: all, or in a large graph those that have the relation, or whose neighbours do."""
    if links.graph.entity_count <= LARGE:
        return entities
    return entities[(links.known_tails(relation)[entities] > 0) | (links.voters(relation)[entities] > 0)]


def _score(links: LinkPredictor, group: Group, least: float) -> NDArray[np.float64]:
    """Return the triples of some heads of at least a probability: rows of probability, relation, head, tail."""
    relation, heads = group
    possible = links.log_odds_bounds(heads, relation) >= _log_odds(least)
    rows, tails = np.flatnonzero(possible.any(axis=1)), np.flatnonzero(possible.any(axis=0))
    if not len(rows):
        return np.empty((0, 4))
    likely = links.computed([(relation, heads[rows])], tails)
    row, column = np.nonzero((likely >= least) & (likely > 0))
    found = likely[row, column], np.full(len(row), relation), heads[rows][row], tails[column]
    return np.stack(found, axis=1).astype(np.float64)


def _log_odds(probability: float) -> float:
    if probability <= 0:
        return -np.inf
    return np.inf if probability >= 1 else log(probability / (1 - probability))


def _exact(links: LinkPredictor, relation: int, head: int, tail: int) -> MissingTriple:
    """Return a triple with its probability as it is everywhere else."""
    return MissingTriple(head, relation, tail, links.probability(head, relation, tail))
