import json

import numpy as np
import pytest

from halfgraph.errors import FolderError, SettingError
from halfgraph.graph.folder import Graph
from halfgraph.prediction.calibrating import validation_questions
from halfgraph.prediction.ensemble import Chance, Fusion
from halfgraph.prediction.link_predictor import Scale
from halfgraph.prediction.predictors import BOTH, FILE, MODES, SCORED, VECTOR, Modes, Weighing, fused_scores, weigh
from halfgraph.query.structures import STRUCTURES
from halfgraph.training.run import new_encoder
from small_runs import TINY, people

PLAIN = Fusion(0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, Chance(0.0, 1.0, 0.5, 0.0))
WEIGHING = Weighing(Scale(bias=-1.0, cosine=2.0, offsets=(0.5, 1.0)), {"1p": PLAIN})


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=120)


@pytest.fixture(scope="module")
def modes(graph: Graph) -> Modes:
    encoder = new_encoder(TINY, graph, 0, "cpu")
    return Modes(encoder, graph.train, weigh(encoder, graph, validation_questions(graph, 0, 20), 0))


def test_what_was_fitted_comes_back_from_the_run_folder(tmp_path):
    assert Weighing.load(tmp_path) is None
    WEIGHING.save(tmp_path)
    assert Weighing.load(tmp_path) == WEIGHING


def test_a_broken_file_says_how_to_make_it_again(tmp_path):
    (tmp_path / FILE).write_text('{"edges": 3}')
    with pytest.raises(FolderError, match="halfgraph calibrate"):
        Weighing.load(tmp_path)


def test_weights_of_another_version_are_not_taken_for_this_ones(tmp_path):
    WEIGHING.save(tmp_path)
    kept = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**kept, "format": 1}))
    with pytest.raises(FolderError, match="halfgraph calibrate RUN"):
        Weighing.load(tmp_path)


def test_the_best_mode_that_was_fitted_is_the_default(modes):
    assert modes.named(None) == BOTH
    assert Modes(modes.encoder, modes.known).named(None) == VECTOR
    assert Modes(modes.encoder, modes.known, Weighing(Scale(), {})).named(None) == SCORED


def test_a_mode_that_was_not_fitted_is_refused_and_so_is_an_unknown_one(modes):
    bare = Modes(modes.encoder, modes.known)
    with pytest.raises(SettingError, match="halfgraph calibrate RUN"):
        bare.named(SCORED)
    with pytest.raises(SettingError, match="Known: vector, scored, both"):
        bare.named("magic")


def test_every_mode_gives_every_entity_a_score(modes, graph):
    questions = validation_questions(graph, 0, 5)
    for mode in MODES:
        answerer = modes.answerer(mode)
        for some in questions:
            scores = answerer.scores(some.structure, some.anchors, some.relations)
            assert scores.shape == (len(some), graph.train.entity_count)
            assert np.isfinite(scores).all()


def test_one_query_has_the_scores_of_its_batch(modes, graph):
    some = next(one for one in validation_questions(graph, 0, 5) if one.structure == STRUCTURES[3])
    query = some.structure.fill(some.anchors[0], some.relations[0])
    cosines = modes.answerer(VECTOR).scores(some.structure, some.anchors, some.relations)[0]
    for mode in MODES:
        alone = fused_scores(modes, mode, modes.scored(), query, cosines)
        assert alone == pytest.approx(
            modes.answerer(mode, likely=True).scores(some.structure, some.anchors, some.relations)[0], abs=1e-5
        )


def test_a_graph_without_a_split_has_nothing_to_weigh_by(tmp_path):
    from making import made, tsv

    graph = made(tmp_path, tsv([("a", "r", "b"), ("b", "r", "c")]))
    assert weigh(new_encoder(TINY, graph, 0, "cpu"), graph, [], 0) is None
