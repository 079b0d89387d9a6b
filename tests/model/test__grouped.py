import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from halfgraph.model._grouped import (
    THREADED_ROWS,
    TRANSPOSED_ROWS,
    Groups,
    grouped_matmul,
    plain_grouped_matmul,
)
from halfgraph.model.threads import torch_threads

# Groups in any order, some empty; one group; one row; none.
GROUPINGS = [([2, 0, 2, 4, 0, 2], 5), ([0, 0, 0], 1), ([3, 3, 3, 3], 4), ([1], 3), ([], 2), ([4, 3, 2, 1, 0], 5)]


def made(groups: list[int], group_count: int, inner: int = 3, outer: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Random rows and matrices in double precision, and the groups."""
    generator = torch.Generator().manual_seed(len(groups))
    rows = torch.randn(len(groups), inner, generator=generator, dtype=torch.float64)
    weight = torch.randn(group_count, inner, outer, generator=generator, dtype=torch.float64)
    return rows, weight, torch.tensor(groups, dtype=torch.int64)


def grouped(rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
    """Each row times the matrix of its group."""
    return grouped_matmul(rows, weight, Groups.of(groups))


def plain(rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
    """The same by one product of torch for each group."""
    return plain_grouped_matmul(rows, weight, Groups.of(groups))


def gathered(rows: Tensor, weight: Tensor, groups: Tensor) -> Tensor:
    """The same by gathering a matrix for each row."""
    return torch.einsum("nd,nde->ne", rows, weight[groups])


def gradients(
    product: object, rows: Tensor, weight: Tensor, groups: Tensor, before: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The gradients of a sum of sines of the products; `before` is what the weight has gathered already."""
    rows, weight = rows.clone().requires_grad_(), weight.clone().requires_grad_()
    weight.grad = None if before is None else before.clone()
    product(rows, weight, groups).sin().sum().backward()  # type: ignore[operator]
    assert rows.grad is not None
    assert weight.grad is not None
    return rows.grad, weight.grad


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(1, 4), st.integers(1, 4))
def test_each_row_is_multiplied_by_its_own_matrix(groups: list[int], inner: int, outer: int) -> None:
    rows, weight, which = made(groups, 5, inner, outer)
    found = grouped(rows, weight, which)
    assert found.shape == (len(groups), outer)
    for place, group in enumerate(groups):
        np.testing.assert_allclose(found[place], rows[place].numpy() @ weight[group].numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("inner", [1, 8, 139])
@pytest.mark.parametrize("outer", [7, 8, 128, 139, 272])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_number_of_columns_is_multiplied(inner: int, outer: int, dtype: torch.dtype) -> None:
    """A processor's registers hold some columns of a matrix; what is left over is done in smaller pieces."""
    rows, weight, which = (part.to(dtype) for part in made([1, 0, 1, 1, 2], 3, inner, outer))
    which = which.long()
    near = {"rtol": 1e-4, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 0, "atol": 1e-10}
    torch.testing.assert_close(grouped(rows, weight, which), gathered(rows, weight, which), **near)
    found, expected = (gradients(product, rows, weight, which) for product in (grouped, gathered))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **near)


@pytest.mark.parametrize(("groups", "count"), GROUPINGS)
def test_the_gradient_is_the_difference_quotient(groups: list[int], count: int) -> None:
    rows, weight, which = made(groups, count)
    assert torch.autograd.gradcheck(grouped, (rows.requires_grad_(), weight.requires_grad_(), which))
    assert torch.autograd.gradcheck(grouped, (rows.detach(), weight, which))
    assert torch.autograd.gradcheck(grouped, (rows, weight.detach(), which))


@pytest.mark.parametrize(("groups", "count"), GROUPINGS)
@pytest.mark.parametrize("with_gradient", [False, True])
def test_the_gradient_is_that_of_gathered_matrices_with_and_without_one_there_already(
    groups: list[int], count: int, with_gradient: bool
) -> None:
    rows, weight, which = made(groups, count)
    before = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    start = before if with_gradient else None
    for one, other in zip(
        gradients(grouped, rows, weight, which, start),
        gradients(gathered, rows, weight, which, start),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("groups", "count"), GROUPINGS)
