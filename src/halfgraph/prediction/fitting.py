"""What the evidence for an edge weighs, fitted on held-out triples: a logistic regression of a few numbers."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.link_predictor import Edges, Scale
from halfgraph.prediction.logistic import Examples, logistic

FEATURES = ("cosine", "back", "level", "vote", "rules", "popularity", "ends", "often", "breadth", "asked")
EVIDENCE = ("cosine", "back", "vote", "rules", "popularity", "asked")  # what can be switched off
BELONGS = {"level": "cosine", "ends": "popularity", "often": "popularity"}  # what is off together with another
PAIRS = 4_000  # heads and relations of each sort: with held-out tails, and without
NEAR, FAR = 100, 200  # wrong tails of each pair: the nearest by model and by votes, and others at random
LEAST_HELD_OUT = 20  # held-out edges below which there is nothing to fit


def fit(edges: Edges, held_out: KnowledgeGraph, seed: int, *, pairs: int = PAIRS, off: Collection[str] = ()) -> Scale:
    """The weights by which the edges of a held-out graph are likely and others are not; `off` is left out."""
    unknown = set(off) - set(EVIDENCE)
    if unknown:
        raise SettingError("off", f'cannot be "{min(unknown)}"', advice=f"Known: {', '.join(EVIDENCE)}.")
    if len(held_out.tails) < LEAST_HELD_OUT:
        problem = f"has {len(held_out.tails) // 2} held-out triples, too few to weigh the evidence for an edge"
        raise SettingError("graph", problem, advice="Split it with a larger validation part.")
    used = np.array([BELONGS.get(name, name) not in off for name in FEATURES])
    examples = _examples(edges, held_out, np.random.default_rng(seed), pairs)
    fitted = logistic(replace(examples, features=examples.features[:, used]), edges.graph.relation_count)
    weights = np.zeros(len(FEATURES))
    weights[used] = fitted.weights
    named = {name: round(float(value), 6) for name, value in zip(FEATURES, weights, strict=True)}
    offsets = tuple(round(float(value), 4) for value in fitted.offsets)
    return Scale(bias=round(fitted.bias, 6), offsets=offsets, **named)


def _examples(edges: Edges, held_out: KnowledgeGraph, rng: np.random.Generator, pairs: int) -> Examples:
    """Edges from some heads along some relations: those with held-out tails and those without, as often as they are."""
    count = edges.graph.relation_count
    new = _pairs(held_out, count)
    old = np.setdiff1d(_pairs(edges.graph, count), new, assume_unique=True)
    some: list[Examples] = []
    for keys in (new, old):
        chosen = rng.permutation(keys)[:pairs]
        weight = len(keys) / max(len(chosen), 1)
        some += [_of_pair(edges, held_out, int(key // count), int(key % count), weight, rng) for key in chosen]
    return Examples.together(some)


def _pairs(graph: KnowledgeGraph, relation_count: int) -> NDArray[np.int64]:
    """A number for each head and relation that have an edge."""
    return np.unique(graph.heads().astype(np.int64) * relation_count + graph.relations)


def _of_pair(
    edges: Edges, held_out: KnowledgeGraph, head: int, relation: int, weight: float, rng: np.random.Generator
) -> Examples:
    """The held-out tails of a head and a relation, and wrong ones: the nearest, and some of the others for all."""
    features = edges.features(head, relation)
    right = held_out.tails_of(head, relation)
    wrong = np.ones(len(features), dtype=bool)
    wrong[right] = wrong[edges.graph.tails_of(head, relation)] = False
    near = np.zeros(len(features), dtype=bool)
    by = {name: features[:, place] for place, name in enumerate(FEATURES)}
    for level in (by["cosine"], by["vote"] + by["popularity"]):
        near[np.argpartition(-level, min(NEAR, len(level) - 1))[:NEAR]] = True
    others = np.flatnonzero(wrong & ~near)
    far = rng.permutation(others)[:FAR]
    chosen = np.concatenate([right, np.flatnonzero(wrong & near), far]).astype(np.int64)
    weights = np.full(len(chosen), weight, dtype=np.float32)
    weights[len(chosen) - len(far) :] *= len(others) / max(len(far), 1)
    true = np.zeros(len(chosen), dtype=np.float32)
    true[: len(right)] = 1.0
    return Examples(features[chosen], true, weights, np.full(len(chosen), relation))
