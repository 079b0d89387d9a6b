from dataclasses import dataclass, replace

import numpy as np
import pytest

from halfgraph.prediction.ensemble import (
    EnsemblePredictor,
    EnsembleWeights,
    EntityPriors,
    ProbabilityWeights,
    ensemble_features,
    fit_ensemble,
    weights_for,
)
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import STRUCTURES, UNIONS, Structure, structure_named
from halfgraph.workload.sampling import Questions

ENTITIES, COUNT = 400, 80
PLAIN = EnsembleWeights(0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, ProbabilityWeights(0.0, 1.0, 0.5, 0.0))


def _priors(*starts: int, ties: np.ndarray | None = None) -> EntityPriors:
    return EntityPriors(np.array(starts), np.ones(starts[-1], np.float32) if ties is None else ties.astype(np.float32))


ALIKE = _priors(0, 150, ENTITIES)
CHAIN, MEETING = structure_named("1p"), structure_named("2i")


@dataclass(frozen=True)
class Given:
    """A predictor with given scores, by the number that a question has as its anchor."""

    table: np.ndarray
    name: str = "given"

    def scores(self, structure, anchors, relations):  # noqa: ARG002
        return self.table[anchors[:, 0]]


def _questions(answers: np.ndarray, structure: Structure = CHAIN) -> Questions:
    column = np.arange(COUNT, dtype=np.int32)
    none = np.full(COUNT, -1, np.int32)
    hard = Ragged(answers.astype(np.int32), np.arange(COUNT + 1))
    anchors = np.repeat(column[:, None], structure.anchor_count, axis=1)
    relations = np.zeros((COUNT, structure.relation_count), np.int32)
    return Questions(structure, anchors, relations, hard.values, none, none, hard=hard)


def _ways(noise_of_edges: float, noise_of_vector: float) -> tuple[Given, Given, Questions]:
    rng = np.random.default_rng(0)
    answers = rng.integers(0, ENTITIES, COUNT)
    right = np.zeros((COUNT, ENTITIES))
    right[np.arange(COUNT), answers] = 1.0
    edges = 1 / (1 + np.exp(-(8 * right - 6 + noise_of_edges * rng.normal(size=right.shape))))
    vector = np.clip(0.8 * right + noise_of_vector * rng.normal(size=right.shape), -1, 1)
    return Given(edges.astype(np.float32)), Given(vector.astype(np.float32)), _questions(answers)


def _mean_reciprocal_rank(scores: np.ndarray, answers: np.ndarray) -> float:
    own = scores[np.arange(len(scores)), answers]
    return float((1 / (1 + (scores > own[:, None]).sum(axis=1))).mean())


def _fitted(edges: Given, vector: Given, questions: Questions) -> dict[str, EnsembleWeights]:
    return fit_ensemble(edges, vector, [questions], ALIKE, 0)


def _both(edges: Given, vector: Given, ensemble: dict[str, EnsembleWeights], likely: bool = False) -> EnsemblePredictor:
    return EnsemblePredictor(edges, vector, ensemble, ALIKE, likely=likely)


@pytest.mark.parametrize("likely", [False, True])
def test_the_ensemble_is_better_than_either_predictor_alone(likely):
    edges, vector, questions = _ways(3.0, 0.3)
    both = _both(edges, vector, _fitted(edges, vector, questions), likely)
    asked = (questions.structure, questions.anchors, questions.relations)
    fused, *alone = (_mean_reciprocal_rank(way.scores(*asked), questions.answers) for way in (both, edges, vector))
    assert fused > max(alone) + 0.05


def test_both_readings_rank_the_entities_of_a_query_alike():
    edges, vector, questions = _ways(3.0, 0.3)
    ensemble = _fitted(edges, vector, questions)
    asked = (questions.structure, questions.anchors, questions.relations)
    apart, likely = (
        _both(edges, vector, ensemble, likely).scores(*asked).astype(np.float64) for likely in (False, True)
    )
    for one, other in zip(apart, likely, strict=True):
        order = np.argsort(one)
        assert (np.diff(other[order]) >= -1e-6).all()


def test_both_readings_rank_alike_even_if_neither_way_knows_anything():
    edges, vector, questions = _ways(3.0, 0.3)
    rng = np.random.default_rng(2)
    for way in (edges, vector):
        way.table[:] = rng.random(way.table.shape)
    assert _fitted(edges, vector, questions)["1p"].probability.evidence > 0


def test_how_likely_answers_are_is_fitted_to_how_many_there_are():
    edges, vector, questions = _ways(3.0, 0.3)
    asked = (questions.structure, questions.anchors, questions.relations)
    expected = _both(edges, vector, _fitted(edges, vector, questions), likely=True).scores(*asked).sum(axis=1)
    assert expected.mean() == pytest.approx(1.0, abs=0.25)  # each question has one answer


def test_scores_separate_answers_alike_for_queries_with_many_and_few_answers():
    """A query that has ten times the scores by links everywhere has no better answers for that."""
    edges, vector, questions = _ways(2.0, 0.3)
    much = Given(np.where(np.arange(COUNT)[:, None] % 2, edges.table, edges.table / 10).astype(np.float32))
    weights = _fitted(much, vector, questions)["1p"]
    assert abs(weights.links_level) < 0.5 * weights.links
    asked = (questions.structure, questions.anchors, questions.relations)
    scores = _both(much, vector, {"1p": weights}).scores(*asked)
    of_answers = np.log(scores[np.arange(COUNT), questions.answers])
    assert abs(of_answers[::2].mean() - of_answers[1::2].mean()) < 1.0


