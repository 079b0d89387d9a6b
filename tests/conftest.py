"""What every test shares: hypothesis without deadlines, since two cores are shared; caches of compiled code.

Each worker of pytest-xdist has a cache of its own. Where two compile the same function for other types at a time, numba
may keep the code of one under the name of the other, and a third process that loads it writes where it must not.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("halfgraph", deadline=None, max_examples=50)
settings.load_profile("halfgraph")

if worker := os.environ.get("PYTEST_XDIST_WORKER"):  # before numba is imported; processes that tests start have it too
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / ".numba_cache" / worker))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch use one thread, so that sums are the same in every run."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
