"""Prediction by links and embedding together: scores that compare entities across queries, not probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.prediction.base import Ids, Predictor, Scores
from halfgraph.prediction.link_features import TEMPERATURE
from halfgraph.prediction.modes import ENSEMBLE
from halfgraph.query.structures import Structure

LEAST = 1e-12  # probability


@dataclass(frozen=True)
class EnsemblePredictor:
    """Adds the log-probabilities by links to the cosines with the query embedding."""

    links: Predictor
    embedding: Predictor
    degrees: NDArray[np.int64]  # of every entity
    name: str = ENSEMBLE

    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        likely, cosines = (part.scores(structure, anchors, relations) for part in (self.links, self.embedding))
        return ensemble_scores(likely, cosines, self.degrees)


def ensemble_scores(probabilities: Scores, cosines: Scores, degrees: NDArray[np.int64]) -> Scores:
    """Add log-probabilities to scaled cosines, less half the log of what the query lacks and the log of the degree.

    So the answers of a query that lacks many score like those of one that lacks few, and an entity that is likely
    everywhere scores lower. Arrays are (..., entities), degrees (entities,).
    """
    missing = np.where(probabilities < 1, probabilities, 0).sum(axis=-1, keepdims=True)
    likely, lacking = (np.log(np.maximum(numbers, LEAST)) for numbers in (probabilities, missing))
    scores: Scores = likely - lacking / 2 + cosines / np.float32(TEMPERATURE) - np.log1p(degrees).astype(np.float32)
    return scores
