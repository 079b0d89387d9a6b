"""Random split into train, valid and test; train has every entity and relation."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class Shares:
    """Proportions of train, valid and test, for example 90/1/9."""

    train: float
    valid: float
    test: float

    @classmethod
    def parse(cls, text: str) -> "Shares":
        try:
            numbers = [float(part) for part in text.split("/")]
        except ValueError:
            numbers = []
        if len(numbers) != 3 or not all(map(math.isfinite, numbers)) or min(numbers) < 0 or numbers[0] == 0:
            advice = "Pass train/valid/test as three numbers, for example 90/1/9."
            raise SettingError("--split", f'cannot read "{text}"', advice=advice)
        return cls(*numbers)


def split(triples: Triples, shares: Shares, seed: int) -> dict[str, Triples]:
    """Return the triples (n, 3) of each split."""
    order = np.random.default_rng(seed).permutation(len(triples))
    must = required_in_train(triples[order])
    free = order[~must]
    total = shares.train + shares.valid + shares.test
    valid, test = (round(len(triples) * share / total) for share in (shares.valid, shares.test))
    if valid + test > len(free):  # train needs too many: keep the proportion of valid to test
        valid = len(free) * valid // (valid + test)
        test = len(free) - valid
    parts = {"valid": free[:valid], "test": free[valid : valid + test]}
    parts["train"] = np.concatenate([order[must], free[valid + test :]])
    return {name: triples[np.sort(parts[name])] for name in ("train", "valid", "test")}


def required_in_train(triples: Triples) -> NDArray[np.bool_]:
    """Mark the first row with each entity and each relation, which must stay in train."""
    must = np.zeros(len(triples), dtype=bool)
    for column in (triples[:, 1], np.concatenate([triples[:, 0], triples[:, 2]])):
        firsts = np.full(column.max() + 1, -1)
        firsts[column[::-1]] = np.arange(len(column))[::-1]  # the last assignment counts; faster than np.unique
        must[firsts[firsts >= 0] % len(triples)] = True
    return must
