"""Fitted link weights: held-out triples are likely, and as often true as they are said to be."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from halfgraph.errors import SettingError
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_features import FEATURES
from halfgraph.prediction.link_fitting import draw_examples, fit_link_weights, log_rates
from halfgraph.prediction.link_predictor import LinkPredictor, LinkWeights
from halfgraph.training import link_training
from halfgraph.training.link_training import train_links
from halfgraph.training.run import new_encoder
from small_links import random_complex, random_weights
from small_runs import TINY, people


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=120)


@pytest.fixture(scope="module")
def links(graph: Graph) -> LinkPredictor:
    """Links by ComplEx, which a few seconds of training make better than chance, and CGA as it begins."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"RANK": 16, "LEAST_RANK": 4, "PAIRS": 100, "EPOCHS": 40}.items():
            patch.setattr(link_training, name, value)
        model = train_links(graph.train, 0)
    return LinkPredictor(EmbeddingIndex.of(new_encoder(TINY, graph, 0, "cpu")), model, graph.train, LinkWeights())


@pytest.fixture(scope="module")
def fitted(graph: Graph, links: LinkPredictor) -> LinkPredictor:
    return replace(links, weights=fit_link_weights(links, graph.valid, 0, pairs=200))


def probabilities(links: LinkPredictor, triples: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array([links.probability(*triple) for triple in triples])


def test_held_out_triples_are_likelier_than_others(graph, fitted):
    rng, held_out = np.random.default_rng(0), graph.test.triples().tolist()
    others = [(head, relation, int(rng.integers(graph.train.entity_count))) for head, relation, _ in held_out]
    right, wrong = probabilities(fitted, held_out), probabilities(fitted, others)
    assert np.mean(right > wrong) > 0.9


def test_about_as_many_triples_are_predicted_as_are_missing(graph, fitted):
    every = np.arange(graph.train.entity_count)
    relations = range(0, graph.train.relation_count, 2)
    expected = sum(float(fitted.probabilities(every, relation).sum()) for relation in relations)
    assert expected == pytest.approx(graph.valid.triple_count, rel=0.25)


def test_weights_for_more_missing_triples_predict_more(graph, links, fitted):
    missing = 3 * graph.valid.triple_count
    more = replace(links, weights=fit_link_weights(links, graph.valid, 0, missing=missing, pairs=200))
    triples = graph.test.triples().tolist()
    assert probabilities(more, triples).mean() > 1.1 * probabilities(fitted, triples).mean()


@pytest.mark.parametrize("name", sorted(set(FEATURES) - {"constant"}))
def test_a_feature_can_be_switched_off(graph, links, name):
    weights = fit_link_weights(links, graph.valid, 0, pairs=40, off=[name])
    place = list(FEATURES).index(name)
    assert not weights.matrix[:, place].any()
    assert weights.matrix[:, np.arange(len(FEATURES)) != place].any()


def test_the_same_seed_gives_the_same_weights(graph, links):
    one, same, other = (fit_link_weights(links, graph.valid, seed, pairs=40) for seed in (3, 3, 4))
    assert one == same
    assert one != other


def test_true_examples_are_the_held_out_links_with_their_features(graph, links):
    own = replace(links, weights=random_weights(graph.train))
    features, true, _, relations, _ = draw_examples(own, graph.valid, np.random.default_rng(0), 10_000, lambda _: None)
    offsets = own.weights.bias + np.array(own.weights.offsets)[relations]
    log_odds = (features @ own.weights.matrix.ravel() + offsets)[true > 0]
    edges = zip(graph.valid.heads(), graph.valid.relations.tolist(), graph.valid.tails, strict=True)
    expected = [own.log_odds(np.array([head]), relation, np.array([tail]))[0, 0] for head, relation, tail in edges]
    assert sorted(log_odds.tolist()) == pytest.approx(sorted(expected), abs=1e-3)


def test_progress_is_shown_for_every_pair(graph, links):
    steps: list[int] = []
    fit_link_weights(links, graph.valid, 0, pairs=20, progress=steps.append)
    assert sum(steps) == 3 * 20


def test_an_unknown_name_is_refused(graph, links):
    with pytest.raises(SettingError, match=f"Known: {', '.join(FEATURES)}"):
        fit_link_weights(links, graph.valid, 0, off=["level"])


def test_a_graph_with_too_little_held_out_is_refused(tmp_path):
    small = people(tmp_path, count=8, split="96/2/2")
    index = EmbeddingIndex.of(new_encoder(TINY, small, 0, "cpu"))
    with pytest.raises(SettingError, match="too few"):
        fit_link_weights(LinkPredictor(index, random_complex(small.train), small.train, LinkWeights()), small.valid, 0)


def test_rates_are_those_of_held_out_triples_and_average_for_relations_without_triples(graph):
    rates = log_rates(graph.train, graph.train)
    assert rates == pytest.approx(np.zeros(graph.train.relation_count // 2))
    triples = graph.train.triples()
    first = KnowledgeGraph.of(triples[triples[:, 1] == 0], graph.train.types, graph.train.relation_count)
    rates = log_rates(graph.train, first)
    assert rates[0] > 0
    assert (rates[1:] < 0).all()
    assert log_rates(first, first)[1:] == pytest.approx(0)


def test_a_relation_that_lacks_nothing_is_predicted_less_even_if_no_example_has_it(graph, links):
    triples = graph.valid.triples()
    chosen = int(np.bincount(triples[:, 1]).argmax())
    without = KnowledgeGraph.of(triples[triples[:, 1] != chosen], graph.valid.types, graph.valid.relation_count)
    every, few = (fit_link_weights(links, held_out, 0, pairs=40) for held_out in (graph.valid, without))
    means = [np.delete(weights.offsets, chosen // 2).mean() for weights in (every, few)]
    assert few.offsets[chosen // 2] - means[1] < every.offsets[chosen // 2] - means[0] - 1
