import time

import numpy as np
import pytest
import torch

from halfgraph.model.architecture import Architecture
from halfgraph.prediction.base import QueryPredictor, map_chunks
from halfgraph.prediction.baselines import neighbour_vote, popularity
from halfgraph.prediction.embedding import EmbeddingPredictor
from halfgraph.query.structures import NAMED, STRUCTURES, UNIONS, Structure, structure_named
from small_models import RELATIONS, TYPE_SIZES, small_model, some_questions

ENTITIES = sum(TYPE_SIZES)


def some_ids(structure: Structure, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    anchors = rng.integers(0, ENTITIES, (count, structure.anchor_count)).astype(np.int32)
    return anchors, rng.integers(0, RELATIONS, (count, structure.relation_count)).astype(np.int32)


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.short)
def test_a_model_scores_every_entity_by_the_cosine(structure: Structure) -> None:
    model = small_model(Architecture("bilinear", "attention", "min", heads=2))
    questions = some_questions(model.graph, structure, 7)
    scores = EmbeddingPredictor.of(model.encoder).scores(structure, questions.anchors, questions.relations)
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
    predictor = EmbeddingPredictor.of(model.encoder)
    anchors, relations = some_ids(UNIONS[0], 9)
    one_edge = structure_named("1p")
    parts = [predictor.scores(one_edge, anchors[:, [i]], relations[:, [i]]) for i in range(2)]
    np.testing.assert_allclose(predictor.scores(UNIONS[0], anchors, relations), np.maximum(*parts), atol=1e-6)


def test_a_path_on_from_a_union_has_the_best_of_the_paths() -> None:
    model = small_model(Architecture("bilinear", "gqe", "mean"))
    predictor = EmbeddingPredictor.of(model.encoder)
    anchors, relations = some_ids(UNIONS[1], 9)
    parts = [predictor.scores(structure_named("2p"), anchors[:, [i]], relations[:, [i, 2]]) for i in range(2)]
    np.testing.assert_allclose(predictor.scores(UNIONS[1], anchors, relations), np.maximum(*parts), atol=1e-6)


@pytest.mark.parametrize("structure", NAMED, ids=lambda structure: structure.short)
def test_a_batch_is_scored_as_its_queries_are_one_by_one(structure: Structure) -> None:
    model = small_model(Architecture())
    anchors, relations = some_ids(structure, 6)
    for predictor in (EmbeddingPredictor.of(model.encoder), popularity(model.graph), neighbour_vote(model.graph)):
        together = predictor.scores(structure, anchors, relations)
        alone = [predictor.scores(structure, anchors[[row]], relations[[row]])[0] for row in range(6)]
        np.testing.assert_allclose(together, np.stack(alone), atol=1e-6)


def test_a_query_predictor_scores_one_query_after_another() -> None:
    model = small_model(Architecture())
    predictor = popularity(model.graph)
    assert isinstance(predictor, QueryPredictor)
    structure = structure_named("pi")
    anchors, relations = some_ids(structure, 4)
    scores = predictor.scores(structure, anchors, relations)
    for row in range(4):
        expected = predictor.scorer()(structure.fill(anchors[row], relations[row]))
        np.testing.assert_array_equal(scores[row], expected)


def test_chunks_come_in_order_and_torch_has_its_threads_back() -> None:
    before = torch.get_num_threads()

    def work(rows: slice) -> tuple[list[int], int]:
        time.sleep(0.002 * (rows.start % 3))
        return list(range(rows.start, rows.stop)), torch.get_num_threads()

    made = [(rows, *found) for rows, found in map_chunks(work, 23, 4)]
    assert [row for _, own, _ in made for row in own] == list(range(23))
    assert all(own == list(range(rows.start, rows.stop)) for rows, own, _ in made)
    assert {threads for *_, threads in made} == {1}
    assert torch.get_num_threads() == before
    assert list(map_chunks(work, 0, 4)) == []


def test_an_error_in_a_chunk_is_not_lost() -> None:
    def work(rows: slice) -> int:
        return 1 // (4 - rows.start)

    with pytest.raises(ZeroDivisionError):
        list(map_chunks(work, 9, 2))
