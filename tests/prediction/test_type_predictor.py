"""Types: known where they are stated, else by the types of neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.prediction.neighbours import Neighbours
from halfgraph.prediction.type_predictor import BINS, MISSING, TypePredictor
from small_graphs import Small, smalls

NOBODY = np.empty(0, np.int64)


def predictor(small: Small, members: list[set[int]], untyped: np.ndarray = NOBODY) -> TypePredictor:
    own = [np.array(sorted(some), np.int64) for some in members]
    return TypePredictor(Neighbours.of(small.graph), lambda type_id: own[type_id], untyped)


def expected(found: Neighbours, members: set[int], untyped: set[int], entity: int) -> float:
    """The probability that an entity has a type, by hand."""
    if entity in members:
        return 1.0
    shares = []
    for ids, near in zip(found.ids, found.nearness, strict=True):
        own = np.array([n if int(i) in members else 0.0 for i, n in zip(ids, near, strict=True)], np.float32)
        shares.append(own.sum() / near.sum() if near.any() else np.float32(0.0))
    bins = [min(int(share * BINS), BINS - 1) for share in shares]
    alike = [other for other, place in enumerate(bins) if place == bins[entity]]
    prior = len(members) / len(bins)
    rate = min((sum(other in members for other in alike) + prior) / (len(alike) + 1), 0.99)
    odds = rate / (1 - rate) * (1.0 if entity in untyped else MISSING / (1 - MISSING))
    return odds / (1 + odds)


@given(smalls(), st.data())
def test_a_type_is_certain_if_stated_and_else_as_frequent_as_among_entities_with_such_neighbours(small, data):
    entities = st.sets(st.integers(0, small.graph.entity_count - 1))
    members, untyped = data.draw(entities), data.draw(entities)
    types = predictor(small, [members], np.array(sorted(untyped - members), np.int64))
    for entity, found in enumerate(types.probabilities(0).tolist()):
        assert found == pytest.approx(expected(types.neighbours, members, untyped, entity), abs=1e-5)


def stars() -> Small:
    """Entities 1 to 40 share a link to 0; 41 to 80 share another."""
    triples = [(entity, 0, 0) for entity in range(1, 41)] + [(entity, 2, 0) for entity in range(41, 81)]
    return Small(tuple(triples), (81,), 4)


def test_an_entity_may_have_several_types():
    types = predictor(stars(), [{1, 2, 3}, {3, 4}])
    assert np.flatnonzero(types.probabilities(0) == 1.0).tolist() == [1, 2, 3]
    assert np.flatnonzero(types.probabilities(1) == 1.0).tolist() == [3, 4]


def test_an_entity_whose_neighbours_have_a_type_probably_lacks_its_statement():
    members = set(range(1, 40))
    likely = predictor(stars(), [members]).probabilities(0)
    assert likely[40] > 5 * likely[41] > 0.0
    assert likely[40] < 0.5  # it has another type, and most entities have all of theirs
    untyped = predictor(stars(), [members], np.array([40])).probabilities(0)
    assert untyped[40] > 0.9
    assert untyped[41] == pytest.approx(likely[41])


@pytest.mark.parametrize("members", [set(range(81)) - {5}, {6}])
def test_no_prediction_is_certain_and_none_is_impossible(members):
    likely = predictor(stars(), [members], np.array([5])).probabilities(0)[sorted(set(range(81)) - members)]
    assert 0.0 < likely.min() <= likely.max() < 1.0
