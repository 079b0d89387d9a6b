from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.query.canonical import canonical_key, row_keys, structure_formula
from halfgraph.query.structures import (
    NEIGHBOURHOODS,
    STRUCTURES,
    UNIONS,
    match_structure,
    structure_name,
)
from halfgraph.query.tree import (
    Anchor,
    Intersect,
    Project,
    Query,
    Union,
    nodes,
)
from query_oracles import is_same
from small_graphs import graphs_and_queries, queries, reordered, smalls, unshared


@given(st.data())
def test_a_rebuilt_query_is_equal_whatever_the_order_of_its_parts(data):
    _, query = data.draw(graphs_and_queries(most_nodes=8))
    again = data.draw(reordered(query))
    assert query == again
    assert hash(query) == hash(again)


@given(st.data())
def test_queries_are_equal_just_if_a_renaming_of_nodes_makes_one_the_other(data):
    small = data.draw(smalls(most_entities=2))
    one, other = (data.draw(queries(small, most_nodes=4, types=False)) for _ in range(2))
    assert (one == other) == is_same(one, other)


def few_words(count: int) -> list[Query]:
    """All queries with one anchor, one relation and this many variables, which differ only in structure."""
    grown: list[list[Query]] = [[Anchor(0)]]
    for _ in range(count):
        grown = [[*pool, node] for pool in grown for node in _next_nodes(pool)]
    return [pool[-1] for pool in grown if len(nodes(pool[-1])) == count + 1]


def _next_nodes(pool: list[Query]) -> list[Query]:
    parts = chain.from_iterable(combinations(pool, size) for size in range(1, len(pool) + 1))
    return [*(Project(node, 0) for node in pool), *(Intersect(some) for some in parts)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_small_queries_have_different_keys_exactly_if_they_differ(count):
    found: dict[str, list[Query]] = {}
    for query in few_words(count):
        found.setdefault(canonical_key(query), []).append(query)
    firsts = [some[0] for some in found.values()]
    assert not any(is_same(one, other) for one, other in combinations(firsts, 2))
    for first, *rest in found.values():
        assert all(is_same(first, other) for other in rest)


def ring(size: int, relation: int = 0) -> list[Query]:
    """Pairs of neighbours in a ring of variables that nothing but their neighbours tells apart."""
    around: list[Query] = [Project(Anchor(0), relation) for _ in range(size)]
    pairs = zip(around, [*around[1:], around[0]], strict=True)
    return [Intersect((Project(one, 2), Project(other, 2))) for one, other in pairs]


def test_one_ring_of_six_variables_is_not_two_rings_of_three():
    six = Intersect(tuple(Project(part, 4) for part in ring(6)))
    twice_three = Intersect(tuple(Project(part, 4) for part in [*ring(3), *ring(3)]))
    assert six != twice_three  # refining colours alone leaves them the same
    assert six == Intersect(tuple(Project(part, 4) for part in reversed(ring(6))))


def test_many_shared_variables_that_look_alike_are_no_burden():
    def pairs(count: int) -> Query:
        shared = [Project(Anchor(0), 0) for _ in range(count)]
        return Intersect(tuple(Project(node, relation) for node in shared for relation in (2, 4)))

    assert pairs(10) == pairs(10)
    assert pairs(10) != pairs(9)


def test_a_shared_variable_is_not_two_equal_ones():
    shared = Project(Anchor(0), 0)
    joined = Intersect((Project(shared, 2), Project(shared, 4)))
    free = Intersect((Project(Project(Anchor(0), 0), 2), Project(Project(Anchor(0), 0), 4)))
    assert joined != free
    assert unshared(joined) == free


def test_two_nodes_of_one_entity_are_one_constant():
    anchor = Anchor(3)
    assert Intersect((Project(anchor, 0), Project(anchor, 2))) == Intersect(
        (Project(Anchor(3), 0), Project(Anchor(3), 2))
    )
    assert Intersect((Anchor(3), Anchor(3))) == Intersect((anchor, anchor)) == Intersect((anchor,))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Anchor(1), Anchor(2)),
        (Project(Anchor(1), 0), Project(Anchor(1), 1)),
        (Project(Anchor(1), 0), Project(Anchor(1), 0, type_id=0)),
        (Project(Anchor(1), 0, type_id=1), Project(Anchor(1), 0, type_id=0)),
        (Project(Anchor(1), 0), Intersect((Project(Anchor(1), 0),))),
        (Intersect((Anchor(1), Anchor(2))), Union((Anchor(1), Anchor(2)))),
        (Project(Project(Anchor(1), 0), 2), Project(Project(Anchor(1), 2), 0)),
        (Anchor(40302010), Anchor(np.array([0x10203040], np.int32))),
        (Anchor(7), 7),
    ],
)
def test_what_a_node_says_matters(one, other):
    assert one != other


def test_columns_are_compared_by_their_ids():
    ids = np.arange(6, dtype=np.int32)
    assert Anchor(ids) == Anchor(ids.copy())
    assert Anchor(ids[::2]) == Anchor(np.array([0, 2, 4], np.int32))
    assert Anchor(ids) != Anchor(ids[::-1])
    assert Anchor(np.int32(4)) == Anchor(4)


def test_equal_queries_are_one_key():
    one, other = (Intersect((Project(Anchor(a), 0), Project(Anchor(b), 2))) for a, b in ((1, 2), (1, 2)))
    assert len({one, other, Intersect(other.parts[::-1])}) == 1


def test_a_shared_variable_is_marked_in_the_form():
    shared = Project(Anchor(0), 0)
    joined = Intersect((Project(shared, 0), Project(shared, 2)))
    assert "#" in structure_name(joined)
    assert match_structure(joined) is None
    assert structure_name(joined) != structure_name(
        Intersect((Project(Project(Anchor(0), 0), 0), Project(Project(Anchor(0), 0), 2)))
    )


@given(st.data())
def test_equal_queries_have_the_same_form(data):
    _, query = data.draw(graphs_and_queries(most_nodes=8))
    assert structure_formula(query) == structure_formula(data.draw(reordered(query)))


def test_a_repeated_part_does_not_change_the_canonical_form():
    part = Project(Anchor(0), 0)
    assert Intersect((part, part)) == Intersect((part,))
    assert structure_formula(Intersect((part, part))) == structure_formula(Intersect((part,)))


@given(st.sampled_from([*STRUCTURES, *UNIONS, NEIGHBOURHOODS[0]]), st.integers(0, 1000))
def test_the_keys_of_two_queries_are_equal_just_if_the_queries_are(structure, seed):
    generator = np.random.default_rng(seed)
    anchors = generator.integers(0, 2, (24, structure.anchor_count), dtype=np.int32)
    relations = generator.integers(0, 2, (24, structure.relation_count), dtype=np.int32)
    keys = row_keys(structure.query, anchors, relations)
    queries = [structure.fill(*row) for row in zip(anchors, relations, strict=True)]
    hashes = [hash(query) for query in queries]
    assert keys.shape == (24, structure.anchor_count + structure.relation_count)
    for one in range(24):
        for other in range(one):
            assert (keys[one] == keys[other]).all() == (hashes[one] == hashes[other])
