"""Predicted answers: the best entities by a mode that are not known answers, with their confidence."""

from collections.abc import Sequence
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
from halfgraph.query.tree import Anchor, Query, type_of
from halfgraph.sparql.filters import AT_ONCE, passes_filters
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.read import Reading
from halfgraph.sparql.syntax_tree import Group, Select
from halfgraph.sparql.writer import write

Ranked = list[tuple[int, float]]  # entities with their scores, best first


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
        self, mode: str, reading: Reading, embeddings: Tensor, known: NDArray[np.int32], top: int, *, any_type: bool
    ) -> list[PredictedAnswer]:
        """Return the best entities that are not known answers and that no condition of the query excludes."""
        among = self.names.of_type(None if any_type else self._answer_type(reading.query, known))
        count = len(self.names.graph.entities) if reading.conditions.elements else top
        if mode == EMBEDDING:
            ranked = self.index.nearest(embeddings, count, among=among, without=known)
        else:
            scores = torch.from_numpy(self.scores(mode, reading.query, embeddings)[among])
            ranked = top_entities(scores[None], count, first=among.start, without=[known])[0]
        return self.answers(mode, reading.query, self._filter(reading, ranked, top))

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
        """Return the first entities for which the store confirms the conditions of the query."""
        if not reading.conditions.elements:
            return ranked
        passing: Ranked = []
        for first in range(0, len(ranked), AT_ONCE):
            chunk = ranked[first : first + AT_ONCE]
            passes = self._passes(reading.target, reading.conditions, [number for number, _ in chunk])
            passing += compress(chunk, passes.tolist())
            if len(passing) >= wanted:
                break
        return passing[:wanted]

    def _passes(self, target: str, conditions: Group, entities: Sequence[int]) -> NDArray[np.bool_]:
        def ask(query: Select) -> list[str]:
            return [row[target]["value"] for row in self.store.rows(query).bindings]

        return passes_filters(ask, conditions, target, self.names.graph, entities)

    def violated(self, reading: Reading, entity: int) -> str | None:
        """Return the first condition of the query that an entity violates, or None."""
        graph, target, stated = self.names.graph, reading.target, type_of(reading.query)
        short = Prefixes.of(graph).short
        if stated is not None and entity not in range(*self.names.of_type(stated).indices(len(graph.entities))):
            known_as = self.names.described(entity)[2]
            return (
                f"?{target} a {short(graph.namer.iri(graph.types.names[stated]))} (predictions know it as {known_as})"
            )
        elements = reading.conditions.elements
        if elements and self.names.described(entity)[0].startswith("_:"):
            return "the store cannot test a blank node"
        for count, element in enumerate(elements, 1):
            if not self._passes(target, Group(elements[:count]), [entity])[0]:
                return write(element, short)
        return None

    def _answer_type(self, query: Query, known: NDArray[np.int32]) -> int | None:
        if isinstance(query, Anchor):
            return None
        return int(answer_types(self.index.encoder, self.names.graph.types, query, Ragged.of([known]))[0])
