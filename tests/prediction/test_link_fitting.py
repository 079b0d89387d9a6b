import numpy as np
import pytest

from halfgraph.errors import SettingError
from halfgraph.graph.folder import Graph
from halfgraph.prediction.baselines import one_hot
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_fitting import OPTIONAL, TOGETHER, fit_link_weights
from halfgraph.prediction.link_predictor import LinkPredictor, LinkWeights
from halfgraph.training.run import new_encoder
from small_runs import TINY, people


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=120)


def unfitted(graph: Graph) -> LinkPredictor:
    return LinkPredictor(EmbeddingIndex.of(new_encoder(TINY, graph, 0, "cpu")), graph.train, LinkWeights())


@pytest.fixture(scope="module")
def links(graph: Graph) -> LinkPredictor:
    return unfitted(graph)


def test_held_out_triples_are_likelier_than_others(graph, links):
    fitted = links.copy(fit_link_weights(links, graph.valid, 0))
    right, wrong = [], []
    rng = np.random.default_rng(0)
    for head, relation, tail in graph.test.triples().tolist():
        odds = fitted.log_odds(
            np.array([head]), relation, fitted.evidence(one_hot(head, graph.train.entity_count), relation)
        )[0]
        right.append(float(odds[tail]))
        wrong.append(float(odds[rng.integers(len(odds))]))
    assert np.mean(np.array(right) > np.array(wrong)) > 0.9


def test_probabilities_are_about_as_often_right_as_they_say(graph, links):
    fitted = links.copy(fit_link_weights(links, graph.valid, 0))
    count, relations = graph.train.entity_count, graph.train.relation_count
    expected = found = 0.0
    for head in range(count):
        for relation in range(relations):
            if not len(graph.train.tails_of(head, relation)) and not len(graph.valid.tails_of(head, relation)):
                continue
            evidence = fitted.evidence(one_hot(head, count), relation)
            odds = fitted.log_odds(np.array([head]), relation, evidence, anchored=True)[0].numpy()
            odds[graph.train.tails_of(head, relation)] = -np.inf
            expected += (1 / (1 + np.exp(-odds))).sum()
            found += len(graph.valid.tails_of(head, relation))
    assert expected == pytest.approx(found, rel=0.3)


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_feature_can_be_switched_off(graph, links, name):
    weights = fit_link_weights(links, graph.valid, 0, pairs=60, off=[name])
    assert getattr(weights, name) == 0.0
    assert all(getattr(weights, part) == 0.0 for part, whole in TOGETHER.items() if whole == name)
    assert any(getattr(weights, other) for other in OPTIONAL if other != name)


def test_the_same_seed_gives_the_same_weights(graph, links):
    assert fit_link_weights(links, graph.valid, 3, pairs=40) == fit_link_weights(links, graph.valid, 3, pairs=40)


def test_an_unknown_name_is_refused(graph, links):
    with pytest.raises(SettingError, match="Known: cosine, inverse_cosine, vote, rules, popularity"):
        fit_link_weights(links, graph.valid, 0, off=["level"])


def test_a_graph_with_too_little_held_out_is_refused(tmp_path):
    small = people(tmp_path, count=8, split="96/2/2")
    with pytest.raises(SettingError, match="too few"):
        fit_link_weights(
            LinkPredictor(EmbeddingIndex.of(new_encoder(TINY, small, 0, "cpu")), small.train, LinkWeights()),
            small.valid,
            0,
        )
