from dataclasses import replace

import numpy as np
import pytest
import torch

from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.model.projection import PROJECTIONS
from halfgraph.prediction.baselines import one_hot
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_fitting import FEATURES
from halfgraph.prediction.link_predictor import (
    CACHE,
    LEAST_CACHED,
    MOST_CACHED,
    LinkPredictor,
    LinkWeights,
    _cache_size,
)
from small_graphs import Small
from small_models import SmallModel, small_model

SOME = LinkWeights(
    bias=-2.0,
    cosine=3.0,
    inverse_cosine=1.5,
    level=0.3,
    vote=0.2,
    rules=0.15,
    popularity=0.1,
    is_tail=-0.3,
    log_tail_count=0.25,
    log_known_tails=0.4,
    anchored_without_tail=1.7,
)


@pytest.fixture(params=sorted(PROJECTIONS))
def model(request: pytest.FixtureRequest) -> SmallModel:
    return small_model(Architecture(projection=request.param, heads=2))


def links_of(model: SmallModel, weights: LinkWeights = SOME) -> LinkPredictor:
    return LinkPredictor(EmbeddingIndex.of(model.encoder.float()), model.graph, weights)


def test_cosines_of_both_directions_are_those_of_the_embeddings(model):
    links, head, relation = links_of(model), 3, 2
    features = links.features(head, relation)
    vectors = links.vectors
    with torch.no_grad():
        ids = torch.full((len(vectors),), relation)
        there = model.encoder.projection(vectors[head : head + 1], ids[:1])
        back = model.encoder.projection(vectors, ids ^ 1)
    assert features[:, 0] == pytest.approx(torch.cosine_similarity(there, vectors).numpy(), abs=1e-5)
    assert features[:, 1] == pytest.approx(torch.cosine_similarity(back, vectors[head : head + 1]).numpy(), abs=1e-5)


def test_log_odds_are_the_weighted_sum_of_the_features(model):
    links = links_of(model)
    weights = np.array([getattr(SOME, name) for name in FEATURES])
    for head, relation in ((0, 0), (3, 1), (5, 2)):
        evidence = links.evidence(one_hot(head, len(links.vectors)), relation)
        found = links.log_odds(np.array([head]), relation, evidence, anchored=True)[0].numpy()
        assert found == pytest.approx(links.features(head, relation) @ weights + SOME.bias, abs=1e-4)
        some = np.array([1, 4])
        of_some = links.log_odds(np.array([head]), relation, evidence, some, anchored=True)[0].numpy()
        assert of_some == pytest.approx(found[some], abs=1e-5)
        likely = links.probabilities(np.array([head]), relation, evidence, some, anchored=True)[0].numpy()
        assert likely == pytest.approx(1 / (1 + np.exp(-found[some])), abs=1e-5)


def test_an_anchored_head_adds_its_weight_only_if_it_has_no_known_tail(model):
    links = links_of(model)
    for head in range(model.graph.entity_count):
        for relation in range(model.graph.relation_count):
            evidence = links.evidence(one_hot(head, len(links.vectors)), relation)
            asked = links.log_odds(np.array([head]), relation, evidence, anchored=True)
            more = asked - links.log_odds(np.array([head]), relation, evidence)
            expected = 0.0 if len(model.graph.tails_of(head, relation)) else SOME.anchored_without_tail
            assert more.numpy() == pytest.approx(expected, abs=1e-5)


def test_tail_features_count_the_triples_with_this_tail(model):
    links, count = links_of(model), model.graph.entity_count
    for relation in range(model.graph.relation_count):
        share, any_, often = links.popularity(relation)
        counts = np.array([len(model.graph.tails_of(tail, relation ^ 1)) for tail in range(count)])
        assert any_.tolist() == (counts > 0).tolist()
        assert np.expm1(often) == pytest.approx(counts, abs=1e-4)
        assert np.exp(share) == pytest.approx(counts / max(counts.sum(), 1), abs=1e-4)


def test_heads_in_a_batch_have_the_log_odds_of_each_alone_hot(model):
    links = links_of(model)
    evidence = links.evidence(np.full(len(links.vectors), 0.5, np.float32), 1)
    heads = np.array([2, 0, 6])
    together = links.log_odds(heads, 1, evidence)
    for place, head in enumerate(heads):
        alone = links.log_odds(np.array([head]), 1, evidence)[0]
        assert together[place].numpy() == pytest.approx(alone.numpy(), abs=1e-5)


def test_known_triples_pass_on_the_best_score_of_their_heads(model):
    links, source = links_of(model), np.linspace(0.1, 1.0, model.graph.entity_count).astype(np.float32)
    for relation in range(model.graph.relation_count):
        known = links.evidence(source, relation).known
        for tail in range(model.graph.entity_count):
            heads = model.graph.tails_of(tail, relation ^ 1)
            assert known[tail] == (source[heads].max() if len(heads) else 0.0)


def test_votes_are_shares(model):
    links = links_of(model)
    votes = np.exp(links.evidence(one_hot(0, model.graph.entity_count), 0).vote) - 1e-4
    assert votes.min() >= -1e-6
    assert votes.max() <= 1 + 1e-5


def test_the_offset_of_a_relation_is_added(model):
    offsets = tuple(0.5 * relation for relation in range(model.graph.relation_count))
    links, evidence = links_of(model), links_of(model).evidence(one_hot(0, model.graph.entity_count), 1)
    more = links.copy(replace(links.weights, offsets=offsets)).log_odds(np.array([0]), 1, evidence)
    assert (more - links.log_odds(np.array([0]), 1, evidence)).numpy() == pytest.approx(0.5, abs=1e-5)


def test_a_graph_may_have_fewer_triples_than_entities():
    graph = Small(((38, 0, 39), (39, 2, 38)), (40,), 4).graph
    encoder = Encoder(Architecture(dim=8, heads=2), graph, torch.Generator().manual_seed(0))
    links = LinkPredictor(EmbeddingIndex.of(encoder), graph, SOME)
    assert min(map(len, links.scratch)) >= 40
    assert np.flatnonzero(links.evidence(one_hot(38, 40), 0).known).tolist() == [39]


def test_fewer_relations_are_cached_for_more_entities():
    assert _cache_size(15_000) == MOST_CACHED
    assert _cache_size(1_000_000) * 1_000_000 <= CACHE
    assert _cache_size(100_000_000) == LEAST_CACHED
