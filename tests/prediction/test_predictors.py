"""The predictors of a run: its modes, its link models in one file, and how many triples are taken to be missing."""

import json
from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch

from halfgraph.errors import FolderError, SettingError
from halfgraph.graph.folder import Graph
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_predictor import Prepared
from halfgraph.prediction.modes import EMBEDDING, ENSEMBLE, LINKS, MODES
from halfgraph.prediction.predictors import FILE, LinkModels, Predictors, missing_share
from halfgraph.query.structures import STRUCTURES
from halfgraph.training.run import new_encoder
from halfgraph.training.run_folder import load_tensors, save_tensors
from imported_graphs import made, tsv
from small_links import link_models
from small_runs import TINY, people, training_questions


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=40)


@pytest.fixture(scope="module")
def predictors(graph: Graph) -> Predictors:
    return Predictors(EmbeddingIndex.of(new_encoder(TINY, graph, 0, "cpu")), graph.train, link_models(graph.train))


def test_link_models_come_back_from_the_run_folder(tmp_path, graph):
    assert LinkModels.load(tmp_path) is None
    models = link_models(graph.train)
    models.save(tmp_path)
    loaded = LinkModels.load(tmp_path)
    assert loaded is not None
    assert (loaded.weights, loaded.missing) == (models.weights, models.missing)
    assert torch.equal(loaded.complex.entities, models.complex.entities)
    assert torch.equal(loaded.complex.relations, models.complex.relations)


def test_prepared_numbers_come_back_and_are_used_for_their_view_only(tmp_path, graph, predictors):
    whole = Predictors(predictors.index, graph.whole, predictors.models)
    prepared = whole.links.prepare(lambda _: None)
    replace(predictors.models, prepared=prepared, prepared_triples=graph.whole.triple_count).save(tmp_path)
    models = LinkModels.load(tmp_path)
    assert replace(predictors, models=models).links.prepared is None
    ready = replace(whole, models=models).links
    assert (ready.neighbours.ids == prepared.neighbours.ids).all()
    assert ready.log_odds(np.array([0, 3]), 1) == pytest.approx(whole.links.log_odds(np.array([0, 3]), 1), abs=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        lambda near, scores: (replace(near, ids=near.ids + np.int32(10**6)), scores),
        lambda near, scores: (replace(near, ids=near.ids - np.int32(2)), scores),
        lambda near, scores: (replace(near, ids=near.ids.astype(np.int64)), scores),
        lambda near, scores: (replace(near, nearness=near.nearness[1:]), scores),
        lambda near, scores: (replace(near, nearness=near.nearness * np.float32("nan")), scores),
        lambda near, scores: (near, scores[1:]),
        lambda near, scores: (near, scores.astype(np.float64)),
        lambda near, scores: (near, scores + np.float32("inf")),
    ],
)
def test_prepared_numbers_that_do_not_fit_are_refused(tmp_path, graph, predictors, change):
    whole = replace(predictors, known=graph.whole)
    prepared = whole.links.prepare(lambda _: None)
    wrong = Prepared(*change(prepared.neighbours, prepared.head_scores))
    replace(predictors.models, prepared=wrong, prepared_triples=graph.whole.triple_count).save(tmp_path)
    with pytest.raises(FolderError, match=r"prepared numbers|not finite"):
        LinkModels.load(tmp_path, graph)


@pytest.mark.parametrize(
    "about",
    [{"format": "0"}, {"weights": "[3]"}, {"weights": json.dumps({"bias": 1})}, {"weights": "{"}],
    ids=["another format", "a list", "no weights", "no JSON"],
)
def test_models_of_another_version_say_how_to_make_them_again(tmp_path, graph, about):
    link_models(graph.train).save(tmp_path)
    tensors, kept = load_tensors(tmp_path / FILE)
    save_tensors(tmp_path / FILE, tensors, {**kept, **about})
    with pytest.raises(FolderError, match="halfgraph calibrate RUN"):
        LinkModels.load(tmp_path)


def test_a_broken_file_is_reported_as_one(tmp_path):
    (tmp_path / FILE).write_text("no tensors")
    with pytest.raises(FolderError, match=FILE):
        LinkModels.load(tmp_path)


def test_links_are_the_default_if_the_run_has_their_models(predictors):
    assert predictors.choose(None) == LINKS
    assert Predictors(predictors.index, predictors.known).choose(None) == EMBEDDING


def test_a_mode_without_its_models_is_refused_and_so_is_an_unknown_one(predictors):
    bare = Predictors(predictors.index, predictors.known)
    with pytest.raises(SettingError, match="halfgraph calibrate RUN"):
        bare.choose(LINKS)
    with pytest.raises(SettingError, match="halfgraph calibrate RUN"):
        bare.choose(ENSEMBLE)
    with pytest.raises(SettingError, match="Known: embedding, links, ensemble"):
        bare.choose("rules")


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_is_scored_as_its_queries_are_one_by_one(predictors, graph, mode):
    predictor = predictors.predictor(mode)
    for some in training_questions(graph, STRUCTURES, 5):
        scores = predictor.scores(some.structure, some.anchors, some.relations)
        assert scores.shape == (len(some), graph.train.entity_count)
        assert np.isfinite(scores).all()
        if mode == LINKS:
            for row in range(len(some)):
                assert (scores[row] == predictors.executor.scores(some.query(row))).all()
                assert scores[row, some.answers[row]] == pytest.approx(1.0)


def test_a_view_lacks_what_was_held_out_and_the_whole_graph_is_taken_to_lack_as_large_a_share(graph):
    whole, train = graph.whole.triple_count, graph.train.triple_count
    assert missing_share(graph, "train") == (whole - train) / whole
    assert missing_share(graph, "whole") == missing_share(graph, "train")


def test_more_missing_triples_shift_all_log_odds_alike(predictors, graph):
    odds = {}
    for share in (0.1, 0.2):
        own = Predictors(predictors.index, graph.train, predictors.models, share).links
        assert own.missing == pytest.approx(graph.train.triple_count * share / (1 - share) / 10)
        odds[share] = own.log_odds(np.array([0, 1]), 0)
    assert odds[0.2] - odds[0.1] == pytest.approx(log(0.25 / (1 / 9)), abs=1e-4)


def test_a_graph_without_a_split_is_taken_to_lack_a_triple_at_least(tmp_path):
    graph = made(tmp_path, tsv([("a", "r", "b"), ("b", "r", "c")]))
    assert missing_share(graph, "whole") == 0.0
    index = EmbeddingIndex.of(new_encoder(TINY, graph, 0, "cpu"))
    predictors = Predictors(index, graph.train, link_models(graph.train, missing=5), missing_share(graph, "whole"))
    assert predictors.links.missing == 1 / 5


def test_without_models_witnesses_are_found_by_cosines(predictors, graph):
    bare = Predictors(predictors.index, graph.train)
    some = training_questions(graph, STRUCTURES[:1], 3)[0]
    for row in range(len(some)):
        (step,) = bare.witness(some.query(row), int(some.answers[row])).steps
        assert step.known
        others = [entity for entity in range(graph.train.entity_count) if entity != some.answers[row]]
        assert 0 < max(bare.witness(some.query(row), entity).steps[0].probability for entity in others) <= 1
