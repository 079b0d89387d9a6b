from itertools import product

import numpy as np
import pytest
from hypothesis import given

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.prediction._link_kernels import noisy_or, paths_between
from halfgraph.prediction.baselines import TriplesByRelation
from halfgraph.prediction.rules import BUSY, LEAST_CONFIDENCE, SMOOTHING, VISITS, Rules
from halfgraph.query._kernels import edges_of
from small_graphs import Small, smalls
from small_models import small_model
from small_runs import people


def _room(graph: KnowledgeGraph) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(graph.entity_count, np.float32), np.empty(graph.entity_count, np.int64)


def listed(rules: Rules) -> list[tuple[int, int, float]]:
    return list(zip(rules.first.tolist(), rules.second.tolist(), rules.confidence.tolist(), strict=True))


def _leads(graph: KnowledgeGraph, head: int, first: int, second: int) -> set[int]:
    middles = set(graph.tails_of(head, first).tolist())
    if second < 0:
        return middles
    return {int(tail) for middle in middles for tail in graph.tails_of(middle, second)}


@given(smalls())
def test_all_ways_between_two_entities_are_found(small: Small):
    graph = small.graph
    edges, relations = edges_of(graph), range(graph.relation_count)
    for head, relation, tail in small.triples:
        _, found = paths_between(edges, np.array([head]), np.array([tail]), relation, 100, BUSY)
        expected = {(first, -1) for first in relations if first != relation and tail in graph.tails_of(head, first)}
        expected |= {
            (first, second)
            for first, second in product(relations, relations)
            for middle in graph.tails_of(head, first)
            if middle not in (head, tail) and tail in graph.tails_of(int(middle), second)
        }
        assert {(int(way // 100), int(way % 100) - 1) for way in found} == expected


def test_busy_entities_are_passed_over():
    graph = small_model(Architecture(heads=2)).graph
    found = [paths_between(edges_of(graph), np.array([0, 1]), np.array([1, 2]), 0, 100, busy)[0] for busy in (0, BUSY)]
    assert len(found[0]) == 0
    assert len(found[1]) > 0


@given(smalls())
def test_the_confidence_of_a_rule_is_the_share_of_its_right_predictions(small: Small):
    graph = small.graph
    known = TriplesByRelation.of(graph)
    for relation in range(graph.relation_count):
        rules = Rules.of(known, relation)
        heads = np.unique(known.of_relation(relation)[0]).tolist()
        assert (np.diff(rules.confidence) <= 0).all()
        for first, second, right in zip(
            rules.first.tolist(), rules.second.tolist(), rules.confidence.tolist(), strict=True
        ):
            hits = everything = 0
            for head in heads:
                led = _leads(graph, head, first, second) - {head}
                everything += len(led)
                hits += len(led & set(graph.tails_of(head, relation).tolist()))
            assert right == pytest.approx(min(hits / (everything + SMOOTHING), 0.99), abs=1e-6)
            assert right >= LEAST_CONFIDENCE


@given(smalls())
def test_what_rules_say_is_what_they_say_one_by_one(small: Small):
    graph = small.graph
    known, edges, room = TriplesByRelation.of(graph), edges_of(graph), _room(graph)
    sources, weights = np.array([0, 1]), np.array([1.0, 0.5], np.float32)
    for relation in range(graph.relation_count):
        rules = Rules.of(known, relation)
        wrong = np.ones(graph.entity_count)
        for first, second, right in zip(
            rules.first.tolist(), rules.second.tolist(), rules.confidence.tolist(), strict=True
        ):
            led = [_leads(graph, int(source), first, second) for source in sources]
            for entity in range(graph.entity_count):
                reached = max((weight for weight, some in zip(weights, led, strict=True) if entity in some), default=0)
                wrong[entity] *= 1 - right * reached
        assert rules.apply(edges, sources, weights, room) == pytest.approx(1 - wrong, abs=1e-5)
        assert not room[0].any()  # as it was


def test_a_rule_of_the_graph_is_found(tmp_path):
    graph = people(tmp_path, count=200)
    names = {str(graph.relations.names[place]).rsplit("/")[-1]: 2 * place for place in range(len(graph.relations))}
    rules = Rules.of(TriplesByRelation.of(graph.whole), names["citizenOf"])
    ways = list(zip(rules.first.tolist(), rules.second.tolist(), strict=True))
    assert (names["livesIn"], names["inCountry"]) in ways[:3]
    assert rules.confidence[0] > 0.9


def test_a_relation_without_edges_has_no_rules():
    graph = Small((), (3,), 2).graph
    rules = Rules.of(TriplesByRelation.of(graph), 0)
    assert len(rules) == 0
    assert not rules.apply(edges_of(graph), np.array([0]), np.ones(1, np.float32), _room(graph)).any()


def test_a_rule_has_a_maximum_length():
    triples = [(0, 0, tail) for tail in range(1, 60)] + [(tail, 2, 60 + tail) for tail in range(1, 60)]
    graph = Small(tuple(triples), (120,), 4).graph
    rules = Rules(np.array([0]), np.array([2]), np.array([0.5], np.float32))
    arguments = (edges_of(graph), np.array([0]), np.ones(1, np.float32), rules.first, rules.second, rules.confidence)
    counts = [np.count_nonzero(noisy_or(*arguments, visits, *_room(graph))) for visits in (VISITS, 20)]
    assert counts[0] == 59
    assert 5 <= counts[1] < 20
