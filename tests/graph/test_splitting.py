import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import SettingError
from halfgraph.graph.splitting import Shares, Triples, split

Row = tuple[int, int, int]
rows = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 3).map(lambda r: 2 * r), st.integers(0, 9)), min_size=1)
shares = st.builds(Shares, st.floats(0.1, 90), st.floats(0, 50), st.floats(0, 50))


def array(triples: set[Row]) -> Triples:
    return np.array(sorted(triples), dtype=np.int32)


def as_set(triples: Triples) -> set[Row]:
    return {(h, r, t) for h, r, t in triples.tolist()}


@given(rows, shares, st.integers(0, 5))
def test_the_parts_are_disjoint_and_complete(triples: set[Row], given_shares: Shares, seed: int) -> None:
    parts = split(array(triples), given_shares, seed)
    assert list(parts) == ["train", "valid", "test"]
    assert sum(map(len, parts.values())) == len(triples)
    assert set.union(*map(as_set, parts.values())) == triples


@given(rows, shares, st.integers(0, 5))
def test_every_entity_and_relation_is_in_train(triples: set[Row], given_shares: Shares, seed: int) -> None:
    train = as_set(split(array(triples), given_shares, seed)["train"])
    assert {end for h, _, t in train for end in (h, t)} == {end for h, _, t in triples for end in (h, t)}
    assert {r for _, r, _ in train} == {r for _, r, _ in triples}


@given(rows, shares, st.integers(0, 5))
def test_the_same_seed_makes_the_same_split(triples: set[Row], given_shares: Shares, seed: int) -> None:
    one, other = (split(array(triples), given_shares, seed) for _ in range(2))
    assert all(np.array_equal(one[name], other[name]) for name in one)


@given(rows, shares)
def test_no_part_gets_more_than_its_share(triples: set[Row], given_shares: Shares) -> None:
    parts = split(array(triples), given_shares, 0)
    total = given_shares.train + given_shares.valid + given_shares.test
    for name in ("valid", "test"):
        assert len(parts[name]) <= len(triples) * getattr(given_shares, name) / total + 1


def test_a_large_graph_is_split_in_the_proportions_asked_for() -> None:
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, 100, (10_000, 3), dtype=np.int32), axis=0)
    parts = split(triples, Shares.parse("90/1/9"), 0)
    shares_found = [len(parts[name]) / len(triples) for name in parts]
    assert shares_found == pytest.approx([0.9, 0.01, 0.09], abs=1e-4)


def test_another_seed_makes_another_split() -> None:
    triples = np.unique(np.random.default_rng(0).integers(0, 10, (200, 3), dtype=np.int32), axis=0)
    assert not np.array_equal(*(split(triples, Shares(80, 10, 10), seed)["test"] for seed in (0, 1)))


def test_valid_and_test_share_what_train_can_spare() -> None:
    star = array({(0, 0, t) for t in range(20)} | {(1, 0, t) for t in range(20)})
    parts = split(star, Shares(1, 50, 50), 0)
    assert len(parts["train"]) <= 21
    assert abs(len(parts["valid"]) - len(parts["test"])) <= 1


@pytest.mark.parametrize(
    "text", ["", "90", "90/10", "90/1/9/0", "a/b/c", "0/50/50", "-90/5/5", "90/-1/9", "nan/1/9", "inf/1/9", "90/1/nan"]
)
def test_nonsense_is_no_split(text: str) -> None:
    with pytest.raises(SettingError, match="90/1/9"):
        Shares.parse(text)


def test_shares_are_read_in_any_unit() -> None:
    assert Shares.parse("90/1/9") == Shares(90, 1, 9)
    assert Shares.parse("0.9/0.01/0.09") == Shares(0.9, 0.01, 0.09)
