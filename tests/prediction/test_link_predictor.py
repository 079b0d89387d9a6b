import numpy as np
import pytest
import torch

from halfgraph.model.architecture import Architecture
from halfgraph.model.projection import PROJECTIONS
from halfgraph.prediction.fitting import FEATURES
from halfgraph.prediction.link_predictor import LEAST_REMEMBERED, MOST_REMEMBERED, ROOM, Edges, Scale, _remembered, one
from small_models import SmallModel, small_model

SOME = Scale(
    bias=-2.0,
    cosine=3.0,
    back=1.5,
    level=0.3,
    vote=0.2,
    rules=0.15,
    popularity=0.1,
    ends=-0.3,
    often=0.25,
    breadth=0.4,
    asked=1.7,
)


@pytest.fixture(params=sorted(PROJECTIONS))
def model(request: pytest.FixtureRequest) -> SmallModel:
    return small_model(Architecture(projection=request.param, heads=2))


def edges_of(model: SmallModel, scale: Scale = SOME) -> Edges:
    return Edges.of(model.encoder.float(), model.graph, scale)


def test_cosines_of_both_directions_are_those_of_the_vectors(model):
    edges, head, relation = edges_of(model), 3, 2
    features = edges.features(head, relation)
    vectors = edges.vectors
    with torch.no_grad():
        ids = torch.full((len(vectors),), relation)
        there = model.encoder.projection(vectors[head : head + 1], ids[:1])
        back = model.encoder.projection(vectors, ids ^ 1)
    assert features[:, 0] == pytest.approx(torch.cosine_similarity(there, vectors).numpy(), abs=1e-5)
    assert features[:, 1] == pytest.approx(torch.cosine_similarity(back, vectors[head : head + 1]).numpy(), abs=1e-5)


def test_log_odds_are_the_weighted_sum_of_the_features(model):
    edges = edges_of(model)
    weights = np.array([getattr(SOME, name) for name in FEATURES])
    for head, relation in ((0, 0), (3, 1), (5, 2)):
        evidence = edges.evidence(one(head, len(edges.vectors)), relation)
        found = edges.log_odds(np.array([head]), relation, evidence, asked=True)[0].numpy()
        assert found == pytest.approx(edges.features(head, relation) @ weights + SOME.bias, abs=1e-4)
        some = np.array([1, 4])
        of_some = edges.log_odds(np.array([head]), relation, evidence, some, asked=True)[0].numpy()
        assert of_some == pytest.approx(found[some], abs=1e-5)
        assert edges.probability(head, relation, 4, asked=True) == pytest.approx(1 / (1 + np.exp(-found[4])), abs=1e-5)


def test_who_asks_supposes_an_edge_only_where_none_is_known(model):
    edges = edges_of(model)
    for head in range(model.graph.entity_count):
        for relation in range(model.graph.relation_count):
            evidence = edges.evidence(one(head, len(edges.vectors)), relation)
            asked = edges.log_odds(np.array([head]), relation, evidence, asked=True)
            more = asked - edges.log_odds(np.array([head]), relation, evidence)
            expected = 0.0 if len(model.graph.tails_of(head, relation)) else SOME.asked
            assert more.numpy() == pytest.approx(expected, abs=1e-5)


def test_a_tail_counts_by_how_many_edges_lead_to_it(model):
    edges, count = edges_of(model), model.graph.entity_count
    for relation in range(model.graph.relation_count):
        share, any_, often = edges.popularity(relation)
        counts = np.array([len(model.graph.tails_of(tail, relation ^ 1)) for tail in range(count)])
        assert any_.tolist() == (counts > 0).tolist()
        assert np.expm1(often) == pytest.approx(counts, abs=1e-4)
        assert np.exp(share) == pytest.approx(counts / max(counts.sum(), 1), abs=1e-4)


def test_heads_together_are_as_heads_alone(model):
    edges = edges_of(model)
    evidence = edges.evidence(np.full(len(edges.vectors), 0.5, np.float32), 1)
    heads = np.array([2, 0, 6])
    together = edges.log_odds(heads, 1, evidence)
    for place, head in enumerate(heads):
        alone = edges.log_odds(np.array([head]), 1, evidence)[0]
        assert together[place].numpy() == pytest.approx(alone.numpy(), abs=1e-5)


def test_known_edges_pass_on_the_best_score_of_their_heads(model):
    edges, source = edges_of(model), np.linspace(0.1, 1.0, model.graph.entity_count).astype(np.float32)
    for relation in range(model.graph.relation_count):
        passed = edges.evidence(source, relation).passed
        for tail in range(model.graph.entity_count):
            heads = model.graph.tails_of(tail, relation ^ 1)
            assert passed[tail] == (source[heads].max() if len(heads) else 0.0)


def test_votes_are_shares_of_the_heads_that_are_alike(model):
    edges = edges_of(model)
    votes = np.exp(edges.evidence(one(0, model.graph.entity_count), 0).vote) - 1e-4
    assert votes.min() >= -1e-6
    assert votes.max() <= 1 + 1e-5


def test_a_scale_survives_json():
    import json

    scale = Scale(bias=1.5, vote=2.0, offsets=(0.5, -1.0))
    again = Scale.from_dict(json.loads(json.dumps(scale.to_dict())))
    assert again == scale
    assert again.offset(1) == -1.0
    assert Scale().offset(1) == 0.0


def test_less_is_remembered_of_relations_where_there_are_more_entities():
    assert _remembered(15_000) == MOST_REMEMBERED
    assert _remembered(1_000_000) * 1_000_000 <= ROOM
    assert _remembered(100_000_000) == LEAST_REMEMBERED
