"""Nearest neighbours against sets of links, one pair of entities after another."""

from collections import Counter
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given

from halfgraph.prediction import neighbours
from halfgraph.prediction.neighbours import Neighbours
from query_oracles import Plain
from small_graphs import Small, smalls


def cosine(plain: Plain, one: int, other: int, common: int = neighbours.COMMON) -> float:
    """The cosine of two entities as sets of links, each weighted by how rare it is."""
    own, others = ({edge[1:] for edge in plain.edges if edge[0] == entity} for entity in (one, other))
    counts = Counter(edge[1:] for edge in plain.edges)
    rarity = {link: log(len(plain.entities) / count) ** 2 for link, count in counts.items()}
    lengths = [sqrt(sum(rarity[link] for link in links)) for links in (own, others)]
    shared = sum(rarity[link] for link in own & others if counts[link] <= common)
    return shared / (lengths[0] * lengths[1]) if shared else 0.0


@given(smalls())
def test_neighbours_are_the_nearest_by_shared_rare_links(small):
    found = Neighbours.of(small.graph)
    for entity in small.plain.entities:
        others = {other: cosine(small.plain, entity, other) for other in small.plain.entities if other != entity}
        expected = {other: near for other, near in others.items() if near > 0}
        ids = [other for other in found.ids[entity].tolist() if other >= 0]
        near = found.nearness[entity, : len(ids)]
        assert set(ids) == set(expected)
        assert near == pytest.approx([expected[other] for other in ids], rel=1e-4)
        assert (np.diff(near) <= 0).all()
        assert not found.nearness[entity, len(ids) :].any()


@given(smalls())
def test_the_reverse_lists_whose_neighbour_an_entity_is(small):
    found = Neighbours.of(small.graph)
    starts, ids, nearness = found.reverse
    for entity in small.plain.entities:
        own = slice(starts[entity], starts[entity + 1])
        rows, columns = np.nonzero(found.ids == entity)
        assert ids[own].tolist() == rows.tolist()
        assert nearness[own].tolist() == found.nearness[rows, columns].tolist()


@given(smalls())
def test_sums_add_the_nearness_of_chosen_neighbours(small):
    found = Neighbours.of(small.graph)
    chosen = np.arange(small.graph.entity_count) % 2 == 0
    expected = [
        sum(near for other, near in zip(ids, own, strict=True) if other >= 0 and chosen[other])
        for ids, own in zip(found.ids.tolist(), found.nearness.tolist(), strict=True)
    ]
    assert found.sums(chosen) == pytest.approx(expected, abs=1e-5)
    assert found.totals == pytest.approx(found.sums(np.ones_like(chosen)), abs=1e-6)
    assert (found.totals > 0).all()


def test_only_the_nearest_are_kept_and_very_common_links_do_not_count(monkeypatch):
    # 1, 2 and 3 share a link to 0; 1 and 2 share a rarer one to 4.
    triples = [(entity, 0, 0) for entity in (1, 2, 3)] + [(entity, 2, 4) for entity in (1, 2)]
    small = Small(tuple(triples), (7,), 4)
    monkeypatch.setattr(neighbours, "COUNT", 1)
    assert Neighbours.of(small.graph).ids[1].tolist() == [2]
    monkeypatch.setattr(neighbours, "COUNT", 5)
    assert Neighbours.of(small.graph).ids[1].tolist() == [2, 3, -1, -1, -1]
    monkeypatch.setattr(neighbours, "COMMON", 2)
    found = Neighbours.of(small.graph)
    assert found.ids[1].tolist() == [2, -1, -1, -1, -1]
    assert found.nearness[1, 0] == pytest.approx(cosine(small.plain, 1, 2, common=2), rel=1e-4)


def test_a_large_graph_has_fewer_neighbours(monkeypatch):
    small = Small(((1, 0, 0), (2, 0, 0)), (4,), 2)
    assert Neighbours.of(small.graph).ids.shape[1] == neighbours.COUNT
    monkeypatch.setattr(neighbours, "LARGE", 3)
    assert Neighbours.of(small.graph).ids.shape[1] == neighbours.COUNT_IF_LARGE
