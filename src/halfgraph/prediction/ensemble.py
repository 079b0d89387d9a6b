"""The ensemble: scores by links and by embedding combined, with weights fitted for each query structure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.base import Ids, Predictor, Scores, map_chunks
from halfgraph.prediction.calibration import nearest_structure
from halfgraph.prediction.logistic import one_group
from halfgraph.prediction.modes import ENSEMBLE
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import Structure
from halfgraph.query.tree import Query, has_intersection
from halfgraph.workload.sampling import Questions

LEAST_EVIDENCE = 1e-3  # least weight of the evidence in a probability
LEAST_MASS = 1e-12  # added to the level of the link scores
NO_LINKS = 1e-2  # added to a link score, as a multiple of the level, before its logarithm
TEMPERATURE = 0.1  # of cosines
NEAR, FAR = 40, 100  # negatives of each question: the best by either predictor, and random ones
MOST_ANSWERS = 10  # answers of a question that are used
CHUNK = 16  # questions
FEWEST = 30  # structures with fewer questions get the weights of all questions
# Weights of a question's negatives when answers are to be told from them: the best-scored ones, random ones, random
# ones of the answer's type, and hard negatives.
SHARES = (0.1, 0.1, 0.4, 0.4)
Example = tuple[Scores, ...]  # of a question: features (n, 6), labels, weights for ranking, weights for the probability


@dataclass(frozen=True)
class EntityPriors:
    """Facts about the entities that do not depend on the query."""

    starts: NDArray[np.int64]  # first entity of each type, and the end of the last
    log_degree: Scores  # log of 1 + number of edges

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "EntityPriors":
        return cls(graph.types.starts, np.log1p(np.diff(graph.starts)).astype(np.float32))

    def without_degree(self) -> "EntityPriors":
        return replace(self, log_degree=np.zeros_like(self.log_degree))


@dataclass(frozen=True)
class ProbabilityWeights:
    """Log-odds of an entity being an answer, from its evidence and the level of the query's scores."""

    bias: float
    evidence: float
    links_level: float
    embedding_level: float


@dataclass(frozen=True)
class EnsembleWeights:
    """Weights of the two predictors for a structure, in log-odds.

    They give two scores that rank the entities of one query alike: a ranking score, fitted to tell answers from
    negatives of their own query, and a probability, fitted to the true number of answers.
    """

    bias: float
    links: float  # log of the link score relative to the query's level
    embedding: float  # cosine above the query's level, in temperatures
    embedding_below: float  # the same where it is below the level: the main feature of entities without link evidence
    log_degree: float  # at intersections: degree relative to the level, since hubs are reached by many paths
    links_level: float  # level of the query's link scores, known answers aside
    embedding_level: float  # level of its cosines
    probability: ProbabilityWeights

    def combine(self, links: Scores, cosines: Scores, priors: EntityPriors, *, likely: bool) -> Scores:
        """Ensemble score of every entity (n, entities): probability if `likely`, else ranking score; 1 if known."""
        *features, links_level, embedding_level = ensemble_features(links, cosines, priors)
        weights = (self.links, self.embedding, self.embedding_below, self.log_degree)
        level_weights, scale = (self.probability, self.probability.evidence) if likely else (self, 1.0)
        level = level_weights.bias + level_weights.links_level * links_level
        level = level + level_weights.embedding_level * embedding_level
        terms = (np.float32(scale * weight) * feature for weight, feature in zip(weights, features, strict=True))
        log_odds = sum(terms, level.astype(np.float32))
        return np.where(links >= 1, np.float32(1), 1 / (1 + np.exp(-log_odds))).astype(np.float32)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "EnsembleWeights":
        """Build the weights from the values of `asdict`."""
        return cls(**{**values, "probability": ProbabilityWeights(**values["probability"])})


def ensemble_features(links: Scores, cosines: Scores, priors: EntityPriors) -> tuple[Scores, ...]:
    """Compute the features of each entity (n, entities), in the order of the weights, and both levels (n, 1).

    A level is the mean score over the entities of a type, known answers aside. If answers may have several types, the
    levels are averaged by the types' shares of the link scores.
    """
    used = priors.starts[:-1][np.diff(priors.starts) > 0]  # reduceat would give an empty type the next type's sum
    sizes = np.diff(np.append(used, links.shape[-1]))
    unknown = links < 1
    mass = np.add.reduceat(links * unknown, used, axis=-1, dtype=np.float64) + LEAST_MASS
    shares = mass / mass.sum(axis=-1, keepdims=True)
    means = mass / np.maximum(np.add.reduceat(unknown, used, axis=-1, dtype=np.float64), 1)
    links_level = (shares * np.log(means)).sum(axis=-1, keepdims=True)
    scaled = cosines / np.float32(TEMPERATURE)
    type_levels = np.log(np.add.reduceat(np.exp(scaled), used, axis=-1, dtype=np.float64) / sizes)
    embedding_level = (shares * type_levels).sum(axis=-1, keepdims=True)
    above = scaled - embedding_level.astype(np.float32)
    relative = np.log(links / np.exp(links_level).astype(np.float32) + np.float32(NO_LINKS))
    usual_degree = shares @ (np.add.reduceat(priors.log_degree, used, dtype=np.float64) / sizes)
    degree = priors.log_degree - usual_degree[:, None].astype(np.float32)
    return relative, above, -np.logaddexp(np.float32(0), -above), degree, links_level, embedding_level


