import numpy as np
import pytest
import torch
from torch import nn

import model_oracles
from halfgraph.model.architecture import Architecture
from halfgraph.model.projection import PROJECTIONS, xavier

NAMES = sorted(PROJECTIONS)
RELATIONS = torch.tensor([2, 0, 2, 5, 1, 0])


def made(name: str, dim: int = 4, initial: str = "xavier") -> nn.Module:
    architecture = Architecture(projection=name, dim=dim, initial=initial)
    return PROJECTIONS[name](architecture, 6, torch.Generator().manual_seed(0)).double()


def some_vectors(dim: int = 4) -> torch.Tensor:
    return torch.randn(len(RELATIONS), dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("name", NAMES)
def test_a_projection_is_its_formula(name: str) -> None:
    projection, vectors = made(name), some_vectors()
    stored = projection.weight.detach().numpy()
    for found, vector, relation in zip(projection(vectors, RELATIONS), vectors, RELATIONS.tolist(), strict=True):
        expected = model_oracles.PROJECTIONS[name](stored, relation, vector.numpy())
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_of_a_projection_is_the_difference_quotient(name: str) -> None:
    projection = made(name)

    def project(vectors: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(projection, {"weight": weight}, (vectors, RELATIONS))

    weight = projection.weight.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(project, (some_vectors().requires_grad_(), weight))


@pytest.mark.parametrize("name", NAMES)
def test_a_relation_and_its_inverse_have_a_parameter_each(name: str) -> None:
    projection = made(name)
    assert len(projection.weight) == 6
    vectors = some_vectors()[:1].expand(2, -1)
    forward, back = projection(vectors, torch.tensor([2, 2 ^ 1]))
    assert not torch.allclose(forward, back)


def test_a_bilinear_projection_can_begin_near_the_identity() -> None:
    xavier, identity = (made("bilinear", 64, initial) for initial in ("xavier", "identity"))
    torch.testing.assert_close(identity.weight.detach(), 0.3 * xavier.weight.detach() + torch.eye(64))
    vectors = some_vectors(64)
    cosines = torch.cosine_similarity(identity(vectors, RELATIONS), vectors)
    assert cosines.min() > 0.8


def test_xaviers_rule_holds_the_bound_of_its_last_two_sizes() -> None:
    weight = xavier((50, 10, 20), torch.Generator().manual_seed(0)).detach()
    bound = (6 / 30) ** 0.5
    assert weight.abs().max() <= bound
    assert weight.abs().max() > 0.99 * bound
    assert abs(weight.mean()) < 0.01
