"""Train, valid and test: a seeded split in which every entity and relation of valid and test is also in train."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class Shares:
    """How much of the triples goes where, as numbers in proportion: 90/1/9."""

    train: float
    valid: float
    test: float

    @classmethod
    def parse(cls, text: str) -> "Shares":
        """The shares behind a text such as 90/1/9."""
        try:
            numbers = [float(part) for part in text.split("/")]
        except ValueError:
            numbers = []
        if len(numbers) != 3 or not all(map(math.isfinite, numbers)) or min(numbers) < 0 or numbers[0] == 0:
            raise SettingError(
                "--split", f'cannot read "{text}"', advice="Pass three numbers such as 90/1/9: train/valid/test."
            )
        return cls(*numbers)


def split(triples: Triples, shares: Shares, seed: int) -> dict[str, Triples]:
    """The triples (n, 3) of each split; with them go their inverses, since an inverse is the same row."""
    order = np.random.default_rng(seed).permutation(len(triples))
    must = needed(triples[order])
    free = order[~must]
    total = shares.train + shares.valid + shares.test
    valid, test = (round(len(triples) * share / total) for share in (shares.valid, shares.test))
    if valid + test > len(free):  # too few can be spared: keep the proportion of valid to test
        valid = len(free) * valid // (valid + test)
        test = len(free) - valid
    parts = {"valid": free[:valid], "test": free[valid : valid + test]}
    parts["train"] = np.concatenate([order[must], free[valid + test :]])
    return {name: triples[np.sort(parts[name])] for name in ("train", "valid", "test")}


def needed(triples: Triples) -> NDArray[np.bool_]:
    """Which rows to keep in train so that each entity and relation has one: the first in which it occurs."""
    must = np.zeros(len(triples), dtype=bool)
    for column in (triples[:, 1], np.concatenate([triples[:, 0], triples[:, 2]])):
        _, firsts = np.unique(column, return_index=True)
        must[firsts % len(triples)] = True
    return must
