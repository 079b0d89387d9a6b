"""ComplEx against complex numbers, one after another."""

import numpy as np
import pytest
import torch

from halfgraph.model.complex import ComplEx, conjugate, product

ENTITIES, RELATIONS, RANK = 5, 4, 3


@pytest.fixture
def model() -> ComplEx:
    return ComplEx.new(ENTITIES, RELATIONS, RANK, torch.Generator().manual_seed(0))


def numbers(row: torch.Tensor) -> list[complex]:
    return [complex(row[k], row[RANK + k]) for k in range(RANK)]


def score(model: ComplEx, head: int, relation: int, tail: int) -> float:
    """Re(<head, relation, conjugate of tail>), one dimension after another."""
    ends = (numbers(model.entities[head]), numbers(model.relations[relation]), numbers(model.entities[tail]))
    return sum((h * r * t.conjugate()).real for h, r, t in zip(*ends, strict=True))


@pytest.mark.parametrize("relation", range(RELATIONS))
def test_tail_and_head_queries_give_the_score_of_every_triple(model, relation):
    every = torch.arange(ENTITIES)
    tails = model.tail_queries(every, relation) @ model.entities.t()
    heads = model.head_queries(every, relation) @ model.entities.t()
    expected = np.array([[score(model, h, relation, t) for t in range(ENTITIES)] for h in range(ENTITIES)])
    assert tails.numpy() == pytest.approx(expected, abs=1e-12)
    assert heads.t().numpy() == pytest.approx(expected, abs=1e-12)


def test_scores_are_not_symmetric_in_head_and_tail(model):
    every = torch.arange(ENTITIES)
    tails = model.tail_queries(every, 0) @ model.entities.t()
    assert not torch.allclose(tails, tails.t(), atol=1e-12)


def test_products_and_conjugates_are_those_of_complex_numbers(model):
    left, right = model.entities[:2], model.relations[:2]
    for row in range(2):
        expected = [a * b for a, b in zip(numbers(left[row]), numbers(right[row]), strict=True)]
        assert numbers(product(left, right)[row]) == pytest.approx(expected, abs=1e-12)
        assert numbers(conjugate(left)[row]) == [a.conjugate() for a in numbers(left[row])]


def test_the_same_seed_gives_the_same_weights_and_another_one_others(model):
    again, other = (ComplEx.new(ENTITIES, RELATIONS, RANK, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert torch.equal(model.entities, again.entities)
    assert torch.equal(model.relations, again.relations)
    assert not torch.equal(model.entities, other.entities)
