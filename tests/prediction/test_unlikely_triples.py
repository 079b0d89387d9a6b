"""Unlikely triples: each scored as if the graph did not have its part, and the worst first."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction import unlikely_triples as module
from halfgraph.prediction.link_predictor import LinkPredictor
from halfgraph.prediction.unlikely_triples import standard_scores, unlikely_triples
from small_graphs import smalls
from small_links import links_of

GRAPHS = smalls(most_triples=12).map(lambda small: small.graph)


def without(links: LinkPredictor, triple: tuple[int, int, int]) -> LinkPredictor:
    """The predictor of the graph without one triple."""
    rest = np.array([own for own in links.graph.triples().tolist() if tuple(own) != triple], np.int32).reshape(-1, 3)
    graph = KnowledgeGraph.of(rest, links.graph.types, links.graph.relation_count)
    return LinkPredictor(links.index, links.complex, graph, links.weights, links.missing)


@settings(max_examples=20)
@given(GRAPHS)
def test_with_a_part_for_each_triple_it_is_scored_as_if_the_graph_did_not_have_it(graph):
    links = links_of(graph)
    with patch.object(module, "PARTS", max(1, graph.triple_count)):
        checked = unlikely_triples(links, graph, 1_000)
    assert {one[:3] for one in checked} == set(map(tuple, graph.triples().tolist()))
    for one in checked:
        own, (head, relation, tail) = without(links, one[:3]), one[:3]
        row = own.log_odds(np.array([head]), relation)[0]
        assert one.probability == pytest.approx(1 / (1 + np.exp(-row[tail])), rel=1e-3)
        better = [other for other in np.flatnonzero(row > row[tail]) if other not in graph.tails_of(head, relation)]
        assert one.tail_place == 1 + len(better)
        back = own.log_odds(np.array([tail]), relation ^ 1)[0]
        better = [
            other for other in np.flatnonzero(back > back[head]) if other not in graph.tails_of(tail, relation ^ 1)
        ]
        assert one.head_place == pytest.approx(1 + len(better), abs=1)  # equal scores may be rounded differently


@given(GRAPHS)
def test_a_limit_keeps_the_worst_and_progress_counts_every_triple(graph):
    links, done = links_of(graph), []
    every = unlikely_triples(links, graph, 1_000, progress=lambda total, more: done.append((total, more)))
    assert sum(more for _, more in done) == graph.triple_count == len(every)
    assert unlikely_triples(links, graph, 3) == every[:3]


@given(GRAPHS, st.integers(0, 5))
def test_the_worst_is_farthest_below_its_relation_where_trained_and_held_out_triples_are_apart(graph, held_out):
    links = links_of(graph)
    triples = graph.triples()
    trained = KnowledgeGraph.of(triples[held_out:], graph.types, graph.relation_count)
    groups: dict[tuple[int, bool], list[float]] = {}
    places = []
    for one in unlikely_triples(links, trained, 1_000):
        log_odds = np.log(one.probability / (1 - one.probability))
        key = (one.relation, one.tail in trained.tails_of(one.head, one.relation))
        groups.setdefault(key, []).append(log_odds)
        places.append((key, log_odds))
    scores = [(value - np.mean(groups[key])) / max(np.std(groups[key]), 0.5) for key, value in places]
    assert scores == pytest.approx(sorted(scores), abs=1e-3)


def test_a_standard_score_is_that_of_its_group():
    values, groups = np.array([1.0, 3.0, 5.0, 7.0]), np.array([4, 4, 2, 4], np.int32)
    own = values[groups == 4]
    expected = [(value - own.mean()) / own.std() for value in own]
    assert standard_scores(values, groups).tolist() == pytest.approx([*expected[:2], 0.0, expected[2]])
