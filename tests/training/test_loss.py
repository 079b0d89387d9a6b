from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.training.batches import Batch, Batches, OnTheFly
from halfgraph.training.loss import batch_loss, pair_losses
from halfgraph.training.recipe import Recipe
from halfgraph.workload.sampling import Sampler
from model_oracles import Model, hinge, level, pooled, soft_hinge, softmax
from small_models import SmallModel, small_model

CGA = Architecture("bilinear", "attention", "min", heads=2)
PLAIN = Recipe(
    one_edge=3, longer=2, neighbourhoods=2, one_edge_weight=2.0, longer_weight=0.5, intersection_weight=3.0,
    neighbourhood_weight=0.25, type_negatives=4, other_negatives=3, hard_negatives=0, margin=0.7, temperature=0.3,
    links=0,
)  # fmt: skip
RECIPES = {
    "softmax": PLAIN,
    "softmax-hard": replace(PLAIN, hard_negatives=2, hard_weight=0.4, hard_pooled_weight=0.7),
    "hinge": replace(PLAIN, loss="hinge"),
    "hinge-hard": replace(PLAIN, loss="hinge", hard_negatives=2, hard_weight=0.4),
}


@pytest.fixture(scope="module")
def model() -> SmallModel:
    return small_model(CGA, dim=4)


def batch_of(model: SmallModel, recipe: Recipe, step: int = 0) -> Batch:
    return Batches(model.graph, OnTheFly(Sampler(model.graph, threads=1)), recipe, 5).batch(step)


def expected_loss(oracle: Model, batch: Batch, recipe: Recipe) -> float:
    """Eq. 13, question by question: each with its weight, its ordinary and its hard negatives."""
    queries = [some.query(row) for some in batch.questions for row in range(len(some))]
    total = pooled_loss(oracle, batch, recipe)
    for place, query in enumerate(queries):
        vector, answer = oracle.vector(query), oracle.entity(int(batch.answers[place]))
        hard = [oracle.entity(int(other)) for other in batch.hard_negatives[place] if other >= 0]
        if recipe.loss == "hinge":
            negatives = [oracle.entity(int(other)) for other in batch.negatives[place] if other >= 0]
            loss = hinge(vector, answer, negatives, recipe.margin)
            loss += recipe.hard_weight * hinge(vector, answer, hard, recipe.margin)
        else:
            candidates = [*batch.shared.of_type[batch.shared.groups[place]], *batch.shared.of_any]
            known = batch.shared.known[place]
            negatives = [oracle.entity(int(other)) for i, other in enumerate(candidates) if not known[i]]
            loss = softmax(vector, answer, negatives, recipe.temperature)
            loss += recipe.hard_weight * soft_hinge(vector, answer, hard, recipe.temperature)
        total += float(batch.weights[place]) * loss
    return total


def pooled_loss(oracle: Model, batch: Batch, recipe: Recipe) -> float:
    """The term that makes scores of different questions comparable, structure by structure."""
    weight, begin, total = recipe.pooled_weight, 0, 0.0
    if recipe.loss == "hinge":
        return 0.0
    for some in batch.questions:
        vectors = [oracle.vector(some.query(row)) for row in range(len(some))]
        levels = []
        for place, vector in enumerate(vectors, start=begin):
            candidates = batch.shared.of_type[batch.shared.groups[place]]
            wrong = [
                oracle.entity(int(other)) for i, other in enumerate(candidates) if not batch.shared.known[place][i]
            ]
            levels.append(level(vector, wrong, len(candidates), recipe.temperature))
        hard_levels = []
        for place, vector in enumerate(vectors, start=begin):
            hard = [oracle.entity(int(other)) for other in batch.hard_negatives[place] if other >= 0]
            hard_levels.append(level(vector, hard, max(1, len(hard)), recipe.temperature))
        for place, vector in enumerate(vectors, start=begin):
            answer = oracle.entity(int(batch.answers[place]))
            loss = weight * pooled(vector, answer, levels, recipe.temperature)
            hard_weight = recipe.hard_weight * recipe.hard_pooled_weight
            loss += hard_weight * pooled(vector, answer, hard_levels, recipe.temperature)
            total += float(batch.weights[place]) * loss
        begin += len(some)
    return total


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_the_loss_is_the_weighted_sum_of_the_equations(model: SmallModel, recipe: Recipe) -> None:
    for step in range(2):
        batch = batch_of(model, recipe, step)
        found = float(batch_loss(model.encoder, batch, recipe).detach())
        # The weights of a batch are float32 on both sides; all else is double.
        assert found == pytest.approx(expected_loss(model.oracle, batch, recipe), abs=1e-10)


