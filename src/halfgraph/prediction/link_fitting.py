"""Fitting the link weights: a logistic regression on held-out triples."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.link_features import FEATURES
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
    new, old = (
        np.unique(graph.heads().astype(np.int64) * count + graph.relations) for graph in (held_out, links.graph)
    )
    without = np.setdiff1d(rng.integers(entities * count, size=3 * pairs), np.union1d(new, old))
    only_known = np.setdiff1d(old, new, assume_unique=True)
    chosen: list[tuple[int, float]] = []
    rest = entities * count - len(new) - len(only_known)
    for keys, total in ((new, len(new)), (only_known, len(only_known)), (without, rest)):
        sizes = np.array([len(links.graph.tails_of(*divmod(key, count))) for key in keys.tolist()])
        roots = np.maximum(sizes, 1) ** 0.5
        drawn = rng.choice(keys, min(pairs, len(keys)), replace=False, p=roots / roots.sum())
        chosen += [(int(key), total * float(roots.mean()) / len(drawn)) for key in drawn]
    examples = []
    for key, weight in sorted(chosen, key=lambda one: one[0] % count):  # by relation: its features are computed once
        head, relation = divmod(key, count)
        examples.append(_of_pair(links, held_out, head, relation, weight, rng))
        progress(1)
    return [np.concatenate(columns) for columns in zip(*examples, strict=True)]


def _of_pair(
    links: LinkPredictor, held_out: KnowledgeGraph, head: int, relation: int, weight: float, rng: np.random.Generator
) -> tuple[NDArray[Any], ...]:
    """Examples of one pair: its held-out tails, the hardest negatives, and random ones that stand for the rest."""
    positive, known = (graph.tails_of(head, relation) for graph in (held_out, links.graph))
    is_negative = np.ones(links.graph.entity_count, dtype=bool)
    is_negative[positive] = is_negative[known] = False
    if not links.has_loops(relation):
        is_negative[head] = False
    is_near = np.zeros(len(is_negative), dtype=bool)
    for forward, _ in links.pair_features(np.array([head]), relation, slice(None)):
        scores = np.where(is_negative, forward[0].numpy(), -np.inf)
        is_near[np.argpartition(-scores, min(NEAR, len(scores) - 1))[:NEAR]] = True
    others = np.flatnonzero(is_negative & ~is_near)
    far = rng.permutation(others)[:FAR]
    chosen = np.concatenate([positive, np.flatnonzero(is_negative & is_near), far]).astype(np.int64)
    there, back = links.features(head, relation, chosen)
    weights = np.full(len(chosen), weight, dtype=np.float32)
    weights[len(chosen) - len(far) :] *= len(others) / max(len(far), 1)
    true = (np.arange(len(chosen)) < len(positive)).astype(np.float32)
    features = np.zeros((len(chosen), SORTS, there.shape[1]), np.float32)
    features[:, links.sorts(relation, np.array([head]))[0]] = there
    features[np.arange(len(chosen)), links.sorts(relation ^ 1, chosen)] += back
    columns = (np.full(len(chosen), number) for number in (relation // 2, max(len(known), 1)))
    return features.reshape(len(chosen), -1), true, weights, *columns
