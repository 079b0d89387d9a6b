"""The likeliest entities: ranked by a way of predicting, known ones left out, with how sure they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from halfgraph.answering.cutting import Cut
from halfgraph.answering.explanation import Laid, Looked, type_range
from halfgraph.answering.schema import PredictedAnswer
from halfgraph.answering.store_rows import Facts, Names
from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.embedding import EmbeddingIndex, top_entities
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.prediction.predictors import Predictors
from halfgraph.query.tree import Anchor, Query, type_of
from halfgraph.sparql.filters import AT_ONCE, passes_filters
from halfgraph.sparql.read import Reading
from halfgraph.sparql.syntax_tree import Select


@dataclass(frozen=True)
class Predicting:
    """What predicts answers."""

    index: EmbeddingIndex
    modes: Predictors
    facts: Facts
    names: Names
    calibration: Calibration

    def scores(self, mode: str, query: Query, ways: Tensor) -> NDArray[np.float32]:
        """The scores of every entity by a way of predicting: (entities,)."""
        cosines = self.index.scores(ways, slice(0, len(self.names.graph.entities))).cpu().numpy()
        return self.modes.query_scores(mode, query, cosines)

    def predicted(
        self,
        mode: str,
        reading: Reading,
        laid: Laid,
        looked: Looked,
        known: NDArray[np.int32],
        cut: Cut,
        any_type: bool,
    ) -> list[PredictedAnswer]:
        """The likeliest entities that are not known to be answers, and that the store lets pass."""
        among = slice(0, len(self.names.graph.entities)) if any_type else self._among(laid, known)
        wanted = cut.skip + cut.take
        count = len(self.names.graph.entities) if reading.tests.elements else wanted
        ways = looked.vectors[laid.target]
        if mode == EMBEDDING:
            ranked = self.index.nearest(ways, count, among=among, without=known)
        else:
            scores = torch.from_numpy(self.scores(mode, reading.query, ways)[among])
            ranked = top_entities(scores[None], count, first=among.start, without=[known])[0]
        ranked = self._let_pass(reading, ranked, wanted)
        found = []
        for number, score in ranked[cut.skip :]:
            entity = self.names.entity(number)
            found.append(PredictedAnswer(entity.entity, entity.label, self.names.type_of(number), round(score, 4)))
        return found

    def _let_pass(self, reading: Reading, ranked: list[tuple[int, float]], wanted: int) -> list[tuple[int, float]]:
        """The first so many that the query's tests of literals are true of."""
        if not reading.tests.elements:
            return ranked
        found: list[tuple[int, float]] = []

        def asked(query: Select) -> list[str]:
            return [row[reading.target]["value"] for row in self.facts.rows(query).bindings]

        for first in range(0, len(ranked), AT_ONCE):
            some = ranked[first : first + AT_ONCE]
            numbers = [number for number, _ in some]
            passes = passes_filters(asked, reading.tests, reading.target, self.names.graph, numbers)
            found += [one for one, passing in zip(some, passes.tolist(), strict=True) if passing]
            if len(found) >= wanted:
                break
        return found[:wanted]

    def sure(self, mode: str, query: Query, predicted: Sequence[PredictedAnswer]) -> list[PredictedAnswer]:
        """The answers with their confidence, where it was measured."""
        scores = np.array([one.score for one in predicted])
        sure = self.calibration.confidence(mode, query, scores)
        if sure is None:
            return list(predicted)
        return [replace(one, confidence=round(rate, 4)) for one, rate in zip(predicted, sure.tolist(), strict=True)]

    def _among(self, laid: Laid, known: NDArray[np.int32]) -> slice:
        """The range of the answer's type: as the query says, as known answers are, or as its relations usually end."""
        query, starts = laid.variables[laid.target], self.names.graph.types.starts.tolist()
        if len(known) and not isinstance(query, Anchor) and type_of(query) is None:
            type_id = int(np.bincount(self.names.graph.types.of(known)).argmax())
            return slice(starts[type_id], starts[type_id + 1])
        return type_range(self.index, query, starts)[1]
