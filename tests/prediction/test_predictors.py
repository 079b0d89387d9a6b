import json

import numpy as np
import pytest

from halfgraph.errors import FolderError, SettingError
from halfgraph.graph.folder import Graph
from halfgraph.prediction.calibration_fitting import validation_questions
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.ensemble import EnsembleWeights, ProbabilityWeights
from halfgraph.prediction.link_predictor import LinkWeights
from halfgraph.prediction.modes import EMBEDDING, ENSEMBLE, LINKS, MODES
from halfgraph.prediction.predictors import FILE, PREDICTORS, FittedWeights, Predictors, fit_weights
from halfgraph.query.structures import STRUCTURES
from halfgraph.training.run import new_encoder
from small_runs import TINY, people

PLAIN = EnsembleWeights(0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, ProbabilityWeights(0.0, 1.0, 0.5, 0.0))
FITTED = FittedWeights(LinkWeights(bias=-1.0, cosine=2.0, offsets=(0.5, 1.0)), {"1p": PLAIN})


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=120)


@pytest.fixture(scope="module")
def predictors(graph: Graph) -> Predictors:
    encoder = new_encoder(TINY, graph, 0, "cpu")
    fitted = fit_weights(encoder, graph, validation_questions(graph, 0, 20), 0)
    return Predictors(EmbeddingIndex.of(encoder), graph.train, fitted)


def test_what_was_fitted_comes_back_from_the_run_folder(tmp_path):
    assert FittedWeights.load(tmp_path) is None
    FITTED.save(tmp_path)
    assert FittedWeights.load(tmp_path) == FITTED


def test_a_broken_file_says_how_to_make_it_again(tmp_path):
    (tmp_path / FILE).write_text('{"edges": 3}')
    with pytest.raises(FolderError, match="halfgraph calibrate"):
        FittedWeights.load(tmp_path)


def test_weights_of_another_version_are_not_taken_for_this_ones(tmp_path):
    FITTED.save(tmp_path)
    kept = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**kept, "format": 1}))
    with pytest.raises(FolderError, match="halfgraph calibrate RUN"):
        FittedWeights.load(tmp_path)


def test_the_best_mode_that_was_fitted_is_the_default(predictors):
    assert predictors.choose(None) == ENSEMBLE
    assert Predictors(predictors.index, predictors.known).choose(None) == EMBEDDING
    assert Predictors(predictors.index, predictors.known, FittedWeights(LinkWeights(), {})).choose(None) == LINKS


def test_a_mode_that_was_not_fitted_is_refused_and_so_is_an_unknown_one(predictors):
    bare = Predictors(predictors.index, predictors.known)
    with pytest.raises(SettingError, match="halfgraph calibrate RUN"):
        bare.choose(LINKS)
    with pytest.raises(SettingError, match="Known: embedding, links, ensemble"):
        bare.choose("magic")


def test_every_mode_gives_every_entity_a_score(predictors, graph):
    questions = validation_questions(graph, 0, 5)
    for mode in MODES:
        predictor = predictors.predictor(mode)
        for some in questions:
            scores = predictor.scores(some.structure, some.anchors, some.relations)
            assert scores.shape == (len(some), graph.train.entity_count)
            assert np.isfinite(scores).all()


def test_one_query_has_the_scores_of_its_batch(predictors, graph):
    some = next(one for one in validation_questions(graph, 0, 5) if one.structure == STRUCTURES[3])
    query = some.structure.fill(some.anchors[0], some.relations[0])
    cosines = predictors.predictor(EMBEDDING).scores(some.structure, some.anchors, some.relations)[0]
    for mode in MODES:
        alone = predictors.query_scores(mode, query, cosines)
        assert alone == pytest.approx(
            predictors.predictor(mode, likely=True).scores(some.structure, some.anchors, some.relations)[0], abs=1e-5
        )


def test_a_graph_without_a_split_has_nothing_to_fit_on(tmp_path):
    from imported_graphs import made, tsv

    graph = made(tmp_path, tsv([("a", "r", "b"), ("b", "r", "c")]))
    assert fit_weights(new_encoder(TINY, graph, 0, "cpu"), graph, [], 0) is None


def test_every_mode_has_a_predictor():
    assert tuple(PREDICTORS) == MODES


def test_in_a_large_graph_batches_are_scored_as_single_queries_are(predictors, graph, monkeypatch):
    monkeypatch.setattr("halfgraph.prediction.link_executor.LARGE", 0)
    monkeypatch.setattr("halfgraph.prediction.link_executor.PROPOSED", 5)
    differs = False
    for some in validation_questions(graph, 0, 5):
        cosines = predictors.predictor(EMBEDDING).scores(some.structure, some.anchors, some.relations)
        for mode in MODES:
            batch = predictors.predictor(mode, likely=True).scores(some.structure, some.anchors, some.relations)
            for row in range(len(some)):
                alone = predictors.query_scores(mode, some.query(row), cosines[row])
                assert batch[row] == pytest.approx(alone, abs=1e-5)
            if mode == LINKS:  # and the proposals count: all entities but a few have known triples only
                differs |= bool((np.count_nonzero(batch, axis=1) < graph.train.entity_count).any())
    assert differs


def test_weights_of_format_4_are_read(tmp_path):
    links = {"bias": -1.0, "cosine": 2.0, "back": 0.1, "level": 0.2, "vote": 0.3, "rules": 0.4, "popularity": 0.5}
    links |= {"ends": 0.6, "often": 0.7, "breadth": 0.8, "asked": 0.9, "offsets": [0.5, 1.0]}
    both = {"bias": 0.1, "edges": 0.2, "vector": 0.3, "low": 0.4, "ties": 0.5, "edges_level": 0.6, "vector_level": 0.7}
    both["chance"] = {"bias": 1.1, "evidence": 1.2, "edges_level": 1.3, "vector_level": 1.4}
    (tmp_path / FILE).write_text(json.dumps({"format": 4, "edges": links, "both": {"1p": both}}))
    fitted = FittedWeights.load(tmp_path)
    assert fitted is not None
    assert fitted.links == LinkWeights(-1.0, 2.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, (0.5, 1.0))
    probability = ProbabilityWeights(1.1, 1.2, 1.3, 1.4)
    assert fitted.ensemble == {"1p": EnsembleWeights(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, probability)}
