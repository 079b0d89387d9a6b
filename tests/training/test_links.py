from dataclasses import replace

import numpy as np
import pytest
import torch

from halfgraph.errors import SettingError
from halfgraph.model.architecture import Architecture
from halfgraph.training.batches import Batches, OnTheFly
from halfgraph.training.links import Links, LinkSource, link_losses
from halfgraph.training.loss import batch_loss
from halfgraph.training.recipe import Recipe
from halfgraph.workload.sampling import Sampler
from small_models import SmallModel, small_model

RECIPE = Recipe(one_edge=4, longer=2, neighbourhoods=1, type_negatives=3, other_negatives=3, links=6)


@pytest.fixture(scope="module")
def model() -> SmallModel:
    return small_model(Architecture(dim=5, heads=2))


def drawn(model: SmallModel, count: int = 40, candidates: int = 100) -> Links:
    return LinkSource(model.graph).draw(count, candidates, np.random.default_rng(0))


def test_a_link_has_all_tails_of_its_head_and_relation(model):
    links = drawn(model)
    for row, (head, relation) in enumerate(zip(links.heads, links.relations, strict=True)):
        own = links.rows == row
        assert sorted(links.tails[own]) == model.graph.tails_of(int(head), int(relation)).tolist()
        assert links.shares[own].sum() == pytest.approx(1.0)


def test_every_head_and_relation_with_an_edge_can_be_drawn(model):
    heads, relations = model.graph.heads(), np.asarray(model.graph.relations)
    links = drawn(model, 5_000)
    assert set(zip(links.heads, links.relations, strict=True)) == set(zip(heads, relations, strict=True))


def test_in_a_large_graph_some_entities_stand_for_all_and_the_tails_are_among_them(model):
    links = drawn(model, 10, candidates=3)
    assert links.candidates is not None
    assert len(links.candidates) < model.graph.entity_count + 1
    for row, (head, relation) in enumerate(zip(links.heads, links.relations, strict=True)):
        tails = links.candidates[links.tails[links.rows == row]]
        assert sorted(tails) == model.graph.tails_of(int(head), int(relation)).tolist()


def test_the_loss_is_the_cross_entropy_of_the_tails_one_symbol_at_a_time(model):
    links, rng = drawn(model, 7), np.random.default_rng(1)
    vectors = torch.from_numpy(rng.normal(size=(7, 5)))
    entities = torch.from_numpy(rng.normal(size=(model.graph.entity_count, 5)))
    found = link_losses(links, vectors, entities, 0.5)
    for row in range(7):
        scores = [float(vectors[row] @ entity) / 0.5 for entity in entities]
        total = np.log(sum(np.exp(score) for score in scores))
        tails = model.graph.tails_of(int(links.heads[row]), int(links.relations[row]))
        assert float(found[row]) == pytest.approx(np.mean([total - scores[tail] for tail in tails]))


def test_the_gradient_of_the_loss_is_right(model):
    links = drawn(model, 3)
    vectors = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    entities = torch.randn(model.graph.entity_count, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v, e: link_losses(links, v, e, 0.7), (vectors, entities))


def test_links_add_to_the_loss_by_their_weight(model):
    source = OnTheFly(Sampler(model.graph, threads=1))
    batch = Batches(model.graph, source, RECIPE, 5).batch(0)
    without = float(batch_loss(model.encoder, replace(batch, links=None), RECIPE).detach())
    once, twice = (
        float(batch_loss(model.encoder, batch, replace(RECIPE, link_weight=weight)).detach()) for weight in (1.0, 2.0)
    )
    assert twice - without == pytest.approx(2 * (once - without))
    assert once > without


def test_a_recipe_without_links_draws_none_and_so_does_the_hinge(model):
    source = OnTheFly(Sampler(model.graph, threads=1))
    for recipe in (replace(RECIPE, links=0), replace(RECIPE, loss="hinge")):
        assert Batches(model.graph, source, recipe, 5).batch(0).links is None


def test_links_need_at_least_one_candidate():
    with pytest.raises(SettingError, match="link_candidates"):
        Recipe(link_candidates=0)
