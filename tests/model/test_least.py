import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from halfgraph.model.least import least
from halfgraph.model.threads import SHARED, torch_threads


def with_gradient(of_parts: object, parts: Tensor) -> tuple[Tensor, Tensor]:
    """The outcome, and the gradient of a sum of its sines."""
    parts = parts.clone().requires_grad_()
    found = of_parts(parts)  # type: ignore[operator]
    found.sin().sum().backward()
    assert parts.grad is not None
    return found.detach(), parts.grad


@given(st.integers(0, 5), st.integers(1, 4), st.integers(1, 9), st.sampled_from([torch.float32, torch.float64]))
def test_it_is_the_least_of_each_number_and_those_that_have_it_share_the_gradient(
    rows: int, count: int, dim: int, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(rows)
    parts = torch.randint(0, 3, (rows, count, dim), generator=generator).to(dtype)  # many are equal
    for found, expected in zip(with_gradient(least, parts), with_gradient(lambda p: p.amin(dim=1), parts), strict=True):
        torch.testing.assert_close(found, expected)


def test_its_gradient_is_right() -> None:
    parts = torch.randn(4, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(least, (parts,))
    assert torch.autograd.gradcheck(least, (parts.detach().transpose(0, 1).requires_grad_(),))


def test_what_is_no_number_stays_so() -> None:
    for place in range(3):
        parts = torch.zeros(1, 3, 2)
        parts[0, place, 1] = torch.nan
        assert least(parts).isnan().tolist() == [[False, True]]


@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads_gives_the_same(threads: int) -> None:
    parts = torch.randn(SHARED + 1, 2, 8, generator=torch.Generator().manual_seed(0))
    with torch_threads(1):
        alone = with_gradient(least, parts)
    with torch_threads(threads):
        together = with_gradient(least, parts)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))
