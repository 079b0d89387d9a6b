"""The interface of a predictor: a score for every entity, for each of many queries of one structure."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfgraph.model.threads import torch_threads
from halfgraph.query.exact import available_cores
from halfgraph.query.structures import Structure
from halfgraph.query.tree import Query

Ids = NDArray[np.int32]
Scores = NDArray[np.float32]
T = TypeVar("T")


class Predictor(Protocol):
    """Anything that scores entities, likely answers higher than others. Threads may share it."""

    @property
    def name(self) -> str:
        """Name in tables."""

    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        """Score every entity for each query of a structure: (n, anchors), (n, relations) -> (n, entities)."""


@dataclass(frozen=True)
class QueryPredictor:
    """A predictor that scores one query after another."""

    name: str
    scorer: Callable[[], Callable[[Query], Scores]]  # called once for each batch, so that it may own scratch memory

    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        score = self.scorer()
        return np.stack([score(structure.fill(*ids)) for ids in zip(anchors, relations, strict=True)])


def map_chunks(work: Callable[[slice], T], count: int, size: int) -> Iterator[tuple[slice, T]]:
    """Apply `work` to chunks of `size` rows in threads; yield the results in order, a few chunks ahead at most."""
    threads = available_cores()
    waiting: deque[tuple[slice, Future[T]]] = deque()
    with torch_threads(1), ThreadPoolExecutor(threads) as pool:
        for first in range(0, count, size):
            rows = slice(first, min(first + size, count))
            waiting.append((rows, pool.submit(work, rows)))
            if len(waiting) > threads:
                rows, result = waiting.popleft()
                yield rows, result.result()
        for rows, result in waiting:
            yield rows, result.result()
