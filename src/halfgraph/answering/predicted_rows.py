"""Predicted answers: the best entities by a mode that are not known answers, with their confidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import torch
from numpy.typing import NDArray

from halfgraph.answering.cells import Cell
from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.schema import PredictedAnswer
from halfgraph.answering.store_rows import GraphStore
from halfgraph.prediction.embedding import EmbeddingIndex, top_entities
from halfgraph.prediction.ensemble import ensemble_scores
from halfgraph.prediction.modes import EMBEDDING, LINKS
from halfgraph.prediction.predictors import Predictors
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Query, type_of
from halfgraph.sparql.filters import AT_ONCE, passes_filters
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.read import Reading
from halfgraph.sparql.syntax_tree import Group, Select
from halfgraph.sparql.writer import write

LEAST_CERTAIN, MOST_CERTAIN = 0.0001, 0.9999  # a prediction is never shown as impossible or certain
Ranked = list[tuple[int, float]]  # entities with their scores, best first


def rounded(probability: float) -> float:
    """Return the probability of a prediction as it is shown; only one of exactly 0 is shown as such."""
    return min(max(round(probability, 4), LEAST_CERTAIN), MOST_CERTAIN) if probability else 0.0


def best_entities(scores: NDArray[np.float32], count: int, known: Sequence[NDArray[np.int32]]) -> list[Ranked]:
    """Return the best entities of each row of probabilities, without known answers and those of probability 0."""
    possible = torch.from_numpy(scores)
    possible[possible <= 0] = -torch.inf
    return top_entities(possible, count, first=0, without=known)


@dataclass(frozen=True)
class PredictedRows:
    """Predicts answers."""

    index: EmbeddingIndex
    predictors: Predictors
    store: GraphStore
    names: EntityNames

    def scores(self, mode: str, query: Query) -> NDArray[np.float32]:
        """Score every entity by a mode, an excluded one as minus infinity, or as 0 by links: (entities,)."""
        if mode == EMBEDDING:
            return self._cosines(query)
        probabilities = self.predictors.executor.scores(query)
        if mode == LINKS:
            return probabilities
        scores = ensemble_scores(probabilities, self._cosines(query), self.predictors.known.degrees())
        return np.where(probabilities > 0, scores, -np.inf)

    def _cosines(self, query: Query) -> NDArray[np.float32]:
        with torch.no_grad():
            embeddings = torch.cat(self.index.encoder.encode(disjuncts(without_negation(query))))
        cosines = self.index.scores(embeddings, slice(None)).cpu().numpy()
        type_id = type_of(query)
        if type_id is not None:
            others = np.ones(len(cosines), dtype=bool)
            others[self.store.members(type_id)] = False
            cosines[others] = -np.inf
        return cosines

    def predict(self, mode: str, reading: Reading, known: NDArray[np.int32], top: int) -> list[PredictedAnswer]:
        """Return the best entities that are not known answers and that no condition of the query excludes."""
        count = len(self.names.graph.entities) if reading.conditions.elements else top
        scores = self.scores(mode, reading.query)[None]
        if mode == LINKS:
            (ranked,) = best_entities(scores, count, [known])
        else:
            (ranked,) = top_entities(torch.from_numpy(scores), count, first=0, without=[known])
        return self.answers(mode, reading.target, self._filter(reading, ranked, top))

    def answers(self, mode: str, target: str, ranked: Ranked) -> list[PredictedAnswer]:
        """Return ranked entities with names, scores and confidences, as rows of the target."""
        predicted = []
        for number, score in ranked:
            iri, label, type_name = self.names.described(number)
            cell = Cell("bnode" if iri.startswith("_:") else "uri", iri, label)
            predicted.append(PredictedAnswer(iri, label, type_name, *self.shown(mode, score), {target: cell}))
        return predicted

    def shown(self, mode: str, score: float) -> tuple[float, float | None]:
        """Return a score as it is shown, and the confidence: the same number, in the mode that has probabilities."""
        if mode != LINKS:
            return round(score, 4), None
        probability = rounded(score)
        return probability, probability

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
        target, short, elements = reading.target, Prefixes.of(self.names.graph).short, reading.conditions.elements
        if elements and self.names.described(entity)[0].startswith("_:"):
            return "the store cannot test a blank node"
        for count, element in enumerate(elements, 1):
            if not self._passes(target, Group(elements[:count]), [entity])[0]:
                return write(element, short)
        return None
