"""A small graph with its engine, and one thread for torch."""

from collections.abc import Iterator

import pytest
import torch

from asked import engine_of, people


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return people(tmp_path_factory.mktemp("people"))


@pytest.fixture
def engine(graph):
    return engine_of(graph)


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
