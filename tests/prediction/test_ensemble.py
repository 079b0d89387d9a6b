from dataclasses import dataclass, replace

import numpy as np
import pytest

from halfgraph.prediction.ensemble import Backdrop, Chance, FusedAnswerer, Fusion, features_of, fit_fusions, fusion_for
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import STRUCTURES, UNIONS, Structure, structure_named
from halfgraph.workload.sampling import Questions

ENTITIES, COUNT = 400, 80
PLAIN = Fusion(0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, Chance(0.0, 1.0, 0.5, 0.0))


def _backdrop(*starts: int, ties: np.ndarray | None = None) -> Backdrop:
    return Backdrop(np.array(starts), np.ones(starts[-1], np.float32) if ties is None else ties.astype(np.float32))


ALIKE = _backdrop(0, 150, ENTITIES)
CHAIN, MEETING = structure_named("1p"), structure_named("2i")


@dataclass(frozen=True)
class Told:
    """An answerer whose scores are given, by the number that a question has as its anchor."""

    table: np.ndarray
    name: str = "told"

    def scores(self, structure, anchors, relations):  # noqa: ARG002
        return self.table[anchors[:, 0]]


def _questions(answers: np.ndarray, structure: Structure = CHAIN) -> Questions:
    column = np.arange(COUNT, dtype=np.int32)
    none = np.full(COUNT, -1, np.int32)
    hard = Ragged(answers.astype(np.int32), np.arange(COUNT + 1))
    anchors = np.repeat(column[:, None], structure.anchor_count, axis=1)
    relations = np.zeros((COUNT, structure.relation_count), np.int32)
    return Questions(structure, anchors, relations, hard.values, none, none, hard=hard)


def _ways(noise_of_edges: float, noise_of_vector: float) -> tuple[Told, Told, Questions]:
    rng = np.random.default_rng(0)
    answers = rng.integers(0, ENTITIES, COUNT)
    right = np.zeros((COUNT, ENTITIES))
    right[np.arange(COUNT), answers] = 1.0
    edges = 1 / (1 + np.exp(-(8 * right - 6 + noise_of_edges * rng.normal(size=right.shape))))
    vector = np.clip(0.8 * right + noise_of_vector * rng.normal(size=right.shape), -1, 1)
    return Told(edges.astype(np.float32)), Told(vector.astype(np.float32)), _questions(answers)


def _mean_reciprocal_rank(scores: np.ndarray, answers: np.ndarray) -> float:
    own = scores[np.arange(len(scores)), answers]
    return float((1 / (1 + (scores > own[:, None]).sum(axis=1))).mean())


def _fitted(edges: Told, vector: Told, questions: Questions) -> dict[str, Fusion]:
    return fit_fusions(edges, vector, [questions], ALIKE, 0)


def _both(edges: Told, vector: Told, fusions: dict[str, Fusion], likely: bool = False) -> FusedAnswerer:
    return FusedAnswerer(edges, vector, fusions, ALIKE, likely=likely)


@pytest.mark.parametrize("likely", [False, True])
def test_what_is_fused_is_better_than_either_way_alone(likely):
    edges, vector, questions = _ways(3.0, 0.3)
    both = _both(edges, vector, _fitted(edges, vector, questions), likely)
    asked = (questions.structure, questions.anchors, questions.relations)
    fused, *alone = (_mean_reciprocal_rank(way.scores(*asked), questions.answers) for way in (both, edges, vector))
    assert fused > max(alone) + 0.05


def test_both_readings_rank_the_entities_of_a_query_alike():
    edges, vector, questions = _ways(3.0, 0.3)
    fusions = _fitted(edges, vector, questions)
    asked = (questions.structure, questions.anchors, questions.relations)
    apart, likely = (
        _both(edges, vector, fusions, likely).scores(*asked).astype(np.float64) for likely in (False, True)
    )
    for one, other in zip(apart, likely, strict=True):
        order = np.argsort(one)
        assert (np.diff(other[order]) >= -1e-6).all()


def test_both_readings_rank_alike_even_if_neither_way_knows_anything():
    edges, vector, questions = _ways(3.0, 0.3)
    rng = np.random.default_rng(2)
    for way in (edges, vector):
        way.table[:] = rng.random(way.table.shape)
    assert _fitted(edges, vector, questions)["1p"].chance.evidence > 0


def test_how_likely_answers_are_is_fitted_to_how_many_there_are():
    edges, vector, questions = _ways(3.0, 0.3)
    asked = (questions.structure, questions.anchors, questions.relations)
    expected = _both(edges, vector, _fitted(edges, vector, questions), likely=True).scores(*asked).sum(axis=1)
    assert expected.mean() == pytest.approx(1.0, abs=0.25)  # each question has one answer


def test_scores_of_queries_with_many_and_with_few_answers_are_told_apart_alike():
    """A query that has ten times the scores by edges everywhere has no better answers for that."""
    edges, vector, questions = _ways(2.0, 0.3)
    much = Told(np.where(np.arange(COUNT)[:, None] % 2, edges.table, edges.table / 10).astype(np.float32))
    fusion = _fitted(much, vector, questions)["1p"]
    assert abs(fusion.edges_level) < 0.5 * fusion.edges
    asked = (questions.structure, questions.anchors, questions.relations)
    scores = _both(much, vector, {"1p": fusion}).scores(*asked)
    of_answers = np.log(scores[np.arange(COUNT), questions.answers])
    assert abs(of_answers[::2].mean() - of_answers[1::2].mean()) < 1.0


