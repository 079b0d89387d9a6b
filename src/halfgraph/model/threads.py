"""Compiled loops over tensors in as many threads as torch has, and how many it has."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

SHARED = 256  # rows from which threads share them


def cuts(size: int, rows: int) -> list[tuple[int, int]]:
    """The bounds of as many shares of a size as there are threads, or of one where few rows are to be worked on."""
    threads = torch.get_num_threads() if rows >= SHARED else 1
    return list(pairwise(size * place // threads for place in range(threads + 1)))


def in_threads(kernel: Callable[..., None], *tensors: Tensor, shares: Sequence[tuple[Any, ...]]) -> None:
    """Nothing; a compiled loop over tensors, each share of it in its own thread."""
    arrays = [tensor.detach().numpy() for tensor in tensors]
    own, *others = shares
    waiting: list[Future[None]] = []
    try:
        for share in others:
            waiting.append(_pool(len(others)).submit(kernel, *arrays, *share))
        kernel(*arrays, *own)
    finally:
        wait(waiting)  # even when interrupted: they write to memory that is not theirs to keep
    for one in waiting:
        one.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """The threads beside the one that asks."""
    return ThreadPoolExecutor(threads, thread_name_prefix="loops")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a process that was forked off has none of them


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """A time in which torch has so many threads, because others of ours are at work beside it.

    Torch's own spin while they wait for one another: beside other work on all cores that takes many times as long.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
