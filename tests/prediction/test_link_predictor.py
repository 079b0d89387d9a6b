"""Link probabilities: a weighted sum of features, and the laws that it obeys."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.model.architecture import Architecture
from halfgraph.model.projection import PROJECTIONS
from halfgraph.prediction import link_predictor
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_features import FEATURES
from halfgraph.prediction.link_predictor import LinkPredictor
from small_graphs import Small, smalls
from small_links import features_of, links_of, random_complex, random_weights
from small_models import SmallModel, small_model

FEW = settings(max_examples=40)
COLUMN = {name: column for column, name in enumerate(FEATURES)}


@pytest.fixture(params=sorted(PROJECTIONS))
def model(request: pytest.FixtureRequest) -> SmallModel:
    return small_model(Architecture(projection=request.param, heads=2))


@pytest.fixture
def links(model: SmallModel) -> LinkPredictor:
    graph = model.graph
    index = EmbeddingIndex.of(model.encoder.float())
    return LinkPredictor(index, random_complex(graph), graph, random_weights(graph))


def test_log_odds_are_the_weighted_sum_of_the_features_of_both_directions(links):
    graph, weights = links.graph, links.weights
    every = np.arange(graph.entity_count)
    for head, relation in ((0, 0), (3, 1), (5, 2)):
        there, back = features_of(links, head, relation, every)
        own = weights.matrix[links.sorts(relation, np.array([head]))[0]]
        others = weights.matrix[links.sorts(relation ^ 1, every)]
        constant = weights.bias + weights.offsets[relation // 2]
        expected = there @ own + (back * others).sum(axis=1) + constant
        found = links.log_odds(np.array([head]), relation)[0]
        assert found == pytest.approx(expected, abs=1e-3)
        some = np.array([1, 4])
        assert links.log_odds(np.array([head]), relation, some)[0] == pytest.approx(found[some], abs=1e-4)
        likely = links.probabilities(np.array([head]), relation)[0]
        unknown = np.setdiff1d(every, [*graph.tails_of(head, relation), head])
        assert likely[unknown] == pytest.approx(1 / (1 + np.exp(-found[unknown])), abs=1e-5)


def test_heads_have_weights_by_the_number_of_their_known_tails():
    triples = [(0, 0, tail) for tail in range(1, 8)] + [(1, 0, 2), (2, 0, 3), (2, 0, 4)]
    links = links_of(Small(tuple(triples), (9,), 2).graph)
    assert links.sorts(0).tolist() == [2, 1, 1, 0, 0, 0, 0, 0, 0]
    only = replace(
        links.weights, by_sort=tuple(tuple(np.eye(len(FEATURES))[COLUMN["constant"]] * sort) for sort in (0, 10, 100))
    )
    odds = replace(links, weights=replace(only, offsets=())).log_odds(np.array([0, 1, 3]), 0)
    # 0 leads to many, 1 to one, 3 to none; to 2, 3 and 4 lead two, two and two, to 8 none.
    assert odds[:, 8].tolist() == pytest.approx([100 + 5, 10 + 5, 5], abs=1e-3)
    assert odds[:, 4].tolist() == pytest.approx([100 + 15, 10 + 15, 15], abs=1e-3)


def test_heads_in_a_batch_have_the_log_odds_of_each_alone(links):
    heads = np.array([2, 0, 6])
    together = links.log_odds(heads, 1)
    for place, head in enumerate(heads):
        assert together[place] == pytest.approx(links.log_odds(np.array([head]), 1)[0], abs=1e-4)


def test_pairs_of_several_relations_have_the_probabilities_of_each_alone(links):
    pairs = [(head, relation) for head in (2, 0, 6) for relation in (3, 0, 1)]
    rows = links.rows(pairs)
    alone = replace(links)  # without the rows that are kept
    for head, relation in pairs:
        expected = alone.probabilities(np.array([head]), relation)[0]
        assert rows[head, relation] == pytest.approx(expected, abs=1e-6)


def test_what_was_prepared_changes_no_log_odds(links):
    done = []
    ready = replace(links, prepared=links.prepare(done.append))
    assert sum(done) == links.graph.relation_count
    for relation in range(links.graph.relation_count):
        heads = np.array([0, 5])
        assert ready.log_odds(heads, relation) == pytest.approx(links.log_odds(heads, relation), abs=1e-5)


def test_missing_triples_shift_the_log_odds(links):
    more = replace(links, missing=3.0).log_odds(np.array([0]), 1) - links.log_odds(np.array([0]), 1)
    assert more == pytest.approx(log(3), abs=1e-4)


@FEW
@given(smalls())
def test_the_probability_of_a_triple_is_the_same_from_both_ends(small):
    links, every = links_of(small.graph), np.arange(small.graph.entity_count)
    for relation in range(0, small.relation_count, 2):
        there = links.probabilities(every, relation)
        assert there == pytest.approx(links.probabilities(every, relation ^ 1).T, abs=1e-5)


@FEW
@given(smalls(), st.data())
def test_a_triple_has_one_probability_however_it_is_asked_for(small, data):
    links, count = links_of(small.graph), small.graph.entity_count
    head, tail = (data.draw(st.integers(0, count - 1)) for _ in range(2))
    relation = data.draw(st.integers(0, small.relation_count - 1))
    alone = links.probability(head, relation, tail)
    assert 0.0 <= alone <= 1.0
    assert (alone == 1.0) == ((head, relation, tail) in small.plain.edges)
    if alone < 1.0:
        row = links.probabilities(np.array([head]), relation)[0]
        assert float(row[tail]) == pytest.approx(alone, abs=1e-5)
        last = links.probabilities(np.array([head]), relation, slice(tail, count))[0]
        assert float(last[0]) == pytest.approx(alone, abs=1e-5)


@FEW
@given(smalls())
def test_a_relation_without_loops_predicts_none_and_one_with_a_loop_may(small):
    links, every = links_of(small.graph), np.arange(small.graph.entity_count)
    for relation in range(small.relation_count):
        loops = {head for head, own, tail in small.plain.edges if own == relation and head == tail}
        likely = links.probabilities(every, relation).diagonal()
        expected = np.array([bool(loops) and entity not in loops for entity in every])
        assert ((likely > 0) == expected).all()


def test_known_triples_are_left_out_of_what_is_missing(links):
    for relation in range(links.graph.relation_count):
        for head in range(links.graph.entity_count):
            row = links.probabilities(np.array([head]), relation)[0]
            known = links.graph.tails_of(head, relation)
            assert not row[known].any()
            assert row[np.setdiff1d(np.arange(len(row)), [*known, head])].all()


def test_a_large_graph_has_the_same_log_odds(links, monkeypatch):
    heads, tails = np.array([0, 3]), np.array([1, 4, 9])
    expected = links.log_odds(heads, 1, tails)
    monkeypatch.setattr(link_predictor, "LARGE", 0)
    assert links.log_odds(heads, 1, tails) == pytest.approx(expected, abs=1e-4)


def test_rows_that_are_kept_are_those_computed_and_the_oldest_are_dropped(links, monkeypatch):
    count = links.graph.entity_count
    monkeypatch.setattr(link_predictor, "CACHE", 3 * count)
    expected = {head: links.rows([(head, 0)])[head, 0].copy() for head in range(6)}
    for heads in ([0, 1], [1, 2, 3], [0, 5, 4, 2], [3]):
        found = links.probabilities(np.array(heads), 0)
        assert found == pytest.approx(np.stack([expected[head] for head in heads]), abs=1e-6)
        assert len(links._rows) <= 3
        found[:] = 0  # the caller's own


def test_threads_may_share_the_rows_that_are_kept(links, monkeypatch):
    monkeypatch.setattr(link_predictor, "CACHE", 2 * links.graph.entity_count)
    row, before = np.zeros(links.graph.entity_count, np.float32), sys.getswitchinterval()
    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda turn: links._remember({(turn, 0): row}), range(20_000)))
    finally:
        sys.setswitchinterval(before)
    assert len(links._rows) <= 2
