"""Shared by all tests: one torch thread, hypothesis without deadlines, caches of compiled code.

One thread, here and in the processes that tests start, makes sums the same in every run.

Each worker of pytest-xdist has a cache of its own. Where two compile the same function for other types at a time, numba
may keep the code of one under the name of the other, and a third process that loads it writes where it must not.
"""

import os
from pathlib import Path

from hypothesis import settings

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

os.fsync = lambda _: None  # tests need not survive a power failure, and waiting for the disk would double their time

settings.register_profile("halfgraph", deadline=None, max_examples=50)
settings.load_profile("halfgraph")

if worker := os.environ.get("PYTEST_XDIST_WORKER"):  # before numba is imported; processes that tests start have it too
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / ".numba_cache" / worker))
