"""Type prediction: the probability that an entity has a type that the query states.

A stated type has probability 1. Otherwise it is the share of entities with this type among those whose neighbours have
it as often, times how likely a type statement is to be missing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from halfgraph.prediction.base import Scores
from halfgraph.prediction.neighbours import Neighbours

BINS = 20  # of the share of neighbours with the type
MISSING = 0.01  # assumed share of missing type statements, for an entity that has any
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class TypePredictor:
    """Probabilities of types; `members` returns the entities that have a type, by its id."""

    neighbours: Neighbours
    members: Callable[[int], Ids]
    untyped: Ids  # entities without a type statement

    @cached_property
    def probabilities(self) -> Callable[[int], Scores]:
        """Return the function from a type to its probability for every entity: (entities,)."""
        return lru_cache(256)(self._probabilities)

    def _probabilities(self, type_id: int) -> Scores:
        return self.of_members(self.members(type_id))

    def of_members(self, members: Ids) -> Scores:
        """Return the probability of every entity to be of a type that some entities are stated to have."""
        is_member = np.zeros(len(self.neighbours.ids), dtype=bool)
        is_member[members] = True
        shares = self.neighbours.sums(is_member) / self.neighbours.totals
        bins = np.minimum((shares * BINS).astype(int), BINS - 1)
        rates = (np.bincount(bins, is_member, BINS) + is_member.mean()) / (np.bincount(bins, minlength=BINS) + 1.0)
        odds = np.full(len(is_member), MISSING / (1 - MISSING))
        odds[self.untyped] = 1.0
        rate = np.minimum(rates, 0.99)[bins]
        likely = odds * rate / (odds * rate + 1 - rate)
        return np.where(is_member, 1.0, likely).astype(np.float32)
