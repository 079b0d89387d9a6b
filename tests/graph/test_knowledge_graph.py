import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import SettingError
from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph, edge_keys
from imported_graphs import edges_by_name, short_lived, triples_by_name, tsv
from oracles import Named, edges, entities
from strategies import named_triples

ids = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=30)


def graph_of(triples: list[tuple[int, int, int]]) -> KnowledgeGraph:
    rows = np.array([(head, 2 * relation, tail) for head, relation, tail in triples], dtype=np.int32).reshape(-1, 3)
    return KnowledgeGraph.of(rows, EntityTypes(("Entity",), np.array([0, 6])), relation_count=6)


@given(named_triples())
def test_the_edges_are_both_directions_of_the_triples_each_once(triples: list[Named]) -> None:
    with short_lived(tsv(triples)) as graph:
        found = edges_by_name(graph, graph.train)
        assert len(found) == len(set(found))
        assert set(found) == edges(triples)
        assert set(triples_by_name(graph, graph.train)) == set(triples)
        assert graph.train.triple_count == len(set(triples))
        assert set(graph.entities.names) == entities(triples)


@given(ids)
def test_tails_are_those_of_a_plain_set_of_triples(triples: list[tuple[int, int, int]]) -> None:
    graph = graph_of(triples)
    for head in range(6):
        for relation in range(3):
            forward = sorted({t for h, r, t in triples if (h, r) == (head, relation)})
            backward = sorted({h for h, r, t in triples if (t, r) == (head, relation)})
            assert graph.tails_of(head, 2 * relation).tolist() == forward
            assert graph.tails_of(head, 2 * relation + 1).tolist() == backward


@given(ids)
def test_the_inverse_of_a_relation_leads_back(triples: list[tuple[int, int, int]]) -> None:
    graph = graph_of(triples)
    for head, relation, tail in zip(graph.heads(), graph.relations, graph.tails, strict=True):
        assert head in graph.tails_of(tail, relation ^ 1)


@given(ids)
def test_triples_make_the_same_graph_again(triples: list[tuple[int, int, int]]) -> None:
    graph = graph_of(triples)
    again = KnowledgeGraph.of(graph.triples(), graph.types, graph.relation_count)
    for part in ("starts", "relations", "tails"):
        assert np.array_equal(getattr(graph, part), getattr(again, part))


@given(ids)
def test_the_degree_is_the_number_of_triples_an_entity_takes_part_in(triples: list[tuple[int, int, int]]) -> None:
    ends = [end for head, _, tail in set(triples) for end in (head, tail)]
    assert graph_of(triples).degrees().tolist() == [ends.count(entity) for entity in range(6)]


def test_a_type_is_a_range_of_ids() -> None:
    types = EntityTypes(("A", "B", "C"), np.array([0, 2, 2, 5]))
    assert types.of(np.arange(5)).tolist() == [0, 0, 2, 2, 2]
    assert types.sizes.tolist() == [2, 0, 3]
    assert len(types) == 3


def test_a_graph_too_large_to_number_is_refused() -> None:
    with pytest.raises(SettingError, match="63-bit"):
        edge_keys(np.empty((0, 3), np.int32), 2**31, 4)
