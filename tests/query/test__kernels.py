import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.query._kernels import are_answers, edge_range, edges_of, has_edge, is_of_type
from halfgraph.query.exact import Exact
from halfgraph.query.program import QueryBatch, compile_query
from halfgraph.query.structures import STRUCTURES
from halfgraph.query.tree import Anchor, Intersect, Project
from query_oracles import graph_of
from small_graphs import graphs_and_queries, smalls, unshared


@given(smalls(most_entities=6))
def test_an_edge_range_holds_just_the_tails_of_its_head_and_relation(small):
    edges = edges_of(small.graph)
    for head in small.plain.entities:
        for relation in range(-1, small.relation_count + 1):
            low, high = edge_range(edges, head, relation)
            expected = sorted(tail for tail in small.plain.entities if (head, relation, tail) in small.plain.edges)
            assert edges[2][low:high].tolist() == expected


@given(smalls(most_entities=5))
def test_an_edge_exists_exactly_if_its_triple_does(small):
    edges = edges_of(small.graph)
    for head in small.plain.entities:
        for relation in range(small.relation_count):
            for tail in small.plain.entities:
                assert has_edge(edges, head, relation, tail) == ((head, relation, tail) in small.plain.edges)


@pytest.mark.parametrize("counts", [(0, 0, 0), (1, 0, 1), (0, 1, 0), (1, 2, 3), (2, 63, 1), (64, 65, 0), (0, 700, 2)])
def test_edge_ranges_of_any_length_are_found_among_their_neighbours(counts):
    # Relations 0, 4 and 8 have these numbers of tails, 2 and 6 have none; 4 is sometimes the first, last or only one.
    triples = [(0, 4 * place, 1 + tail) for place, count in enumerate(counts) for tail in range(count)]
    edges = edges_of(graph_of(triples, [701], 12))
    for place, count in enumerate(counts):
        low, high = edge_range(edges, 0, 4 * place)
        assert edges[2][low:high].tolist() == list(range(1, 1 + count))
    for absent in (1, 2, 3, 5, 6, 7, 9, 10, 11):
        low, high = edge_range(edges, 0, absent)
        assert low == high
    for place, count in enumerate(counts):
        assert [has_edge(edges, 0, 4 * place, tail) for tail in (0, 1, count, count + 1)] == [
            False,
            count >= 1,
            count >= 1,
            False,
        ]


@given(smalls())
def test_an_entity_is_of_its_type_and_of_any(small):
    edges = edges_of(small.graph)
    for entity in small.plain.entities:
        assert is_of_type(edges, entity, -1)
        found = [type_id for type_id in range(len(small.sizes)) if is_of_type(edges, entity, type_id)]
        assert found == [small.plain.types[entity]]
        assert small.graph.types.of(entity) == small.plain.types[entity]


@given(graphs_and_queries(), st.booleans())
def test_a_walk_leaves_nothing_behind_for_the_next(given_, relaxed):
    small, query = given_
    one = compile_query(unshared(query))
    many = QueryBatch(one.program, np.repeat(one.anchors, 3, axis=0), np.repeat(one.relations, 3, axis=0))
    exact = Exact(small.graph)
    expected = exact.answer_sets(one, relaxed=relaxed)[0].tolist()
    assert [found.tolist() for found in exact.answer_sets(many, relaxed=relaxed)] == [expected] * 3


@given(smalls(), st.integers(0, 2**32))
def test_kernels_take_columns_of_any_layout(small, seed):
    structure, generator = STRUCTURES[5], np.random.default_rng(seed)
    anchors = generator.integers(0, len(small.plain.types), (9, 2), dtype=np.int32)
    relations = generator.integers(0, small.relation_count, (9, 3), dtype=np.int32)
    entities = generator.integers(0, len(small.plain.types), 9, dtype=np.int32)
    edges, steps = edges_of(small.graph), structure.program.arrays
    expected = are_answers(edges, steps, anchors, relations, entities)
    strided = np.asfortranarray(relations)
    np.testing.assert_array_equal(are_answers(edges, steps, anchors, strided, entities), expected)


def test_a_hub_that_all_paths_lead_to_is_an_answer_once():
    triples = [(leaf, 0, 0) for leaf in range(1, 300)] + [(301, 2, leaf) for leaf in range(1, 300)]
    graph = graph_of(triples, [302], 4)
    query = Project(Project(Anchor(301), 2), 0)
    assert Exact(graph).answers(query).tolist() == [0]
    assert Exact(graph).answers(Intersect((query, Project(Anchor(5), 0)))).tolist() == [0]


def test_more_answers_than_there_was_room_for_are_all_kept():
    graph = graph_of([(0, 0, tail) for tail in range(1, 5_000)], [5_000], 2)
    batch = compile_query(Project(Anchor(np.array([0, 1, 0, 0], np.int32)), 0))
    assert Exact(graph).answer_sets(batch).sizes().tolist() == [4_999, 0, 4_999, 4_999]
