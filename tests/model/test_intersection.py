from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import model_oracles
from halfgraph.model.architecture import Architecture
from halfgraph.model.intersection import INTERSECTIONS, Attention, Intersection, TypeNorm

TYPES = torch.tensor([2, 0, 2, 1])
MATCHES = torch.tensor([[1.0, 5.0, 450.0], [2.0, 2.0, 2.0], [0.0, 1.0, 3.0], [7.0, 1.0, 1.0]], dtype=torch.float64)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def operator_of(intersection: str, **settings: Any) -> Intersection:
    """An operator over three types whose every weight is random."""
    architecture = Architecture(intersection=intersection, dim=4, **{"heads": 2, **settings})
    operator = INTERSECTIONS[intersection](architecture, 3, torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        for place, parameter in enumerate(operator.parameters()):
            parameter.add_(drawn(*parameter.shape, seed=place))
    return operator


def attention(**settings: Any) -> Attention:
    operator = operator_of("attention", **settings)
    assert isinstance(operator, Attention)
    return operator


OPERATORS: dict[str, Callable[[], Intersection]] = {
    "simple-mean": lambda: operator_of("simple", centre="mean"),
    "simple-min": lambda: operator_of("simple"),
    "counted": lambda: operator_of("counted"),
    "gqe-mean": lambda: operator_of("gqe", centre="mean"),
    "gqe-min": lambda: operator_of("gqe"),
    "attention": attention,
    "attention-mean-1": lambda: attention(heads=1, centre="mean"),
    "attention-types": lambda: attention(heads=8, norm_by_type=True),
    "attention-none": lambda: attention(activation="none"),
}
NAMES = sorted(OPERATORS)


def weights_of(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}


def expected(name: str, operator: nn.Module, paths: Tensor, row: int) -> np.ndarray:
    """What the equations give for one row."""
    vectors, type_id = list(paths[row].numpy()), int(TYPES[row])
    if name == "counted":
        return model_oracles.counted([int(count) for count in MATCHES[row][: len(vectors)]], vectors)
    sort, _, rest = name.partition("-")
    psi = "mean" if rest.startswith("mean") else "min"
    if sort == "simple":
        return model_oracles.PSI[psi](vectors)
    if sort == "gqe":
        return model_oracles.gqe(weights_of(operator), psi, type_id, vectors)
    activation = "none" if rest == "none" else "sigmoid"
    return model_oracles.attention(weights_of(operator), psi, type_id, vectors, activation)


def test_every_operator_is_tested() -> None:
    assert {name.partition("-")[0] for name in NAMES} == set(INTERSECTIONS)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_an_intersection_is_its_equations(name: str, count: int) -> None:
    operator, paths = OPERATORS[name](), drawn(len(TYPES), count, 4)
    found = operator(paths, TYPES, MATCHES[:, :count]).detach().numpy()
    for row in range(len(TYPES)):
        np.testing.assert_allclose(found[row], expected(name, operator, paths, row), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_of_an_intersection_is_the_difference_quotient(name: str) -> None:
    operator = OPERATORS[name]()
    names = [each for each, _ in operator.named_parameters()]

    def intersect(paths: Tensor, *weights: Tensor) -> Tensor:
        given = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(operator, given, (paths, TYPES, MATCHES[:, :2]))

    weights = [parameter.detach().clone().requires_grad_() for parameter in operator.parameters()]
    assert torch.autograd.gradcheck(intersect, (drawn(len(TYPES), 2, 4).requires_grad_(), *weights))


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_paths_does_not_matter(name: str) -> None:
    operator, paths = OPERATORS[name](), drawn(len(TYPES), 3, 4)
    found = operator(paths, TYPES, MATCHES)
    for order in permutations(range(3)):
        again = operator(paths[:, order], TYPES, MATCHES[:, order])
        torch.testing.assert_close(again, found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_see_each_other(name: str) -> None:
    operator, paths = OPERATORS[name](), drawn(len(TYPES), 3, 4)
    found = operator(paths, TYPES, MATCHES)
    for row in range(len(TYPES)):
        one = slice(row, row + 1)
        torch.testing.assert_close(operator(paths[one], TYPES[one], MATCHES[one]), found[one], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("simple", "counted"))])
def test_every_type_has_weights_of_its_own(name: str) -> None:
    operator, paths = OPERATORS[name](), drawn(1, 2, 4).expand(3, -1, -1)
    found = operator(paths, torch.arange(3), MATCHES[:3, :2])
    assert not torch.allclose(found[0], found[1])
    assert not torch.allclose(found[1], found[2])


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_coefficients_sum_to_one_over_the_paths(heads: int) -> None:
    operator, paths = attention(heads=heads), drawn(len(TYPES), 5, 4)
    initial = operator.centre(paths)
    shares = operator.coefficients(paths, initial, TYPES)
    assert shares.shape == (len(TYPES), 5, heads)
    assert (shares > 0).all()
    torch.testing.assert_close(shares.sum(dim=1), torch.ones(len(TYPES), heads, dtype=torch.float64))
    for row in range(len(TYPES)):
        weight = operator.attention.detach().numpy()
        slow = model_oracles.shares(weight, int(TYPES[row]), initial[row].numpy(), list(paths[row].numpy()))
        np.testing.assert_allclose(shares[row].detach().numpy(), slow, rtol=0, atol=1e-10)


def test_the_only_path_has_all_the_attention() -> None:
    operator, paths = attention(), drawn(len(TYPES), 1, 4)
    shares = operator.coefficients(paths, paths[:, 0], TYPES)
    torch.testing.assert_close(shares, torch.ones_like(shares))


def test_large_logits_do_not_overflow() -> None:
    operator = attention()
    with torch.no_grad():
        operator.attention.mul_(1e6)
    assert torch.isfinite(operator(drawn(len(TYPES), 3, 4), TYPES, MATCHES)).all()


def test_a_path_counts_by_the_inverse_of_what_it_matches_as_wang_et_al_say() -> None:
    # The paper's example: one triple pattern matches 450 triples, the other 5.
    ends = torch.tensor([[[1.0], [0.0]]], dtype=torch.float64)
    found = operator_of("counted")(ends, torch.tensor([0]), torch.tensor([[450.0, 5.0]], dtype=torch.float64))
    torch.testing.assert_close(found, torch.tensor([[(1 / 450) / (1 / 450 + 1 / 5)]], dtype=torch.float64))


def test_a_norm_by_type_is_the_shared_one_where_the_types_agree() -> None:
    shared, by_type = TypeNorm(1, 4).double(), TypeNorm(3, 4).double()
    with torch.no_grad():
        shared.scale.copy_(drawn(1, 4))
        shared.shift.copy_(drawn(1, 4, seed=1))
        by_type.scale.copy_(shared.scale.expand(3, -1))
        by_type.shift.copy_(shared.shift.expand(3, -1))
    vectors = drawn(len(TYPES), 4)
    torch.testing.assert_close(shared(vectors, TYPES), by_type(vectors, TYPES), rtol=0, atol=1e-12)


def test_one_type_alone_may_have_a_norm_by_type() -> None:
    assert torch.isfinite(TypeNorm(1, 4).double()(drawn(2, 4), torch.tensor([0, 0]))).all()


def test_the_minimum_shares_its_gradient_among_equal_paths() -> None:
    paths = torch.tensor([[[1.0, 2.0], [1.0, 3.0]]], requires_grad=True)
    operator_of("simple").float()(paths, torch.tensor([0]), torch.ones(1, 2)).sum().backward()
    torch.testing.assert_close(paths.grad, torch.tensor([[[0.5, 1.0], [0.5, 0.0]]]))


def test_nan_on_one_path_is_nan_after_the_intersection() -> None:
    paths = drawn(len(TYPES), 3, 4)
    paths[1, 2, 3] = torch.nan
    for name in NAMES:
        intersected = OPERATORS[name]()(paths, TYPES, MATCHES)
        assert intersected.isnan().any(dim=1).tolist() == [False, True, False, False]
