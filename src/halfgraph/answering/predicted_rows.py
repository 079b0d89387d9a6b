"""Predicted answers: the best entities by a mode that are not known answers, with their confidence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Page:
    """The slice of predicted answers: how many to skip, and how many to take."""

    skip: int
    take: int

    @classmethod
    def of(cls, known: int, limit: int | None, top: int) -> "Page":
        """The slice after `known` rows from OFFSET on, a negative number if OFFSET skips more than there are."""
        left = top if limit is None else max(0, limit - max(0, known))
        return cls(max(0, -known), min(top, left))

    def of_ranked(self, ranked: Ranked) -> Ranked:
        """Return the entities on the page."""
        return ranked[self.skip : self.skip + self.take]


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
        cosines = self.index.scores(embeddings, slice(0, len(self.names.graph.entities))).cpu().numpy()
        return self.predictors.query_scores(mode, query, cosines)

    def predict(
        self, mode: str, reading: Reading, embeddings: Tensor, known: NDArray[np.int32], page: Page, *, any_type: bool
    ) -> list[PredictedAnswer]:
        """Return the best entities that are not known answers and pass the filters of the query."""
        among = slice(0, len(self.names.graph.entities)) if any_type else self._type_range(reading.query, known)
        wanted = page.skip + page.take
        count = len(self.names.graph.entities) if reading.tests.elements else wanted
        if mode == EMBEDDING:
            ranked = self.index.nearest(embeddings, count, among=among, without=known)
        else:
            scores = torch.from_numpy(self.scores(mode, reading.query, embeddings)[among])
            ranked = top_entities(scores[None], count, first=among.start, without=[known])[0]
        ranked = self._filter(reading, ranked, wanted)
        return self.answers(mode, reading.query, page.of_ranked(ranked))

    def answers(self, mode: str, query: Query, ranked: Ranked) -> list[PredictedAnswer]:
        """Return ranked entities with names and, if it was measured, confidence."""
        answers = []
        for number, score in ranked:
            entity = self.names.entity(number)
            answers.append(PredictedAnswer(entity.entity, entity.label, self.names.type_of(number), round(score, 4)))
        rates = self.calibration.confidence(mode, query, np.array([answer.score for answer in answers]))
        if rates is None:
            return answers
        return [replace(one, confidence=round(rate, 4)) for one, rate in zip(answers, rates.tolist(), strict=True)]

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
            passing += [pair for pair, passed in zip(chunk, passes.tolist(), strict=True) if passed]
            if len(passing) >= wanted:
                break
        return passing[:wanted]

    def _type_range(self, query: Query, known: NDArray[np.int32]) -> slice:
        """The entities of the answer type."""
        starts: Sequence[int] = self.names.graph.types.starts.tolist()
        if isinstance(query, Anchor):
            return slice(0, starts[-1])
        type_id = int(answer_types(self.index.encoder, self.names.graph.types, query, Ragged.of([known]))[0])
        return slice(starts[type_id], starts[type_id + 1])
