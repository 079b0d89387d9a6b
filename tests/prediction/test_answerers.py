import numpy as np
import pytest
import torch

from halfgraph.model.architecture import Architecture
from halfgraph.prediction.answerers import MeaningAnswerer, VectorAnswerer
from halfgraph.prediction.baselines import neighbour_vote, popularity
from halfgraph.query.fold import fold
from halfgraph.query.structures import NAMED, STRUCTURES, UNIONS, Structure, structure_named
from small_models import KINDS, RELATIONS, small_model, some_questions

ENTITIES = sum(KINDS)


def some_ids(structure: Structure, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    anchors = rng.integers(0, ENTITIES, (count, structure.anchor_count)).astype(np.int32)
    return anchors, rng.integers(0, RELATIONS, (count, structure.relation_count)).astype(np.int32)


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.short)
def test_a_model_scores_every_entity_by_the_cosine(structure: Structure) -> None:
    model = small_model(Architecture("bilinear", "attention", "min", heads=2))
    questions = some_questions(model.graph, structure, 7)
    scores = VectorAnswerer(model.encoder).scores(structure, questions.anchors, questions.relations)
    assert scores.shape == (len(questions), ENTITIES)
    assert scores.dtype == np.float32
    for row in range(len(questions)):
        for entity in range(ENTITIES):
            vector = model.encoder.encode([questions.query(row)])[0]
            with torch.no_grad():
                cosine = torch.cosine_similarity(vector, model.encoder.entities.table[entity][None])
            assert scores[row, entity] == pytest.approx(float(cosine), abs=1e-6)


def test_a_union_has_the_best_of_its_parts() -> None:
    model = small_model(Architecture())
    answerer = VectorAnswerer(model.encoder)
    anchors, relations = some_ids(UNIONS[0], 9)
    one_edge = structure_named("1p")
    parts = [answerer.scores(one_edge, anchors[:, [i]], relations[:, [i]]) for i in range(2)]
    np.testing.assert_allclose(answerer.scores(UNIONS[0], anchors, relations), np.maximum(*parts), atol=1e-6)


def test_a_path_on_from_a_union_has_the_best_of_the_paths() -> None:
    model = small_model(Architecture("bilinear", "gqe", "mean"))
    answerer = VectorAnswerer(model.encoder)
    anchors, relations = some_ids(UNIONS[1], 9)
    parts = [answerer.scores(structure_named("2p"), anchors[:, [i]], relations[:, [i, 2]]) for i in range(2)]
    np.testing.assert_allclose(answerer.scores(UNIONS[1], anchors, relations), np.maximum(*parts), atol=1e-6)


@pytest.mark.parametrize("structure", NAMED, ids=lambda structure: structure.short)
def test_a_batch_is_scored_as_its_queries_are_one_by_one(structure: Structure) -> None:
    model = small_model(Architecture())
    anchors, relations = some_ids(structure, 6)
    for answerer in (VectorAnswerer(model.encoder), popularity(model.graph), neighbour_vote(model.graph)):
        together = answerer.scores(structure, anchors, relations)
        alone = [answerer.scores(structure, anchors[[row]], relations[[row]])[0] for row in range(6)]
        np.testing.assert_allclose(together, np.stack(alone), atol=1e-6)


def test_a_meaning_is_folded_for_each_query() -> None:
    model = small_model(Architecture())
    answerer = popularity(model.graph)
    assert isinstance(answerer, MeaningAnswerer)
    structure = structure_named("pi")
    anchors, relations = some_ids(structure, 4)
    scores = answerer.scores(structure, anchors, relations)
    for row in range(4):
        expected = fold(structure.fill(anchors[row], relations[row]), answerer.meaning())
        np.testing.assert_array_equal(scores[row], expected)