def test_the_level_is_that_of_the_types_that_answers_have():
    edges = np.zeros((1, 6), np.float32)
    edges[0, :2] = 0.4
    vector = np.array([[0.5, 0.5, -0.9, -0.9, -0.9, -0.9]], np.float32)
    *_, by_edges, by_vector = ensemble_features(edges, vector, _priors(0, 2, 2, 6))
    assert np.exp(by_edges) == pytest.approx(0.4, rel=1e-3)
    assert by_vector == pytest.approx(5.0, rel=1e-3)  # 0.5 in temperatures of 0.1; the other type has no part in it


@pytest.mark.parametrize("likely", [False, True])
def test_the_number_of_certain_answers_does_not_affect_the_others(likely):
    weights = EnsembleWeights(-1.0, 0.8, 2.0, 0.5, -0.3, 0.5, 0.0, ProbabilityWeights(0.0, 1.0, 0.5, 0.0))
    ties = np.array([1.0, 3.0, 0.0, 2.0, 9.0, 1.0, 4.0])
    edges = np.array([[0.2, 0.01, 0.0, 0.1]], np.float32)
    vector = np.array([[0.5, 0.1, -0.2, 0.3]], np.float32)
    certain, more = np.ones((1, 3), np.float32), np.zeros((1, 3), np.float32)
    alone = weights.combine(edges, vector, _priors(0, 4, ties=ties[:4]), likely=likely)
    all_edges, all_vectors = np.hstack([edges, certain]), np.hstack([vector, more])
    beside = weights.combine(all_edges, all_vectors, _priors(0, 4, 7, ties=ties), likely=likely)
    assert beside[:, :4] == pytest.approx(alone, rel=1e-5)
    assert (beside[:, 4:] == 1).all()
    assert np.isfinite(weights.combine(certain, more, _priors(0, 3, ties=ties[4:]), likely=likely)).all()


def test_hubs_that_all_paths_end_at_are_distinguished_from_answers():
    """Links favour some entities whatever the question, and those are the ones with many edges."""
    edges, vector, sampled = _ways(2.0, 0.3)
    questions = _questions(sampled.answers, MEETING)
    hubs = np.random.default_rng(3).random(ENTITIES) < 0.2
    to_all = Given(np.where(hubs, np.maximum(edges.table, 0.5), edges.table).astype(np.float32))
    priors = _priors(0, 150, ENTITIES, ties=np.where(hubs, 5.0, 1.0))
    asked = (questions.structure, questions.anchors, questions.relations)
    found = []
    for known in (priors, ALIKE):
        ensemble = fit_ensemble(to_all, vector, [questions], known, 0)
        scores = EnsemblePredictor(to_all, vector, ensemble, known).scores(*asked)
        found.append((ensemble["2i"].log_degree, _mean_reciprocal_rank(scores, questions.answers)))
    (of_hubs, with_ties), (of_none, without) = found
    assert of_hubs < -0.1
    assert of_none == pytest.approx(0.0, abs=1e-3)
    assert with_ties > without + 0.05


def test_the_degree_of_an_entity_has_no_weight_where_no_paths_meet():
    edges, vector, questions = _ways(2.0, 0.3)
    priors = _priors(0, 150, ENTITIES, ties=np.random.default_rng(4).random(ENTITIES))
    assert fit_ensemble(edges, vector, [questions], priors, 0)["1p"].log_degree == pytest.approx(0.0, abs=1e-6)
    ensemble = {"2i": replace(PLAIN, log_degree=-1.0)}
    assert weights_for(structure_named("3i").query, ensemble).log_degree == -1.0
    assert weights_for(structure_named("2u").query, ensemble) == PLAIN


def test_a_way_that_says_nothing_weighs_little():
    edges, vector, questions = _ways(2.0, 0.3)
    useless = Given(np.random.default_rng(1).normal(0, 0.3, vector.table.shape).astype(np.float32))
    useful, weights = (_fitted(edges, way, questions)["1p"] for way in (vector, useless))
    assert 3 * abs(weights.embedding + weights.embedding_below) < useful.embedding + useful.embedding_below


def test_what_is_certain_stays_certain():
    by_edges = np.array([[1.0, 0.5, 0.0]], np.float32)
    by_vector = np.array([[-1.0, 0.9, 0.1]], np.float32)
    fused = PLAIN.combine(by_edges, by_vector, _priors(0, 3), likely=True)
    assert fused[0, 0] == 1.0
    assert 0.0 < fused[0, 2] < fused[0, 1] < 1.0


def test_questions_together_are_as_questions_alone():
    edges, vector, questions = _ways(3.0, 0.3)
    both = _both(edges, vector, {"1p": PLAIN})
    asked = (questions.structure, questions.anchors, questions.relations)
    together = both.scores(*asked)
    alone = np.concatenate([both.scores(asked[0], asked[1][n : n + 1], asked[2][n : n + 1]) for n in range(COUNT)])
    assert together == pytest.approx(alone, abs=1e-6)


def test_a_structure_without_weights_takes_those_of_the_nearest():
    other = EnsembleWeights(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, ProbabilityWeights(0.0, 1.0, 0.0, 0.0))
    ensemble = {"1p": PLAIN, "3p": other}
    assert weights_for(STRUCTURES[0].query, ensemble) == PLAIN
    assert weights_for(structure_named("up").query, ensemble) in (PLAIN, other)
    assert weights_for(UNIONS[0].query, {"3p": other}) == other
