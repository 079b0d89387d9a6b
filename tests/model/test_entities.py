import numpy as np
import pytest
import torch

from halfgraph.model import entities as entities_module
from halfgraph.model.entities import Entities
from model_oracles import look_up


def made(count: int = 9, dim: int = 4) -> Entities:
    return Entities(count, dim, torch.Generator().manual_seed(0)).double()


def test_an_entity_is_its_row_at_length_one() -> None:
    entities = made()
    table = entities.table.detach().numpy()
    ids = torch.tensor([3, 0, 3, 8])
    for vector, entity in zip(entities(ids).detach().numpy(), ids.tolist(), strict=True):
        np.testing.assert_allclose(vector, look_up(table, entity), rtol=0, atol=1e-10)
    torch.testing.assert_close(
        torch.linalg.vector_norm(entities.embeddings(), dim=1), torch.ones(9, dtype=torch.float64)
    )


def test_the_gradient_of_a_look_up_is_the_difference_quotient() -> None:
    entities, ids = made(), torch.tensor([3, 0, 3])

    def look_up_rows(table: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(entities, {"table": table}, (ids,))

    assert torch.autograd.gradcheck(look_up_rows, (entities.table.detach().clone().requires_grad_(),))


def test_a_row_of_zeros_gives_zeros_and_a_finite_gradient() -> None:
    entities = made(2, 3)
    with torch.no_grad():
        entities.table.zero_()
    embeddings = entities(torch.tensor([0, 1]))
    assert torch.equal(embeddings.detach(), torch.zeros(2, 3, dtype=torch.float64))
    embeddings.sum().backward()
    assert entities.table.grad is not None
    assert torch.isfinite(entities.table.grad).all()


def test_an_entity_that_is_looked_up_twice_gets_both_gradients() -> None:
    entities = made()
    weights = torch.randn(4, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (entities(torch.tensor([2, 5, 2, 2])) * weights).sum().backward()
    gathered = entities.table.grad
    entities.table.grad = None
    for place, entity in enumerate([2, 5, 2, 2]):
        (entities(torch.tensor([entity])) * weights[place]).sum().backward()
    torch.testing.assert_close(gathered, entities.table.grad)


def test_a_table_normalised_once_gives_the_same_vectors_and_gradients() -> None:
    entities, ids = made(), torch.tensor([1, 7, 1])
    weights = torch.randn(3, 4, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    (entities(ids) * weights).sum().backward()
    gradient, vectors = entities.table.grad, entities(ids)
    entities.table.grad = None
    with entities.normalised_once():
        assert torch.equal(entities(ids), vectors)
        (entities(ids) * weights).sum().backward()
    torch.testing.assert_close(entities.table.grad, gradient)


@pytest.mark.parametrize("with_gradient", [False, True])
def test_gradients_of_several_look_ups_and_of_the_whole_table_add_up(with_gradient: bool) -> None:
    entities = made()
    weights = torch.randn(9, 4, generator=torch.Generator().manual_seed(6), dtype=torch.float64)

    def loss() -> torch.Tensor:
        first, second = entities(torch.tensor([1, 7, 1])), entities(torch.tensor([2, 7]))
        return (
            (first * weights[:3]).sum() + (second * weights[3:5]).sin().sum() + (entities.embeddings() * weights).sum()
        )

    entities.table.grad = None
    loss().backward()
    assert entities.table.grad is not None
    expected = entities.table.grad
    for _ in range(2):  # nothing of the first step may be left in the second
        entities.table.grad = torch.ones_like(entities.table) if with_gradient else None
        with entities.normalised_once():
            loss().backward()
        assert entities.table.grad is not None
        torch.testing.assert_close(entities.table.grad, expected + float(with_gradient))


def test_a_table_that_changed_after_the_block_is_normalised_again() -> None:
    entities, ids = made(), torch.tensor([1])
    with entities.normalised_once():
        before = entities(ids)
    with torch.no_grad():
        entities.table.add_(1.0)
    assert not torch.equal(entities(ids), before)


def test_an_error_in_the_block_ends_it_too() -> None:
    entities = made()

    def failing() -> None:
        with entities.normalised_once():
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        failing()
    assert entities._normalised is None


def test_a_large_table_has_a_gradient_for_the_rows_looked_up_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities_module, "SPARSE_ABOVE", 5)
    large, small, ids = made(6), made(5), torch.tensor([4, 1, 4])
    assert (large.sparse, small.sparse) == (True, False)
    weights = torch.randn(3, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    with torch.no_grad():
        small.table.copy_(large.table[:5])
    for entities in (large, small):
        with entities.normalised_once():
            (entities(ids) * weights).sum().backward()
    gradient = large.table.grad
    assert gradient is not None
    assert gradient.is_sparse
    assert set(gradient.coalesce().indices()[0].tolist()) == {1, 4}
    assert small.table.grad is not None
    torch.testing.assert_close(gradient.to_dense()[:5], small.table.grad)


def test_the_same_seed_gives_the_same_table() -> None:
    assert torch.equal(made().table, made().table)
    other = Entities(9, 4, torch.Generator().manual_seed(1)).double()
    assert not torch.equal(made().table, other.table)
