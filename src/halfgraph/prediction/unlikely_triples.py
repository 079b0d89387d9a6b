"""Known triples that the model finds unlikely, each scored without itself.

The triples are divided into parts. Those of a part are scored from the graph without it, so that neither neighbours nor
statistics count them, as the held-out triples that the weights were fitted on. The embeddings are those of the run,
which has been trained on most of the triples: that lets a wrong one look better than it is. So a triple is compared
with others of its relation, those that the run was trained on and the held-out ones apart.
"""

from collections.abc import Callable, Iterator
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.base import map_chunks
from halfgraph.prediction.link_predictor import LinkPredictor

PARTS = 10
NUMBERS = 1 << 22  # scores at a time
LEAST_SPREAD = 0.5  # of the log-odds of a relation's triples
Triples = NDArray[np.int32]
Columns = NDArray[np.float64]


class CheckedTriple(NamedTuple):
    """A known triple with its probability without itself, and the places of its ends among all that are not known.

    A place is 1 for the best tail of the head and relation, or the best head of the relation and tail.
    """

    head: int
    relation: int
    tail: int
    probability: float
    tail_place: int
    head_place: int


def unlikely_triples(
    links: LinkPredictor,
    trained: KnowledgeGraph,
    limit: int,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[CheckedTriple]:
    """Return the triples whose log-odds are farthest below those of their relation, the worst first.

    `trained` are the triples that the embeddings were trained on. `progress` gets the number of all triples, and how
    many are done since the last call.
    """
    triples = links.graph.triples()
    part_of = np.random.default_rng(seed).permutation(len(triples)) % PARTS
    columns = np.empty((len(triples), 3))  # log-odds, place of the tail, place of the head

    def score(part: slice) -> tuple[NDArray[np.int64], Columns]:
        own = part_of == part.start
        return np.flatnonzero(own), _score_part(links, triples[own], triples[~own])

    for _, (rows, scored) in map_chunks(score, min(PARTS, len(triples)), 1):
        columns[rows] = scored
        progress(len(triples), len(rows))
    groups = triples[:, 1] + _is_known(trained, triples)  # relations are even numbers
    worst = np.lexsort((*triples.T[::-1], standard_scores(columns[:, 0], groups)))[:limit]
    return [_checked(triples[row].tolist(), columns[row].tolist()) for row in worst]


def _score_part(links: LinkPredictor, triples: Triples, others: Triples) -> Columns:
    """Return the log-odds of triples and the places of their ends, from a graph of the other triples: (triples, 3)."""
    without = KnowledgeGraph.of(others, links.graph.types, links.graph.relation_count)
    own = LinkPredictor(links.index, links.complex, without, links.weights, links.missing)
    log_odds, tail_places = _score(own, links.graph, triples)
    _, head_places = _score(own, links.graph, triples[:, ::-1] ^ np.array([0, 1, 0], np.int32))
    return np.stack([log_odds, tail_places, head_places], axis=1)


def _checked(triple: list[int], columns: list[float]) -> CheckedTriple:
    (head, relation, tail), (log_odds, tail_place, head_place) = triple, columns
    return CheckedTriple(head, relation, tail, 1 / (1 + exp(-log_odds)), int(tail_place), int(head_place))


def standard_scores(values: Columns, groups: NDArray[np.int32]) -> Columns:
    """Return by how many standard deviations each value is above the mean of its group."""
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    means = np.bincount(group, values) / sizes
    deviations = values - means[group]
    spreads = np.sqrt(np.bincount(group, deviations**2) / sizes)
    return deviations / np.maximum(spreads, LEAST_SPREAD)[group]


def _is_known(graph: KnowledgeGraph, triples: Triples) -> NDArray[np.bool_]:
    own, every = (np.ravel_multi_index(rows.T, _shape(graph)) for rows in (triples, graph.triples()))
    return np.isin(own, every)


def _shape(graph: KnowledgeGraph) -> tuple[int, int, int]:
    return graph.entity_count, graph.relation_count, graph.entity_count


def _score(own: LinkPredictor, known: KnowledgeGraph, triples: Triples) -> tuple[Columns, Columns]:
    """Return the log-odds of triples, and the places of their tails among the tails that are not known: (triples,)."""
    log_odds, places = np.empty(len(triples)), np.empty(len(triples))
    for rows in _blocks(triples, max(1, NUMBERS // known.entity_count)):
        relation = int(triples[rows[0], 1])
        heads, row_of = np.unique(triples[rows, 0], return_inverse=True)
        scores = own.log_odds(heads.astype(np.int64), relation)
        for row, at in zip(rows, row_of, strict=True):
            head, tail, score = int(triples[row, 0]), triples[row, 2], scores[at]
            log_odds[row] = score[tail]
            better = int((score > score[tail]).sum())
            places[row] = 1 + better - int((score[known.tails_of(head, relation)] > score[tail]).sum())
    return log_odds, places


def _blocks(triples: Triples, size: int) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each relation, at most `size` at a time."""
    order = np.argsort(triples[:, 1], kind="stable")
    bounds = np.flatnonzero(np.diff(triples[order, 1])) + 1
    for rows in np.split(order, bounds):
        yield from (rows[first : first + size] for first in range(0, len(rows), size))
