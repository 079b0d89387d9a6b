from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from halfgraph.training.optimiser import Optimiser

Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
SHAPES = {"table": (7, 3), "weight": (2, 3, 3), "bias": (3,)}
RATES = [0.01 * (1 - step / 60) for step in range(60)]  # the learning rate of each step, falling as in training


def parameters(dtype: torch.dtype = torch.float32) -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return {name: nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for name, shape in SHAPES.items()}


def dense_gradients(step: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(100 + step)
    return {
        name: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for name, shape in SHAPES.items()
    }


def sparse_gradient(step: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A gradient of a few rows, one of them twice; now and then of none."""
    rows = [] if step % 7 == 3 else [step % 7, (3 * step + 1) % 7, step % 7]
    generator = torch.Generator().manual_seed(step)
    values = torch.randn(len(rows), 3, generator=generator, dtype=torch.float64).to(dtype)
    places = torch.tensor([rows], dtype=torch.int64)
    return torch.sparse_coo_tensor(places, values, SHAPES["table"], check_invariants=True)


def reference(make: Make, dtype: torch.dtype = torch.float32, sparse: bool = False) -> dict[str, nn.Parameter]:
    """Return the parameters after the same gradients by torch's own optimiser."""
    own = parameters(dtype)
    names = ["table"] if sparse else list(own)
    optimiser = make([own[name] for name in names])
    for step, rate in enumerate(RATES):
        for group in optimiser.param_groups:
            group["lr"] = rate
        gradients = {"table": sparse_gradient(step, dtype)} if sparse else dense_gradients(step, dtype)
        for name in names:
            own[name].grad = gradients[name]
        optimiser.step()
    return own


def add_gradients(own: dict[str, nn.Parameter], step: int, dtype: torch.dtype = torch.float32) -> None:
    """Add the gradients of a step to those that are there, as backward does."""
    for name, gradient in dense_gradients(step, dtype).items():
        add_gradient(own[name], gradient)


def add_gradient(parameter: nn.Parameter, gradient: Tensor) -> None:
    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_dense_steps_are_those_of_plain_adam(dtype: torch.dtype, within: float) -> None:
    expected = reference(lambda some: torch.optim.Adam(some, foreach=False), dtype)
    own = parameters(dtype)
    optimiser = Optimiser(own, set())
    for step, rate in enumerate(RATES):
        add_gradients(own, step, dtype)
        optimiser.step(rate)
    for name in SHAPES:
        torch.testing.assert_close(own[name], expected[name], rtol=0, atol=within)


@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-7)])
def test_steps_by_rows_are_those_of_torchs_sparse_adam(dtype: torch.dtype, within: float) -> None:
    # Within the 1e-8 that is added to the root: SparseAdam adds it before the correction of the second moment.
    expected = reference(lambda some: torch.optim.SparseAdam(some), dtype, sparse=True)["table"]
    own = parameters(dtype)
    optimiser = Optimiser(own, {"table"})
    for step, rate in enumerate(RATES):
        own["table"].grad = sparse_gradient(step, dtype)
        optimiser.step(rate)
    torch.testing.assert_close(own["table"], expected, rtol=0, atol=within)


def test_rows_without_a_gradient_stay_as_they_are() -> None:
    own = parameters()
    before = own["table"].detach().clone()
    optimiser = Optimiser(own, {"table"})
    own["table"].grad = sparse_gradient(1)
    optimiser.step(0.1)
    untouched = [0, 2, 3, 5, 6]
    assert torch.equal(own["table"][untouched], before[untouched])
    assert not optimiser.state()["first.table"][untouched].any()
    assert (own["table"][[1, 4]] != before[[1, 4]]).all()


def test_a_table_by_rows_and_dense_weights_go_side_by_side() -> None:
    dense = reference(lambda some: torch.optim.Adam(some, foreach=False))
    by_rows = reference(lambda some: torch.optim.SparseAdam(some), sparse=True)["table"]
    own = parameters()
    optimiser = Optimiser(own, {"table"})
    for step, rate in enumerate(RATES):
        assert own["table"].grad is None
        gradients = dense_gradients(step)
        own["table"].grad = sparse_gradient(step)
        for name in ("weight", "bias"):
            add_gradient(own[name], gradients[name])
        optimiser.step(rate)
    torch.testing.assert_close(own["table"], by_rows, rtol=0, atol=1e-5)
    for name in ("weight", "bias"):
        torch.testing.assert_close(own[name], dense[name], rtol=0, atol=1e-5)


def test_a_table_without_a_gradient_is_left_as_it_is() -> None:
    own = parameters()
    before = own["table"].detach().clone()
    optimiser = Optimiser(own, {"table"})
    optimiser.step(0.1)
    assert torch.equal(own["table"], before)


def test_gradients_are_cleared_and_those_of_matrices_keep_their_memory() -> None:
    own = parameters()
    optimiser = Optimiser(own, set())
    memory = own["weight"].grad
    add_gradients(own, 0)
    optimiser.step(0.1)
    assert own["weight"].grad is memory
    assert memory is not None
    assert not memory.any()
    assert own["table"].grad is own["bias"].grad is None


def test_a_missing_gradient_is_a_gradient_of_zero() -> None:
    with_zeros, without = parameters(), parameters()
    for own in (with_zeros, without):
        optimiser = Optimiser(own, set())
        for step in range(4):
            add_gradients(own, step)
            if step == 2:
                own["bias"].grad = torch.zeros(3) if own is with_zeros else None
            optimiser.step(0.1)
    for name in SHAPES:
        assert torch.equal(with_zeros[name], without[name])


@pytest.mark.parametrize("sparse", [set(), {"table"}])
def test_a_resumed_optimiser_takes_the_same_steps(sparse: set[str]) -> None:
    own = parameters()
    optimiser = Optimiser(own, sparse)

    def take(optimiser: Optimiser, own: dict[str, nn.Parameter], step: int) -> None:
        for name, gradient in dense_gradients(step).items():
            if name in sparse:
                own[name].grad = sparse_gradient(step)
            else:
                add_gradient(own[name], gradient)
        optimiser.step(RATES[step])

    for step in range(20):
        take(optimiser, own, step)
    again = {name: nn.Parameter(parameter.detach().clone()) for name, parameter in own.items()}
    other = Optimiser(again, sparse)
    other.load({name: tensor.clone() for name, tensor in optimiser.state().items()}, 20)
    for step in range(20, 40):
        take(optimiser, own, step)
        take(other, again, step)
    for name in SHAPES:
        assert torch.equal(own[name], again[name])
        assert torch.equal(optimiser.state()[f"second.{name}"], other.state()[f"second.{name}"])
