"""Fitting the link weights: a logistic regression on held-out triples."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.link_predictor import LinkPredictor, LinkWeights
from halfgraph.prediction.logistic import logistic

# The columns of `LinkPredictor.features`.
FEATURES = (
    *("cosine", "inverse_cosine", "level", "vote", "rules"),
    *("popularity", "is_tail", "log_tail_count", "log_known_tails", "anchored_without_tail"),
)
# Features that can be switched off, and those that go with another one.
OPTIONAL = ("cosine", "inverse_cosine", "vote", "rules", "popularity", "anchored_without_tail")
TOGETHER = {"level": "cosine", "is_tail": "popularity", "log_tail_count": "popularity"}
PAIRS = 4_000  # pairs of head and relation of each sort: with held-out tails, and without
NEAR, FAR = 100, 200  # negatives of each pair: the best by model and by votes, and random ones
LEAST_HELD_OUT = 20  # fewer held-out edges cannot be fitted on


def fit_link_weights(
    links: LinkPredictor, held_out: KnowledgeGraph, seed: int, *, pairs: int = PAIRS, off: Collection[str] = ()
) -> LinkWeights:
    """Fit the weights by which held-out triples are likely and others are not, without the features in `off`."""
    unknown = set(off) - set(OPTIONAL)
    if unknown:
        raise SettingError("off", f'cannot be "{min(unknown)}"', advice=f"Known: {', '.join(OPTIONAL)}.")
    if len(held_out.tails) < LEAST_HELD_OUT:
        problem = f"has {len(held_out.tails) // 2} held-out triples, too few to fit link weights on"
        raise SettingError("graph", problem, advice="Split it with a larger validation part.")
    used = np.array([TOGETHER.get(name, name) not in off for name in FEATURES])
    features, true, shares, relations = _examples(links, held_out, np.random.default_rng(seed), pairs)
    weights = np.zeros(len(FEATURES))
    weights[used], bias, offsets = logistic(features[:, used], true, shares, relations, links.graph.relation_count)
    named = dict(zip(FEATURES, weights.round(6).tolist(), strict=True))
    return LinkWeights(bias=round(bias, 6), offsets=tuple(offsets.round(4).tolist()), **named)


def _examples(
    links: LinkPredictor, held_out: KnowledgeGraph, rng: np.random.Generator, pairs: int
) -> list[NDArray[Any]]:
    """Sample pairs with and without held-out tails, weighted by how many of each the graph has.

    Return the columns that `logistic` takes; the groups are the relations.
    """
    count = links.graph.relation_count
    new, old = (
        np.unique(graph.heads().astype(np.int64) * count + graph.relations) for graph in (held_out, links.graph)
    )
    examples = []
    for keys in (new, np.setdiff1d(old, new, assume_unique=True)):
        chosen = rng.permutation(keys)[:pairs]
        weight = len(keys) / max(len(chosen), 1)
        examples += [_of_pair(links, held_out, *divmod(int(key), count), weight, rng) for key in chosen]
    return [np.concatenate(columns) for columns in zip(*examples, strict=True)]


def _of_pair(
    links: LinkPredictor, held_out: KnowledgeGraph, head: int, relation: int, weight: float, rng: np.random.Generator
) -> tuple[NDArray[Any], ...]:
    """Examples of one pair: its held-out tails, the hardest negatives, and random ones that stand for the rest."""
    features = links.features(head, relation)
    positive = held_out.tails_of(head, relation)
    is_negative = np.ones(len(features), dtype=bool)
    is_negative[positive] = is_negative[links.graph.tails_of(head, relation)] = False
    is_near = np.zeros(len(features), dtype=bool)
    column = dict(zip(FEATURES, features.T, strict=True))
    for scores in (column["cosine"], column["vote"] + column["popularity"]):
        is_near[np.argpartition(-scores, min(NEAR, len(scores) - 1))[:NEAR]] = True
    others = np.flatnonzero(is_negative & ~is_near)
    far = rng.permutation(others)[:FAR]
    chosen = np.concatenate([positive, np.flatnonzero(is_negative & is_near), far]).astype(np.int64)
    weights = np.full(len(chosen), weight, dtype=np.float32)
    weights[len(chosen) - len(far) :] *= len(others) / max(len(far), 1)
    true = (np.arange(len(chosen)) < len(positive)).astype(np.float32)
    return features[chosen], true, weights, np.full(len(chosen), relation)
