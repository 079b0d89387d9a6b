"""Features of a link, one symbol at a time."""

from math import exp, log

import numpy as np
import pytest
import torch

from halfgraph.model.architecture import Architecture
from halfgraph.model.projection import PROJECTIONS
from halfgraph.prediction import link_features
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_features import (
    CACHE,
    FEATURES,
    LEAST_CACHED,
    MOST_CACHED,
    NO_SHARE,
    SMOOTHING,
    TEMPERATURE,
    LinkFeatures,
    cache_size,
)
from small_links import features_of, random_complex
from small_models import SmallModel, small_model

COLUMN = {name: column for column, name in enumerate(FEATURES)}


@pytest.fixture(params=sorted(PROJECTIONS))
def model(request: pytest.FixtureRequest) -> SmallModel:
    return small_model(Architecture(projection=request.param, heads=2))


@pytest.fixture
def links(model: SmallModel) -> LinkFeatures:
    return LinkFeatures(EmbeddingIndex.of(model.encoder.float()), random_complex(model.graph), model.graph)


def column(links: LinkFeatures, name: str, head: int, relation: int) -> np.ndarray:
    """A feature of the links from a head to every entity, in this direction."""
    return features_of(links, head, relation, np.arange(links.graph.entity_count))[0][:, COLUMN[name]]


def test_the_cosine_is_a_log_softmax_over_all_tails(model, links, monkeypatch):
    monkeypatch.setattr(link_features, "UNIFORM", 5_000)  # so many that every entity is among them
    vectors = links.vectors
    for head, relation in ((3, 2), (0, 1)):
        with torch.no_grad():
            projected = model.encoder.projection(vectors[head : head + 1], torch.tensor([relation]))
        logits = torch.cosine_similarity(projected, vectors) / TEMPERATURE
        expected = torch.log_softmax(logits, dim=0).numpy()
        assert column(links, "cosine", head, relation) == pytest.approx(expected, abs=1e-3)


def test_the_score_of_complex_is_a_log_softmax_over_unknown_tails(links, monkeypatch):
    monkeypatch.setattr(link_features, "UNIFORM", 5_000)
    model = links.complex
    entities, relations = (
        table[:, :3].numpy() + 1j * table[:, 3:].numpy() for table in (model.entities, model.relations)
    )
    for head, relation in ((3, 2), (0, 1)):
        scores = [float((entities[head] * relations[relation] * tail.conj()).sum().real) for tail in entities]
        known = set(links.graph.tails_of(head, relation).tolist())
        normaliser = log(sum(exp(score) for tail, score in enumerate(scores) if tail not in known))
        expected = [score - normaliser for score in scores]
        assert column(links, "complex", head, relation) == pytest.approx(expected, abs=1e-3)


def test_normalisers_are_estimated_on_frequent_tails_and_some_others(links, monkeypatch):
    heads = np.arange(links.graph.entity_count)
    monkeypatch.setattr(link_features, "UNIFORM", 5_000)
    whole = [own.numpy() for own in links.normalisers(0, heads)]
    monkeypatch.setattr(link_features, "FREQUENT", 6)
    monkeypatch.setattr(link_features, "UNIFORM", 6)
    links.candidates.cache_clear()
    assert len(links.candidates(0)[0]) <= 12
    for estimated, expected in zip(links.normalisers(0, heads), whole, strict=True):
        assert abs(float(np.mean(estimated.numpy() - expected))) < 1.0
        assert not np.allclose(estimated.numpy(), expected)


def test_a_vote_is_the_share_of_neighbours_that_have_the_link(links):
    graph, near = links.graph, links.neighbours
    for head, relation in ((0, 0), (3, 1), (5, 4)):
        voters = [
            (int(other), float(nearness))
            for other, nearness in zip(near.ids[head], near.nearness[head], strict=True)
            if other >= 0 and len(graph.tails_of(int(other), relation))
        ]
        total = sum(nearness for _, nearness in voters) + SMOOTHING
        expected = [
            sum(nearness for other, nearness in voters if tail in graph.tails_of(other, relation)) / total
            for tail in range(graph.entity_count)
        ]
        assert column(links, "vote", head, relation) == pytest.approx(expected, abs=1e-5)


def test_features_of_a_head_count_its_triples_and_those_of_its_neighbours(links):
    graph, near, count = links.graph, links.neighbours, links.graph.entity_count
    for relation in range(graph.relation_count):
        features = links.head_features(relation, np.arange(count))
        known = [len(graph.tails_of(head, relation)) for head in range(count)]
        for head in range(count):
            pairs = [(int(i), float(n)) for i, n in zip(near.ids[head], near.nearness[head], strict=True) if i >= 0]
            have = sum(n for i, n in pairs if known[i])
            own = {name: features[head, place] for name, place in COLUMN.items()}
            assert own["log_known"] == pytest.approx(log(1 + known[head]), abs=1e-5)
            share = have / sum(n for _, n in pairs) if pairs else 0.0
            assert own["neighbour_share"] == pytest.approx(log(share + NO_SHARE), abs=1e-4)
            at_least, more = (sum(number >= known[head] + extra for number in known) for extra in (0, 1))
            further = log((more + 0.5) / (at_least + 1)) if known[head] else 0.0
            assert own["further"] == pytest.approx(further, abs=1e-5)


def test_fewer_relations_are_cached_for_more_entities():
    assert cache_size(100) == MOST_CACHED
    assert LEAST_CACHED < cache_size(100_000) <= CACHE // 100_000
    assert cache_size(100_000_000) == LEAST_CACHED
