from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.query._kernels import edges_of
from halfgraph.query.structures import structure_named
from halfgraph.workload._negative_kernels import below, random_bits, type_of
from halfgraph.workload._sampling_kernels import count_missing
from halfgraph.workload.negatives import fresh_negatives
from halfgraph.workload.sampling import Questions
from query_oracles import answers, graph_of, is_likely
from small_graphs import Small, smalls

MASK = 2**64 - 1


def splitmix64(state: int) -> tuple[int, int]:
    """The next state and 64 bits, by the book."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    bits = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return state, bits ^ (bits >> 31)


def test_random_bits_are_those_of_splitmix64():
    state = np.array([1234567], np.uint64)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(random_bits(state)) for _ in published] == published


@given(st.integers(0, MASK))
def test_random_bits_go_on_from_any_state(seed):
    state, plain = np.array([seed], np.uint64), seed
    for _ in range(3):
        plain, bits = splitmix64(plain)
        assert int(random_bits(state)) == bits
    assert int(state[0]) == plain


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1000])
def test_numbers_below_a_bound_are_all_as_likely(bound):
    state = np.array([bound], np.uint64)
    counts = Counter(below(state, bound) for _ in range(100 * bound))
    assert set(counts) <= set(range(bound))
    assert is_likely([counts[number] for number in range(bound)])


@given(smalls())
def test_the_type_of_an_entity_is_its_own_though_types_be_empty(small):
    edges = edges_of(small.graph)
    assert tuple(type_of(edges, entity) for entity in small.plain.entities) == small.plain.types


@given(st.data())
def test_missing_triples_are_counted(data):
    small = data.draw(smalls())
    known = small.part(data.draw(st.lists(st.sampled_from(small.triples), unique=True)) if small.triples else [])
    needed = [data.draw(st.booleans()) for _ in small.triples]
    rows = [(head, way // 2, tail, need) for (head, way, tail), need in zip(small.triples, needed, strict=True)]
    used = np.array(rows, np.int64).reshape(-1, 4)
    expected = {triple for triple, need in zip(small.triples, needed, strict=True) if need} - set(known.triples)
    assert count_missing(edges_of(known.graph), used) == len(expected)


def many(small: Small, anchors, relations, answer: int, hard: bool, count: int = 20_000) -> Counter[int]:
    """How often each entity is drawn as a negative of one question."""
    structure = structure_named("1p" if len(relations) == 1 else "2i")
    none = np.array([-1], np.int32)
    columns = (np.array([some], np.int32) for some in (anchors, relations))
    question = Questions(structure, *columns, np.array([answer], np.int32), none, none)
    drawn = fresh_negatives(small.graph, question, count, 3, hard=hard)
    return Counter(drawn[0].tolist())


@pytest.mark.parametrize("answer_count", [1, 10, 17, 19])
def test_negatives_are_each_as_likely_whether_answers_are_few_or_many(answer_count):
    small = Small(tuple((0, 0, 1 + tail) for tail in range(answer_count)), (1, 20, 3), 2)
    counts = many(small, [0], [0], 1, hard=False)
    assert sorted(counts) == list(range(1 + answer_count, 21))
    assert is_likely(counts.values())


def test_there_is_no_negative_where_all_of_the_type_are_answers():
    small = Small(tuple((0, 0, 1 + tail) for tail in range(20)), (1, 20, 3), 2)
    assert set(many(small, [0], [0], 1, hard=False)) == {-1}


def test_hard_negatives_are_all_those_on_one_path_of_the_answers_type():
    # 0 leads to 2..9, 1 to 8..12; type 1 is 2..10, so 11 and 12 are of another type, and 8, 9 are answers.
    triples = [(0, 0, tail) for tail in range(2, 10)] + [(1, 0, tail) for tail in range(8, 13)]
    small = Small(tuple(triples), (2, 9, 3), 2)
    assert answers(small.plain, structure_named("2i").fill(np.array([0, 1]), np.array([0, 0]))) == [8, 9]
    assert set(many(small, [0, 1], [0, 0], 8, hard=True)) == {2, 3, 4, 5, 6, 7, 10}


def test_a_rare_hard_negative_is_found_where_random_walks_do_not_lead():
    # The one hard negative is the tail of a single edge among two thousand that end in answers.
    triples = [(0, 0, tail) for tail in range(2, 2_000)] + [(1, 0, tail) for tail in range(2, 2_001)]
    counts = many(Small(tuple(triples), (2, 1_999), 2), [0, 1], [0, 0], 2, hard=True, count=50)
    assert set(counts) == {2_000}


def test_a_graph_of_one_type_has_negatives_beyond_the_graphs_edges():
    graph = graph_of([(0, 0, 1)], [50], 2)
    assert edges_of(graph)[3].tolist() == [0, 50]
    counts = many(Small(((0, 0, 1),), (50,), 2), [0], [0], 1, hard=False)
    assert sorted(counts) == [0, *range(2, 50)]
