"""Rules: paths of one or two relations that lead where another relation leads, with their confidence in the graph.

For instance `nationality(x, z)` if `birthplace(x, y)` and `country(y, z)`. Rules are counted, not trained.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.prediction._link_kernels import count_hits, noisy_or, paths_between
from halfgraph.prediction.base import Scores
from halfgraph.prediction.baselines import TriplesByRelation

Ids = NDArray[np.int64]

TRIPLES = 200  # triples of a relation whose head and tail are searched for other paths
BUSY = 10_000  # pairs with more edges at both ends are skipped
CANDIDATES = 100  # most frequent paths, whose confidence is counted
LEAST_PAIRS = 2  # pairs that a candidate connects
HEADS = 60  # heads of a relation on which confidence is counted
SMOOTHING = 5.0  # wrong cases added to those counted
MOST_RULES, LEAST_CONFIDENCE, MOST_CONFIDENCE = 40, 0.005, 0.99
VISITS = 3_000  # steps that a rule may take for one query


@dataclass(frozen=True)
class Rules:
    """The rules of a relation, the most confident first."""

    first: Ids
    second: Ids  # -1 if the rule has one relation only
    confidence: Scores

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of(cls, triples: TriplesByRelation, relation: int) -> "Rules":
        """Mine the rules of a relation; the same ones each time."""
        rng = np.random.default_rng(relation)
        heads, tails = (ends.astype(np.int64) for ends in triples.of_relation(relation))
        sample = rng.permutation(len(heads))[:TRIPLES]
        base = triples.graph.relation_count + 1
        pairs, paths = paths_between(triples.edges, heads[sample], tails[sample], relation, base, BUSY)
        once_each = np.unique(pairs * base**2 + paths) % base**2  # once for each pair
        candidates, counts = np.unique(once_each, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:CANDIDATES]
        candidates = candidates[most[counts[most] >= LEAST_PAIRS]]
        first, second = candidates // base, candidates % base - 1
        some_heads = rng.permutation(np.unique(heads))[:HEADS]
        hits, totals = count_hits(triples.edges, some_heads, relation, first, second, VISITS)
        confidence = np.minimum(hits / (totals + SMOOTHING), MOST_CONFIDENCE).astype(np.float32)
        best = np.argsort(-confidence, kind="stable")[:MOST_RULES]
        best = best[confidence[best] >= LEAST_CONFIDENCE]
        return cls(first[best], second[best], confidence[best])

    def apply(self, edges: tuple[Any, ...], sources: Ids, weights: Scores, scratch: tuple[Scores, Ids]) -> Scores:
        """Probability of each entity by the rules alone, from weighted sources, rules being independent."""
        rules = (self.first, self.second, self.confidence)
        probabilities: Scores = noisy_or(edges, sources, weights, *rules, VISITS, *scratch)
        return probabilities
