from dataclasses import dataclass

import numpy as np
import pytest

from halfgraph.answering.fused import FusedAnswerer, Fusion, fit_fusions, fusion_for
from halfgraph.query.exact import Ragged
from halfgraph.query.sampling import Questions
from halfgraph.query.shapes import STRUCTURES, UNIONS, shape_named

ENTITIES, COUNT = 400, 80
PLAIN = Fusion(bias=0.0, edges=1.0, vector=1.0, edges_level=0.0, vector_level=0.0)


@dataclass(frozen=True)
class Told:
    """An answerer whose scores are given, by the number that a question has as its anchor."""

    table: np.ndarray
    name: str = "told"

    def scores(self, shape, anchors, relations):  # noqa: ARG002
        return self.table[anchors[:, 0]]


def _questions(answers: np.ndarray) -> Questions:
    column = np.arange(COUNT, dtype=np.int32)
    none = np.full(COUNT, -1, np.int32)
    hard = Ragged(answers.astype(np.int32), np.arange(COUNT + 1))
    shape = shape_named("1p")
    return Questions(shape, column[:, None], np.zeros((COUNT, 1), np.int32), hard.values, none, none, hard=hard)


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


def test_what_is_fused_is_better_than_either_way_alone():
    edges, vector, questions = _ways(3.0, 0.3)
    fusions = fit_fusions(edges, vector, [questions], 0)
    both = FusedAnswerer(edges, vector, fusions)
    asked = (questions.shape, questions.anchors, questions.relations)
    fused, *alone = (_mean_reciprocal_rank(way.scores(*asked), questions.answers) for way in (both, edges, vector))
    assert fused > max(alone) + 0.05


def test_how_many_answers_are_certain_says_nothing_of_the_others():
    fusion = Fusion(bias=-1.0, edges=0.8, vector=2.0, edges_level=0.5, vector_level=0.0)
    edges = np.array([[0.2, 0.01, 0.0, 0.1]], np.float32)
    vector = np.array([[0.5, 0.1, -0.2, 0.3]], np.float32)
    certain, more = np.ones((1, 3), np.float32), np.zeros((1, 3), np.float32)
    alone = fusion.fuse(edges, vector)
    beside = fusion.fuse(np.hstack([edges, certain]), np.hstack([vector, more]))
    assert beside[:, :4] == pytest.approx(alone, rel=1e-5)
    assert (beside[:, 4:] == 1).all()
    assert np.isfinite(fusion.fuse(certain, more)).all()


def test_a_way_that_says_nothing_weighs_little():
    edges, vector, questions = _ways(2.0, 0.3)
    useless = Told(np.random.default_rng(1).normal(0, 0.3, vector.table.shape).astype(np.float32))
    fusion = fit_fusions(edges, useless, [questions], 0)["1p"]
    assert 3 * abs(fusion.vector) < fit_fusions(edges, vector, [questions], 0)["1p"].vector


def test_what_is_certain_stays_certain():
    by_edges = np.array([[1.0, 0.5, 0.0]], np.float32)
    by_vector = np.array([[-1.0, 0.9, 0.1]], np.float32)
    fused = PLAIN.fuse(by_edges, by_vector)
    assert fused[0, 0] == 1.0
    assert 0.0 < fused[0, 2] < fused[0, 1] < 1.0


def test_questions_together_are_as_questions_alone():
    edges, vector, questions = _ways(3.0, 0.3)
    both = FusedAnswerer(edges, vector, {"1p": PLAIN})
    asked = (questions.shape, questions.anchors, questions.relations)
    together = both.scores(*asked)
    alone = np.concatenate([both.scores(asked[0], asked[1][n : n + 1], asked[2][n : n + 1]) for n in range(COUNT)])
    assert together == pytest.approx(alone, abs=1e-6)


def test_a_structure_without_weights_takes_those_of_the_nearest():
    other = Fusion(bias=1.0, edges=1.0, vector=0.0, edges_level=0.0, vector_level=0.0)
    fusions = {"1p": PLAIN, "3p": other}
    assert fusion_for(STRUCTURES[0].query, fusions) == PLAIN
    assert fusion_for(shape_named("up").query, fusions) in (PLAIN, other)
    assert fusion_for(UNIONS[0].query, {"3p": other}) == other
