"""Predicted answers: the best entities by a mode that are not known answers, with their confidence."""

from dataclasses import dataclass
from itertools import compress

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.answering.schema import PredictedAnswer
from halfgraph.answering.store_rows import EntityNames, GraphStore
from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.embedding import EmbeddingIndex, answer_types, top_entities
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.prediction.predictors import Predictors
from halfgraph.query.exact import Ragged
from halfgraph.query.tree import Anchor, Query
from halfgraph.sparql.filters import AT_ONCE, passes_filters
from halfgraph.sparql.read import Reading
from halfgraph.sparql.syntax_tree import Select

Ranked = list[tuple[int, float]]  # entities with their scores, best first


def predicted_page(known: int, limit: int | None, top: int) -> slice:
    """Return the slice of predicted answers that follows the known rows.

    `known` counts the rows from OFFSET on; it is negative if OFFSET skips more rows than are known.
    """
    skip, left = max(0, -known), top if limit is None else max(0, limit - max(0, known))
    return slice(skip, skip + min(top, left))


@dataclass(frozen=True)
class PredictedRows:
    """Predicts answers."""

    index: EmbeddingIndex
    predictors: Predictors
    store: GraphStore
    names: EntityNames
    calibration: Calibration

    def scores(self, mode: str, query: Query, embeddings: Tensor) -> NDArray[np.float32]:
        """Score every entity by a mode: (entities,)."""
        cosines = self.index.scores(embeddings, self.names.of_type(None)).cpu().numpy()
        return self.predictors.query_scores(mode, query, cosines)

    def predict(
        self, mode: str, reading: Reading, embeddings: Tensor, known: NDArray[np.int32], page: slice, *, any_type: bool
    ) -> list[PredictedAnswer]:
        """Return the best entities that are not known answers and pass the filters of the query."""
        among = self.names.of_type(None if any_type else self._answer_type(reading.query, known))
        count = len(self.names.graph.entities) if reading.tests.elements else page.stop
        if mode == EMBEDDING:
            ranked = self.index.nearest(embeddings, count, among=among, without=known)
        else:
            scores = torch.from_numpy(self.scores(mode, reading.query, embeddings)[among])
            ranked = top_entities(scores[None], count, first=among.start, without=[known])[0]
        return self.answers(mode, reading.query, self._filter(reading, ranked, page.stop)[page])

    def answers(self, mode: str, query: Query, ranked: Ranked) -> list[PredictedAnswer]:
        """Return ranked entities with names and, if it was measured, confidence."""
        scores = [round(score, 4) for _, score in ranked]
        rates = self.calibration.confidence(mode, query, np.array(scores))
        confidences = [None] * len(ranked) if rates is None else [round(rate, 4) for rate in rates.tolist()]
        return [
            PredictedAnswer(*self.names.described(number), score, confidence)
            for (number, _), score, confidence in zip(ranked, scores, confidences, strict=True)
        ]

    def _filter(self, reading: Reading, ranked: Ranked, wanted: int) -> Ranked:
        """Return the first entities for which the store confirms the filters of the query."""
        if not reading.tests.elements:
            return ranked
        passing: Ranked = []

        def ask(query: Select) -> list[str]:
            return [row[reading.target]["value"] for row in self.store.rows(query).bindings]

        for first in range(0, len(ranked), AT_ONCE):
            chunk = ranked[first : first + AT_ONCE]
            numbers = [number for number, _ in chunk]
            passes = passes_filters(ask, reading.tests, reading.target, self.names.graph, numbers)
            passing += compress(chunk, passes.tolist())
            if len(passing) >= wanted:
                break
        return passing

    def _answer_type(self, query: Query, known: NDArray[np.int32]) -> int | None:
        if isinstance(query, Anchor):
            return None
        return int(answer_types(self.index.encoder, self.names.graph.types, query, Ragged.of([known]))[0])