class _Loss(torch.nn.Module):
    """The loss of a batch as a module, so that its weights can be given."""

    def __init__(self, encoder: Encoder, batch: Batch, recipe: Recipe) -> None:
        super().__init__()
        self.encoder, self.batch, self.recipe = encoder, batch, recipe

    def forward(self) -> Tensor:
        with self.encoder.entities.normalised_once():
            return batch_loss(self.encoder, self.batch, self.recipe)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_the_gradient_of_the_loss_is_the_difference_quotient(recipe: Recipe) -> None:
    small = small_model(CGA, dim=3)
    few = replace(recipe, one_edge=2, longer=1, neighbourhoods=1)
    module = _Loss(small.encoder, batch_of(small, few), few)
    names = [f"encoder.{name}" for name, _ in small.encoder.named_parameters()]

    def loss(*weights: Tensor) -> Tensor:
        return torch.func.functional_call(module, dict(zip(names, weights, strict=True)), ())

    weights = tuple(parameter.detach().clone().requires_grad_() for parameter in small.encoder.parameters())
    assert torch.autograd.gradcheck(loss, weights, fast_mode=True)


def test_a_batch_has_the_loss_and_gradients_of_its_structures_one_by_one(model: SmallModel) -> None:
    recipe = RECIPES["softmax-hard"]
    batch = batch_of(model, recipe)
    whole = batch_loss(model.encoder, batch, recipe)
    parameters = list(model.encoder.parameters())
    expected = torch.autograd.grad(whole, parameters)
    total: Any = 0.0
    summed = [torch.zeros_like(parameter) for parameter in parameters]
    begin = 0
    for some in batch.questions:
        rows = slice(begin, begin + len(some))
        begin += len(some)
        columns = ("answers", "weights", "negatives", "hard_negatives")
        shared = replace(batch.shared, groups=batch.shared.groups[rows], known=batch.shared.known[rows])
        alone = replace(
            batch, questions=[some], shared=shared, **{name: getattr(batch, name)[rows] for name in columns}
        )
        loss = batch_loss(model.encoder, alone, recipe)
        total = total + float(loss.detach())
        for place, gradient in enumerate(torch.autograd.grad(loss, parameters, allow_unused=True)):
            if gradient is not None:
                summed[place] += gradient
    assert total == pytest.approx(float(whole.detach()), abs=1e-10)
    for one, other in zip(summed, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_an_existing_gradient_is_added_to(model: SmallModel) -> None:
    recipe = RECIPES["hinge-hard"]
    batch = batch_of(model, recipe)
    parameters = dict(model.encoder.named_parameters())
    fresh = torch.autograd.grad(batch_loss(model.encoder, batch, recipe), list(parameters.values()))
    for parameter in parameters.values():
        parameter.grad = torch.ones_like(parameter)
    batch_loss(model.encoder, batch, recipe).backward()
    for parameter, gradient in zip(parameters.values(), fresh, strict=True):
        torch.testing.assert_close(parameter.grad, gradient + 1, rtol=0, atol=1e-12)
        parameter.grad = None


def test_a_structure_weighs_what_the_recipe_says_however_many_its_questions(model: SmallModel) -> None:
    batch = batch_of(model, PLAIN)
    begin = 0
    for some in batch.questions:
        weight = float(batch.weights[begin : begin + len(some)].sum())
        begin += len(some)
        expected = (
            2.0 if some.structure.relation_count == 1 else 0.5 * (3.0 if some.structure.has_intersection else 1.0)
        )
        if some.structure.relation_count > 3:
            expected = 0.25
        assert weight == pytest.approx(expected)


def test_a_question_without_negatives_has_no_loss(model: SmallModel) -> None:
    recipe = replace(PLAIN, loss="hinge")
    batch = batch_of(model, recipe)
    vectors = torch.ones(len(batch), 4, dtype=torch.float64) / 2
    negatives = np.full((len(batch), 2), -1, np.int32)
    negatives[1, 0] = 3
    none = np.full((len(batch), 0), -1, np.int32)
    losses = pair_losses(model.encoder, replace(batch, negatives=negatives, hard_negatives=none), vectors, recipe)
    assert losses[0] == 0
    assert losses[1] > 0
    assert not losses[2:].any()


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_a_batch_without_any_hard_negative_does(model: SmallModel, loss: Any) -> None:
    recipe = replace(PLAIN, loss=loss, hard_negatives=2, hard_weight=0.4)
    batch = batch_of(model, recipe)
    none = replace(batch, hard_negatives=np.full_like(batch.hard_negatives, -1))
    plain = replace(recipe, hard_negatives=0)
    found = batch_loss(model.encoder, none, recipe)
    torch.testing.assert_close(found, batch_loss(model.encoder, none, plain))
    found.backward()
    model.encoder.zero_grad(set_to_none=True)


def test_answers_among_the_candidates_are_not_held_against_a_question(model: SmallModel) -> None:
    batch = batch_of(model, PLAIN)
    nothing_wrong, all_wrong = (
        replace(batch, shared=replace(batch.shared, known=np.full_like(batch.shared.known, known)))
        for known in (True, False)
    )
    least, usual, most = (
        float(batch_loss(model.encoder, some, PLAIN).detach()) for some in (nothing_wrong, batch, all_wrong)
    )
    assert least == 0
    assert 0 < usual < most
