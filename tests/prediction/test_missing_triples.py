"""The most probable missing triples, compared with the probability of every triple of a small graph."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.prediction import missing_triples
from halfgraph.prediction.link_predictor import LinkPredictor
from halfgraph.prediction.missing_triples import likely_triples
from small_graphs import smalls
from small_links import links_of, random_weights

GRAPHS = smalls().map(lambda small: small.graph)


def every_missing_triple(links: LinkPredictor) -> dict[tuple[int, int, int], float]:
    count = links.graph.entity_count
    every = ((h, r, t) for r in range(0, links.graph.relation_count, 2) for h in range(count) for t in range(count))
    return {
        triple: links.probability(*triple) for triple in every if triple[2] not in links.graph.tails_of(*triple[:2])
    }


@settings(max_examples=25)
@given(GRAPHS, st.floats(0.0, 1.0), st.integers(1, 30), st.floats(-5.0, 12.0), st.integers(1, 3))
def test_no_triple_that_is_wanted_is_left_out(graph, least, limit, bias, block):
    links = links_of(graph, random_weights(graph, bias))
    with patch.object(missing_triples, "BLOCK", block):
        scan = likely_triples(links, least=least, limit=limit)
    every = every_missing_triple(links)
    for triple in scan.triples:
        assert triple.probability == every[triple[:3]] >= least - 1e-6
    wanted = sorted((value for value in every.values() if value >= least and value > 0), reverse=True)[:limit]
    assert [triple.probability for triple in scan.triples] == pytest.approx(wanted, abs=1e-5)
    assert (scan.pairs, scan.left_out) == (graph.entity_count * graph.relation_count // 2, 0)


@settings(max_examples=25)
@given(GRAPHS, st.integers(0, 5))
def test_a_bound_of_log_odds_is_never_below_them(graph, seed):
    links = links_of(graph, random_weights(graph, seed=seed))
    for relation in range(graph.relation_count):
        heads = np.arange(graph.entity_count)
        assert (links.log_odds_bounds(heads, relation) >= links.log_odds(heads, relation)).all()


@given(GRAPHS, st.data())
def test_only_chosen_relations_and_heads_are_looked_at(graph, data):
    relation = 2 * data.draw(st.integers(0, graph.relation_count // 2 - 1))
    heads = data.draw(st.sets(st.integers(0, graph.entity_count - 1), min_size=1))
    links = links_of(graph)
    scan = likely_triples(links, least=0.0, limit=10_000, relations=[relation], heads=np.array(sorted(heads)))
    chosen = {t for t, p in every_missing_triple(links).items() if t[0] in heads and t[1] == relation and p > 0}
    assert {triple[:3] for triple in scan.triples} == chosen


@given(GRAPHS)
def test_in_a_large_graph_heads_without_evidence_for_a_relation_are_left_out_and_counted(graph):
    links = links_of(graph)
    with patch.object(missing_triples, "LARGE", 0):
        scan = likely_triples(links, least=0.0, limit=10_000)
    pairs = graph.entity_count * graph.relation_count // 2
    assert scan.pairs + scan.left_out == pairs
    looked_at = {triple[:2] for triple in scan.triples}
    for head, relation in ((h, r) for h in range(graph.entity_count) for r in range(0, graph.relation_count, 2)):
        has_relation = len(graph.tails_of(head, relation)) > 0
        near = [other for other in links.neighbours.ids[head].tolist() if other >= 0]
        if not has_relation and not any(len(graph.tails_of(other, relation)) for other in near):
            assert (head, relation) not in looked_at


def test_progress_counts_every_pair(graph):
    links, done = links_of(graph.train), []
    scan = likely_triples(links, least=0.5, limit=5, progress=lambda total, more: done.append((total, more)))
    assert {total for total, _ in done} == {scan.pairs}
    assert sum(more for _, more in done) == scan.pairs
