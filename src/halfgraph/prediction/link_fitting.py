"""Fitting the link weights: a logistic regression on held-out triples."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.link_features import CHUNK, FEATURES
from halfgraph.prediction.link_predictor import SORTS, LinkPredictor, LinkWeights
from halfgraph.prediction.logistic import logistic

PAIRS = 700  # pairs of head and relation of each sort: with held-out tails, with known ones only, and without tails
NEAR, FAR = 100, 100  # negatives of each pair: the best by each feature of pairs from the head, and random ones
SMOOTHING = 20  # edges with the average rate, added to those of each relation
LEAST_HELD_OUT = 20  # fewer held-out edges cannot be fitted on


def fit_link_weights(
    links: LinkPredictor,
    held_out: KnowledgeGraph,
    seed: int,
    *,
    missing: int | None = None,
    pairs: int = PAIRS,
    off: Collection[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> LinkWeights:
    """Fit the weights by which held-out triples are likely and others are not, without the features in `off`.

    `missing` is the number of true triples that the graph lacks, the held-out ones among them (default: only these).
    """
    if len(held_out.tails) < LEAST_HELD_OUT:
        problem = f"has {len(held_out.tails) // 2} held-out triples, too few to fit link weights on"
        raise SettingError("graph", problem, advice="Split it with a larger validation part.")
    examples = draw_examples(links, held_out, np.random.default_rng(seed), pairs, progress)
    labelled = held_out.triple_count / (missing or held_out.triple_count)
    return fit_examples(examples, log_rates(links.graph, held_out), labelled, off)


def log_rates(known: KnowledgeGraph, held_out: KnowledgeGraph) -> NDArray[np.float64]:
    """Return for each relation, inverses together, the log of how often its triples are held out, 0 on average.

    All triples are counted, since the examples have few of a rare relation.
    """
    held, had = (np.bincount(graph.relations // 2, minlength=known.relation_count // 2) for graph in (held_out, known))
    average = held.sum() / had.sum()
    return np.log((held + SMOOTHING * average) / (had + SMOOTHING) / average)


def fit_examples(
    examples: Sequence[NDArray[Any]], rates: NDArray[np.float64], labelled: float, off: Collection[str] = ()
) -> LinkWeights:
    """Fit the weights to examples, of whose true links a share `labelled` is marked as held out.

    `rates` are the relations' `log_rates`: one weight makes them part of the relations' offsets.
    """
    unknown = set(off) - set(FEATURES)
    if unknown:
        raise SettingError("off", f'cannot be "{min(unknown)}"', advice=f"Known: {', '.join(FEATURES)}.")
    used = np.tile([name not in off for name in FEATURES], SORTS)
    features, true, shares, relations, known = examples
    # A query meets a pair as often as it has triples. Pairs are drawn, and weights fitted, between that and every pair
    # alike, which ranks best; then the scale of the log-odds is fitted to what queries meet.
    columns = np.column_stack([features[:, used], rates[relations]])
    (*weights, of_rate), bias, offsets = logistic(columns, true, shares, relations, len(rates), labelled)
    offsets += of_rate * rates
    log_odds = features[:, used] @ weights + bias + offsets[relations]
    (slope,), shift, _ = logistic(log_odds[:, None], true, shares * known**0.5, np.zeros_like(relations), 1, labelled)
    by_sort = np.zeros(len(used))
    by_sort[used] = slope * np.array(weights)
    rows = by_sort.reshape(SORTS, -1).round(6).tolist()
    return LinkWeights(tuple(map(tuple, rows)), slope * bias + shift, tuple((slope * offsets).round(4).tolist()))


def draw_examples(
    links: LinkPredictor,
    held_out: KnowledgeGraph,
    rng: np.random.Generator,
    pairs: int,
    progress: Callable[[int], None],
) -> list[NDArray[Any]]:
    """Sample pairs of each sort by the square root of their known tails, weighted by how many the graph has.

    Return columns: features, whether held out, weight, relation, and known tails of the pair (at least 1).
    """
    count, entities = links.graph.relation_count, links.graph.entity_count
    new = np.unique(_keys(held_out))
    old, tail_counts = np.unique(_keys(links.graph), return_counts=True)
    without = np.setdiff1d(rng.integers(entities * count, size=3 * pairs), np.union1d(new, old))
    only_known = np.setdiff1d(old, new, assume_unique=True)
    chosen: list[tuple[int, float]] = []
    rest = entities * count - len(new) - len(only_known)
    for keys, total in ((new, len(new)), (only_known, len(only_known)), (without, rest)):
        places = np.minimum(np.searchsorted(old, keys), len(old) - 1)
        roots = np.where(old[places] == keys, tail_counts[places], 1) ** 0.5
        drawn = rng.choice(keys, min(pairs, len(keys)), replace=False, p=roots / roots.sum())
        chosen += [(int(key), total * float(roots.mean()) / len(drawn)) for key in drawn]
    chosen.sort(key=lambda pair: pair[0] % count)
    examples: list[tuple[NDArray[Any], ...]] = []
    most = max(1, CHUNK // (8 * entities))  # pairs at a time
    for relation, of_relation in groupby(chosen, key=lambda pair: pair[0] % count):
        own = [(key // count, weight) for key, weight in of_relation]
        for first in range(0, len(own), most):
            heads, weights = zip(*own[first : first + most], strict=True)
            examples += _of_relation(links, held_out, relation, np.array(heads), weights, rng)
            progress(len(heads))
    return [np.concatenate(columns) for columns in zip(*examples, strict=True)]


def _keys(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """The head and relation of every edge as one number."""
    return graph.heads().astype(np.int64) * graph.relation_count + graph.relations


def _of_relation(
    links: LinkPredictor,
    held_out: KnowledgeGraph,
    relation: int,
    heads: NDArray[np.int64],
    weights: Sequence[float],
    rng: np.random.Generator,
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield the columns of examples of each of some pairs of one relation."""
    by_pair = [[own.numpy() for own in both] for both in links.pair_features(heads, relation, slice(None))]
    forward = [[there[row] for there, _ in by_pair] for row in range(len(heads))]
    chosen = [_choose(links, held_out, int(head), relation, own, rng) for head, own in zip(heads, forward, strict=True)]
    tails, places = np.unique(np.concatenate([own.tails for own in chosen]), return_inverse=True)
    of_heads, of_tails = links.head_features(relation, heads), links.head_features(relation ^ 1, tails)
    sorts, tail_sorts = links.sorts(relation, heads), links.sorts(relation ^ 1, tails)
    first = 0
    for row, own in enumerate(chosen):
        count = len(own.tails)
        at = places[first : first + count]
        there, back = np.repeat(of_heads[row : row + 1], count, axis=0), of_tails[at]
        for column, (from_head, from_tail) in enumerate(by_pair):
            there[:, column] += from_head[row, own.tails]
            back[:, column] += from_tail[row, own.tails]
        features = np.zeros((count, SORTS, there.shape[1]), np.float32)
        features[:, sorts[row]] = there
        features[np.arange(count), tail_sorts[at]] += back
        numbers = (np.full(count, number) for number in (relation // 2, max(own.known, 1)))
        yield features.reshape(count, -1), own.true, own.stands_for * np.float32(weights[row]), *numbers
        first += count


@dataclass(frozen=True)
class ChosenTails:
    """Tails of a pair as examples."""

    tails: NDArray[np.int64]
    true: NDArray[np.float32]
    stands_for: NDArray[np.float32]  # number of tails
    known: int  # tails of the pair


def _choose(
    links: LinkPredictor,
    held_out: KnowledgeGraph,
    head: int,
    relation: int,
    forward: Sequence[NDArray[np.float32]],
    rng: np.random.Generator,
) -> ChosenTails:
    """Choose the held-out tails of a pair, the hardest negatives, and random ones that stand for the rest."""
    positive, known = (graph.tails_of(head, relation) for graph in (held_out, links.graph))
    is_negative = np.ones(links.graph.entity_count, dtype=bool)
    is_negative[positive] = is_negative[known] = False
    if not links.has_loops(relation):
        is_negative[head] = False
    is_near = np.zeros(len(is_negative), dtype=bool)
    for own in forward:
        scores = np.where(is_negative, own, -np.inf)
        is_near[np.argpartition(-scores, min(NEAR, len(scores) - 1))[:NEAR]] = True
    others = np.flatnonzero(is_negative & ~is_near)
    far = rng.permutation(others)[:FAR]
    tails = np.concatenate([positive, np.flatnonzero(is_negative & is_near), far]).astype(np.int64)
    stands_for = np.ones(len(tails), dtype=np.float32)
    stands_for[len(tails) - len(far) :] = len(others) / max(len(far), 1)
    return ChosenTails(tails, (np.arange(len(tails)) < len(positive)).astype(np.float32), stands_for, len(known))