def test_the_level_is_that_of_the_types_that_answers_have():
    edges = np.zeros((1, 6), np.float32)
    edges[0, :2] = 0.4
    vector = np.array([[0.5, 0.5, -0.9, -0.9, -0.9, -0.9]], np.float32)
    *_, by_edges, by_vector = features_of(edges, vector, _backdrop(0, 2, 2, 6))
    assert np.exp(by_edges) == pytest.approx(0.4, rel=1e-3)
    assert by_vector == pytest.approx(5.0, rel=1e-3)  # 0.5 in temperatures of 0.1; the other type has no part in it


@pytest.mark.parametrize("likely", [False, True])
def test_how_many_answers_are_certain_says_nothing_of_the_others(likely):
    fusion = Fusion(-1.0, 0.8, 2.0, 0.5, -0.3, 0.5, 0.0, Chance(0.0, 1.0, 0.5, 0.0))
    ties = np.array([1.0, 3.0, 0.0, 2.0, 9.0, 1.0, 4.0])
    edges = np.array([[0.2, 0.01, 0.0, 0.1]], np.float32)
    vector = np.array([[0.5, 0.1, -0.2, 0.3]], np.float32)
    certain, more = np.ones((1, 3), np.float32), np.zeros((1, 3), np.float32)
    alone = fusion.fuse(edges, vector, _backdrop(0, 4, ties=ties[:4]), likely)
    all_edges, all_vectors = np.hstack([edges, certain]), np.hstack([vector, more])
    beside = fusion.fuse(all_edges, all_vectors, _backdrop(0, 4, 7, ties=ties), likely)
    assert beside[:, :4] == pytest.approx(alone, rel=1e-5)
    assert (beside[:, 4:] == 1).all()
    assert np.isfinite(fusion.fuse(certain, more, _backdrop(0, 3, ties=ties[4:]), likely)).all()


def test_hubs_that_all_paths_end_at_are_told_from_answers():
    """Edges speak for some entities whichever the question is, and those are the ones with many edges."""
    edges, vector, told = _ways(2.0, 0.3)
    questions = _questions(told.answers, MEETING)
    hubs = np.random.default_rng(3).random(ENTITIES) < 0.2
    to_all = Told(np.where(hubs, np.maximum(edges.table, 0.5), edges.table).astype(np.float32))
    backdrop = _backdrop(0, 150, ENTITIES, ties=np.where(hubs, 5.0, 1.0))
    asked = (questions.structure, questions.anchors, questions.relations)
    found = []
    for known in (backdrop, ALIKE):
        fusions = fit_fusions(to_all, vector, [questions], known, 0)
        scores = FusedAnswerer(to_all, vector, fusions, known).scores(*asked)
        found.append((fusions["2i"].ties, _mean_reciprocal_rank(scores, questions.answers)))
    (of_hubs, with_ties), (of_none, without) = found
    assert of_hubs < -0.1
    assert of_none == pytest.approx(0.0, abs=1e-3)
    assert with_ties > without + 0.05


def test_where_no_paths_meet_it_says_nothing_how_many_edges_an_entity_has():
    edges, vector, questions = _ways(2.0, 0.3)
    backdrop = _backdrop(0, 150, ENTITIES, ties=np.random.default_rng(4).random(ENTITIES))
    assert fit_fusions(edges, vector, [questions], backdrop, 0)["1p"].ties == pytest.approx(0.0, abs=1e-6)
    fusions = {"2i": replace(PLAIN, ties=-1.0)}
    assert fusion_for(structure_named("3i").query, fusions).ties == -1.0
    assert fusion_for(structure_named("2u").query, fusions) == PLAIN


def test_a_way_that_says_nothing_weighs_little():
    edges, vector, questions = _ways(2.0, 0.3)
    useless = Told(np.random.default_rng(1).normal(0, 0.3, vector.table.shape).astype(np.float32))
    useful, fusion = (_fitted(edges, way, questions)["1p"] for way in (vector, useless))
    assert 3 * abs(fusion.vector + fusion.low) < useful.vector + useful.low


def test_what_is_certain_stays_certain():
    by_edges = np.array([[1.0, 0.5, 0.0]], np.float32)
    by_vector = np.array([[-1.0, 0.9, 0.1]], np.float32)
    fused = PLAIN.fuse(by_edges, by_vector, _backdrop(0, 3), likely=True)
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
    other = Fusion(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, Chance(0.0, 1.0, 0.0, 0.0))
    fusions = {"1p": PLAIN, "3p": other}
    assert fusion_for(STRUCTURES[0].query, fusions) == PLAIN
    assert fusion_for(structure_named("up").query, fusions) in (PLAIN, other)
    assert fusion_for(UNIONS[0].query, {"3p": other}) == other
