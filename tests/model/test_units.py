from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from halfgraph.model.entities import Entities
from halfgraph.model.threads import SHARED, torch_threads
from halfgraph.model.units import cosines, normalised

Made = tuple[Tensor, ...]


def found(work: Callable[..., Tensor], *given: Tensor) -> Made:
    """What a function gives, and the gradient of a sum of sines of it."""
    leaves = [tensor.clone().requires_grad_() for tensor in given]
    value = work(*leaves)
    value.sin().sum().backward()
    return value.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)


def same(some: Made, others: Made) -> None:
    for one, other in zip(some, others, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "others"), [(0, 2), (3, 0), (3, 1), (SHARED + 1, 3)])
def test_cosines_are_products_of_rows_with_others_of_their_own(threads: int, rows: int, others: int) -> None:
    torch.manual_seed(0)
    given = torch.randn(rows, 5, dtype=torch.float64), torch.randn(rows, others, 5, dtype=torch.float64)
    with torch_threads(threads):
        same(found(cosines, *given), found(lambda one, many: torch.einsum("nd,nkd->nk", one, many), *given))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, SHARED + 1])
def test_rows_at_length_one(threads: int, rows: int) -> None:
    torch.manual_seed(0)
    given = torch.randn(rows, 5, dtype=torch.float64)
    with torch_threads(threads):
        same(found(normalised, given), found(lambda some: some / some.norm(dim=1, keepdim=True), given))


@pytest.mark.parametrize("threads", [1, 2])
def test_look_ups_in_a_table_that_is_normalised_once(threads: int) -> None:
    entities = Entities(SHARED + 1, 5, torch.Generator().manual_seed(0)).double()
    ids = torch.arange(SHARED + 1).repeat(2)[::3]
    entities(ids).sin().sum().backward()
    expected, entities.table.grad = entities.table.grad, None
    with torch_threads(threads), entities.normalised_once():
        entities(ids).sin().sum().backward()
    assert expected is not None
    assert entities.table.grad is not None
    torch.testing.assert_close(entities.table.grad, expected, rtol=0, atol=1e-12)