@dataclass(frozen=True)
class EnsemblePredictor:
    """Both predictors combined."""

    links: Predictor
    embedding: Predictor
    weights: Mapping[str, EnsembleWeights]  # by the structure's short name
    priors: EntityPriors
    name: str = ENSEMBLE
    likely: bool = False

    def scores(self, structure: Structure, anchors: Ids, relations: Ids) -> Scores:
        links, cosines = (way.scores(structure, anchors, relations) for way in (self.links, self.embedding))
        return weights_for(structure.query, self.weights).combine(links, cosines, self.priors, likely=self.likely)


def weights_for(query: Query, by_structure: Mapping[str, EnsembleWeights]) -> EnsembleWeights:
    """Return the weights of the query's structure, or of the most similar one."""
    weights = by_structure[nearest_structure(query, tuple(by_structure))]
    return weights if has_intersection(query) else replace(weights, log_degree=0.0)


def fit_ensemble(
    links: Predictor,
    embedding: Predictor,
    sets: Iterable[Questions],
    priors: EntityPriors,
    seed: int,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, EnsembleWeights]:
    """Fit the weights of each structure that has questions with hard answers."""
    rng = np.random.default_rng(seed)
    examples: dict[str, list[Example]] = {}
    for questions in sets:
        if questions.hard is None:
            continue
        of_structure = examples.setdefault(questions.structure.short, [])
        own_priors = priors if questions.structure.has_intersection else priors.without_degree()

        def both(rows: slice, questions: Questions = questions) -> tuple[Scores, Scores]:
            ids = (questions.structure, questions.anchors[rows], questions.relations[rows])
            return links.scores(*ids), embedding.scores(*ids)

        for rows, scores in map_chunks(both, len(questions), CHUNK):
            for row, by_links, cosines in zip(range(rows.start, rows.stop), *scores, strict=True):
                of_structure.append(_examples(by_links[None], cosines[None], own_priors, questions, row, rng))
            progress(rows.stop - rows.start)
    everything = [example for of_structure in examples.values() for example in of_structure]
    return {name: _fit(own if len(own) >= FEWEST else everything) for name, own in examples.items() if own}


def _examples(
    links: Scores, cosines: Scores, priors: EntityPriors, questions: Questions, row: int, rng: np.random.Generator
) -> Example:
    """Return the hard answers and negatives of a question."""
    assert questions.hard is not None
    answers = questions.hard[row]
    is_negative = np.ones(links.shape[1], dtype=bool)
    is_negative[answers] = is_negative[_entities(questions.easy, row)] = False
    is_near = np.zeros(len(is_negative), dtype=bool)
    for scores in (links[0], cosines[0]):
        is_near[np.argpartition(-np.where(is_negative, scores, -1), min(NEAR, len(scores) - 1))[:NEAR]] = True
    others = np.flatnonzero(is_negative & ~is_near)
    far = rng.permutation(others)[:FAR]
    positive = rng.permutation(answers)[:MOST_ANSWERS]
    near = np.flatnonzero(is_negative & is_near)
    sets = [near, far, _entities(questions.negatives, row), _entities(questions.hard_negatives, row)]
    chosen = np.concatenate([positive, *sets]).astype(np.int64)
    sizes = [len(positive), *(len(entities) for entities in sets)]
    features = [np.broadcast_to(column, links.shape)[0, chosen] for column in ensemble_features(links, cosines, priors)]
    true = (np.arange(len(chosen)) < len(positive)).astype(np.float32)
    # Every question weighs as much as one answer, as in the measures; otherwise those with many answers would dominate.
    present = sum(share for share, entities in zip(SHARES, sets, strict=True) if len(entities)) or 1.0
    for_ranking = [1.0, *(share / present for share in SHARES)]
    per_answer = 1 / max(len(answers), 1)  # negatives weigh by their true number
    for_probability = [1.0, len(near) * per_answer, len(others) * per_answer, 0.0, 0.0]
    ranking, probability = (
        np.repeat(np.array(totals) / np.maximum(sizes, 1), sizes).astype(np.float32)
        for totals in (for_ranking, for_probability)
    )
    return np.stack(features, axis=1), true, ranking, probability


def _entities(sets: Ragged | None, row: int) -> NDArray[np.int32]:
    return np.empty(0, np.int32) if sets is None else sets[row]


def _fit(examples: list[Example]) -> EnsembleWeights:
    """Fit the ranking weights, then the probability of an entity given its ranking evidence."""
    features, true, for_ranking, for_probability = map(np.concatenate, zip(*examples, strict=True))
    weights, bias = one_group(features, true, for_ranking)
    weights = weights.round(6)
    evidence = features[:, :4] @ weights[:4].astype(np.float32)
    (slope, *levels), own_bias = one_group(np.column_stack([evidence, features[:, 4:]]), true, for_probability)
    # The slope of an untrained model may be negative; both scores must rank alike.
    likely = (own_bias, max(slope, LEAST_EVIDENCE), *levels)
    probability = ProbabilityWeights(*(round(float(value), 6) for value in likely))
    values: list[Any] = [round(bias, 6), *weights.tolist(), probability]
    return EnsembleWeights(*values)
