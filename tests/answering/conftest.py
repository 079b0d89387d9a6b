import pytest

from small_engines import engine_of, people


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return people(tmp_path_factory.mktemp("people"))


@pytest.fixture
def engine(graph):
    return engine_of(graph)