def test_the_native_product_and_its_gradients_are_those_of_the_plain_twin(groups: list[int], count: int) -> None:
    rows, weight, which = made(groups, count)
    torch.testing.assert_close(grouped(rows, weight, which), plain(rows, weight, which), rtol=0, atol=1e-12)
    for one, other in zip(gradients(grouped, rows, weight, which), gradients(plain, rows, weight, which), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_an_existing_gradient_is_added_to_in_place() -> None:
    rows, weight, which = made([1, 0, 1], 2)
    weight.requires_grad_().grad = torch.ones_like(weight)
    kept = weight.grad
    grouped(rows, weight, which).sum().backward()
    assert weight.grad is kept
    assert not torch.equal(kept, torch.ones_like(weight))


@pytest.mark.parametrize("with_gradient", [False, True])
def test_several_products_with_one_weight_add_up(with_gradient: bool) -> None:
    rows, weight, which = made([1, 0, 2, 1], 3, inner=3, outer=3)

    def twice(product: object) -> object:
        return lambda rows, weight, groups: product(product(rows, weight, groups), weight, groups.flip(0))  # type: ignore[operator]

    start = torch.ones_like(weight) if with_gradient else None
    for one, other in zip(
        gradients(twice(grouped), rows, weight, which, start),
        gradients(twice(gathered), rows, weight, which, start),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_a_part_of_a_weight_gives_its_gradient_to_the_whole() -> None:
    rows, weight, which = made([1, 0, 1], 2, inner=4)

    def half(product: object) -> object:
        return lambda rows, weight, groups: product(rows[:, :2], weight.split(2, dim=1)[1], groups)  # type: ignore[operator]

    for one, other in zip(
        gradients(half(grouped), rows, weight, which, torch.ones_like(weight)),
        gradients(half(gathered), rows, weight, which, torch.ones_like(weight)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_an_expanded_gradient_with_strides_of_zero_is_accepted() -> None:
    rows, weight, which = made([1, 0, 1], 2)
    rows, weight = rows.requires_grad_(), weight.requires_grad_()
    grouped(rows, weight, which).sum().backward()  # the gradient of a sum has strides of zero
    summed = gathered(rows, weight, which).sum()
    torch.testing.assert_close(rows.grad, torch.autograd.grad(summed, rows)[0])


def test_float32_is_within_rounding_of_float64() -> None:
    rows, weight, which = made([0, 1, 2, 1] * 8, 3, inner=16, outer=16)
    found = grouped(rows.float(), weight.float(), which)
    torch.testing.assert_close(found.double(), gathered(rows, weight, which), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("inner", "outer"), [(8, 8), (7, 5), (3, 1), (1, 9)])
def test_groups_of_all_sizes_in_any_number_of_threads(threads: int, inner: int, outer: int) -> None:
    sizes = [*range(1, 14), TRANSPOSED_ROWS - 1, TRANSPOSED_ROWS, 3 * TRANSPOSED_ROWS]
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes)).tolist()
    assert len(groups) > THREADED_ROWS
    rows, weight, which = made(groups, len(sizes), inner, outer)
    with torch_threads(threads):
        torch.testing.assert_close(grouped(rows, weight, which), gathered(rows, weight, which))
        for one, other in zip(
            gradients(grouped, rows, weight, which), gradients(gathered, rows, weight, which), strict=True
        ):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_nan_stays_nan_in_its_own_row() -> None:
    rows, weight, which = made([0, 1, 0, 0, 0, 0], 2)
    rows[2, 1] = torch.nan
    found = grouped(rows, weight, which)
    assert torch.isnan(found).any(dim=1).tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("inner", [4, 7, 128])
def test_a_row_has_the_same_product_whatever_rows_are_beside_it(inner: int) -> None:
    rows, weight, which = made([0] * 11, 1, inner, 6)
    rows, weight = rows.float(), weight.float()
    together = grouped(rows, weight, which)
    for place in range(len(rows)):
        assert torch.equal(grouped(rows[place : place + 1], weight, which[:1])[0], together[place])


@pytest.mark.parametrize(("groups", "group_count"), GROUPINGS)
def test_groups_of_rows_that_are_repeated(groups: list[int], group_count: int) -> None:
    _, weight, which = made(groups, group_count)
    rows = torch.randn(3 * len(groups), 3, dtype=torch.float64)
    found = grouped_matmul(rows, weight, Groups.of(which).repeat(3))
    torch.testing.assert_close(found, gathered(rows, weight, which.repeat_interleave(3)))


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        (torch.zeros(2, 3), Groups.of(torch.tensor([0, 1]))),  # another dtype than the matrices
        (torch.zeros(2, 4, dtype=torch.float64), Groups.of(torch.tensor([0, 1]))),
        (torch.zeros(4, 3, dtype=torch.float64), Groups.of(torch.tensor([0, 1]))),
        (torch.zeros(2, 3, dtype=torch.float64), Groups.of(torch.tensor([0, 2]))),
    ],
)
def test_sizes_that_would_write_out_of_bounds_are_refused(rows: Tensor, groups: Groups) -> None:
    with pytest.raises(AssertionError):
        grouped_matmul(rows, torch.zeros(2, 3, 3, dtype=torch.float64), groups)
