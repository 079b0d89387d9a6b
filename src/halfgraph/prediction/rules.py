"""Rules: which one or two relations lead where another leads, and how often; counted in the graph, nothing is trained.

Whoever was born in a city of a country is often of that nationality: `birthplace`, then `country`, for `nationality`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.prediction._rule_kernels import both_ways, how_often, noisy_or
from halfgraph.prediction.baselines import ByRelation

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]

EDGES = 200  # of a relation, whose ends are looked at for other ways between them
BUSY = 10_000  # edges at both ends above which a pair is passed over
CANDIDATES = 100  # ways that join most of the pairs, and are counted
LEAST_PAIRS = 2  # that a way joins
HEADS = 60  # of a relation, at which it is counted how often a way is right
DOUBT = 5.0  # wrong cases that are added to those counted
KEPT, LEAST_RIGHT = 40, 0.005  # rules of a relation: the surest, none below
MOST_RIGHT = 0.99
VISITS = 3_000  # steps that a rule may take for one answer


@dataclass(frozen=True)
class Rules:
    """The rules of a relation, the surest first."""

    first: Ids
    second: Ids  # -1 where the first leads there alone
    right: Scores  # how often

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of(cls, known: ByRelation, arrays: tuple[NDArray[np.integer], ...], relation: int) -> "Rules":
        """The rules that the graph has for a relation; always the same."""
        rng = np.random.default_rng(relation)
        heads, tails = (ends.astype(np.int64) for ends in known.edges(relation))
        some = rng.permutation(len(heads))[:EDGES]
        base = known.graph.relation_count + 1
        pairs, ways = both_ways(arrays, heads[some], tails[some], relation, base, BUSY)
        each = np.unique(pairs * base**2 + ways) % base**2  # once for each pair
        found, counts = np.unique(each, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:CANDIDATES]
        found = found[most[counts[most] >= LEAST_PAIRS]]
        first, second = found // base, found % base - 1
        counted = rng.permutation(np.unique(heads))[:HEADS]
        hits, all_ = how_often(arrays, counted, relation, first, second, VISITS)
        right = np.minimum(hits / (all_ + DOUBT), MOST_RIGHT).astype(np.float32)
        best = np.argsort(-right, kind="stable")[:KEPT]
        best = best[right[best] >= LEAST_RIGHT]
        return cls(first[best], second[best], right[best])

    def say(
        self,
        arrays: tuple[NDArray[np.integer], ...],
        sources: Ids,
        weights: Scores,
        room: tuple[Scores, Ids],
    ) -> Scores:
        """How likely the rules alone make each entity, from sources that count so much, all rules being independent."""
        said: Scores = noisy_or(arrays, sources, weights, self.first, self.second, self.right, VISITS, *room)
        return said
