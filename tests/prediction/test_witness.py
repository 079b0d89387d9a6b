"""Witnesses: of known triples wherever the graph has one, else the most probable by the executor's own numbers."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.prediction import witness as module
from halfgraph.prediction.witness import find_witness
from halfgraph.query.exact import Exact
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Union, nodes, type_of
from small_graphs import Small, graphs_and_queries, smalls
from small_links import executor_of

FEW = settings(max_examples=60)


@FEW
@given(graphs_and_queries(most_nodes=8))
def test_a_known_answer_has_a_witness_of_known_triples(given_):
    small, query = given_
    executor = executor_of(small.graph)
    for entity in Exact(small.graph).answers(query).tolist():
        witness = find_witness(executor, query, entity)
        assert all(step.known for step in witness.steps if not step.negated)
        assert witness.entities[id(query)] == entity
        for node in nodes(query, negated=False):
            if id(node) in witness.entities and type_of(node) is not None:
                assert small.plain.is_of(witness.entities[id(node)], type_of(node))


@FEW
@given(graphs_and_queries(most_nodes=6), st.data())
def test_the_steps_of_a_witness_join_its_entities_and_have_the_probability_of_their_triples(given_, data):
    small, query = given_
    entity = data.draw(st.integers(0, len(small.plain.types) - 1))
    executor = executor_of(small.graph)
    witness = find_witness(executor, query, entity)
    assert witness.entities[id(query)] == (query.entity if isinstance(query, Anchor) else entity)
    for step in witness.steps:
        assert witness.entities[id(step.node)] == step.tail
        assert witness.entities[id(step.node.source)] == step.head
        triple = (step.head, int(step.node.relation), step.tail)
        assert step.known == (triple in small.plain.edges)
        assert step.probability == executor.links.probability(*triple)
    order = [step.negated for step in witness.steps]
    if not any(
        isinstance(node, Negate) for outer in nodes(query) if isinstance(outer, Negate) for node in nodes(outer.part)
    ):
        assert order == sorted(order)


@FEW
@given(graphs_and_queries(most_nodes=6, negations=False), st.data())
def test_no_witness_is_likelier_than_its_answer(given_, data):
    small, query = given_
    entity = data.draw(st.integers(0, len(small.plain.types) - 1))
    executor = executor_of(small.graph)
    score = executor.scores(query)[entity]
    witness = find_witness(executor, query, entity)
    types = [
        float(executor.types.probabilities(type_of(node))[witness.entities[id(node)]])
        for node in nodes(query)
        if id(node) in witness.entities and type_of(node) is not None
    ]
    if score:  # an anchor that meets a path excludes all other entities
        distinct = {(id(step.node), step.head, step.tail): step.probability for step in witness.steps}
        assert prod(distinct.values()) * prod(types) <= score + 1e-5


@FEW
@given(smalls(most_entities=8), st.data())
def test_an_answer_with_one_way_is_as_sure_as_its_missing_triples_together(small, data):
    ends = [
        (data.draw(st.integers(0, len(small.plain.types) - 1)), data.draw(st.integers(0, small.relation_count - 1)))
        for _ in range(2)
    ]
    query = Intersect(tuple(Project(Anchor(anchor), relation) for anchor, relation in ends))
    executor = executor_of(small.graph)
    for entity, score in enumerate(executor.scores(query)):
        steps = {(step.head, int(step.node.relation)): step for step in find_witness(executor, query, entity).steps}
        missing = [step.probability for step in steps.values() if not step.known]
        assert score == pytest.approx(prod(missing), abs=1e-5)
        if len(missing) == 1:
            assert score == pytest.approx(missing[0], abs=1e-6)


@FEW
@given(smalls(most_entities=6))
def test_the_variable_of_a_path_is_the_most_probable_entity_of_all(small):
    executor, entities = executor_of(small.graph, beam=100), range(len(small.plain.types))
    probability = executor.links.probability
    query = Project(Project(Anchor(0), 0), 1)
    for entity in entities:
        best = max(probability(0, 0, way) * probability(way, 1, entity) for way in entities)
        steps = find_witness(executor, query, entity).steps
        assert prod(step.probability for step in steps) == pytest.approx(best, rel=1e-4)


@settings(max_examples=20)
@given(smalls(most_entities=6))
def test_a_variable_used_twice_is_the_most_probable_entity_of_all(small):
    executor, entities = executor_of(small.graph), range(len(small.plain.types))
    probability = executor.links.probability
    variable = Project(Anchor(0), 0)
    query = Union((Project(Anchor(1), 1), Intersect((Project(variable, 0), Project(variable, 1)))))
    alone = query.parts[1]
    for entity in entities:
        ways = {
            way: probability(0, 0, way) * probability(way, 0, entity) * probability(way, 1, entity) for way in entities
        }
        steps = find_witness(executor, alone, entity).steps
        assert len(steps) == 3
        assert prod(step.probability for step in steps) == pytest.approx(max(ways.values()), rel=1e-4)
        within = find_witness(executor, query, entity).steps
        assert prod(step.probability for step in within) in (
            pytest.approx(probability(1, 1, entity), rel=1e-4),
            pytest.approx(max(ways.values()), rel=1e-4),
        )


@FEW
@given(smalls(most_entities=6))
def test_further_entities_of_a_variable_are_listed_if_nearly_as_probable(small):
    executor, entities = executor_of(small.graph, beam=100), range(len(small.plain.types))
    probability = executor.links.probability
    source = Project(Anchor(0), 0)
    for entity in entities:
        witness = find_witness(executor, Project(source, 1), entity)
        if not all(step.known for step in witness.steps):
            ways = {way: probability(0, 0, way) * probability(way, 1, entity) for way in entities}
            best = ways.pop(witness.entities[id(source)])
            listed = witness.others[id(source)]
            assert len(listed) <= module.OTHER_WAYS
            assert len({way for way, _ in listed} - {witness.entities[id(source)]}) == len(listed)
            for way, shown in listed:
                assert shown == pytest.approx(ways.pop(way), rel=1e-4)
            rest = max(ways.values(), default=0.0)
            least = listed[-1][1] if len(listed) == module.OTHER_WAYS else module.LEAST_SHARE * best
            assert rest <= least * (1 + 1e-4)


def test_no_witness_of_a_long_path_is_better_than_the_greedy_one_by_its_last_link():
    triples = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (4, 0, 5)]
    small = Small(tuple(triples), (6,), 2)
    executor = executor_of(small.graph, beam=100)
    query = Project(Project(Project(Anchor(0), 0), 0), 0)
    witness = find_witness(executor, query, 3)
    assert [(step.head, step.tail) for step in witness.steps] == [(0, 1), (1, 2), (2, 3)]
    source = executor.scores(query.source)
    for entity in (4, 5):
        last = find_witness(executor, query, entity).steps[-1]
        ways = [source[head] * executor.links.probability(head, 0, entity) for head in range(6)]
        assert last.head == int(np.argmax(ways))


def test_a_variable_used_twice_is_found_among_very_many():
    # Both 0 and 1 lead to 2..61; only 60 leads on to the answer in both ways.
    triples = [(head, 0, tail) for head in (0, 1) for tail in range(2, 62)] + [(60, 2, 62), (60, 4, 62), (5, 2, 63)]
    small = Small(triples=tuple(triples), sizes=(64,), relation_count=6)
    variable = Intersect((Project(Anchor(0), 0), Project(Anchor(1), 0)))
    query = Intersect((Project(variable, 2), Project(variable, 4)))
    witness = find_witness(executor_of(small.graph), query, 62)
    assert witness.entities[id(variable)] == 60
    assert all(step.known for step in witness.steps)


def test_a_union_is_witnessed_by_the_part_that_holds():
    small = Small(triples=((0, 0, 1), (2, 2, 3)), sizes=(5,), relation_count=4)
    query = Union((Project(Anchor(0), 0), Project(Anchor(2), 2)))
    (step,) = find_witness(executor_of(small.graph), query, 3).steps
    assert (step.head, step.tail, step.known) == (2, 3, True)


def test_a_union_without_a_known_part_is_witnessed_by_the_likeliest():
    small = Small(triples=((0, 0, 1), (2, 2, 3)), sizes=(5,), relation_count=4)
    executor = executor_of(small.graph)
    query = Union((Project(Anchor(0), 0), Project(Anchor(2), 2)))
    likely = {0: executor.links.probability(0, 0, 4), 2: executor.links.probability(2, 2, 4)}
    (step,) = find_witness(executor, query, 4).steps
    assert step.head == max(likely, key=lambda head: likely[head])
    assert step.probability == max(likely.values())


def test_a_negated_path_is_listed_last_as_the_way_in_which_it_could_hold():
    small = Small(triples=((0, 0, 1), (2, 2, 3), (3, 0, 4)), sizes=(6,), relation_count=4)
    query = Intersect((Negate(Project(Project(Anchor(2), 2), 0)), Project(Anchor(0), 0)))
    here, first, second = find_witness(executor_of(small.graph), query, 1).steps
    assert (here.head, here.tail, here.known, here.negated) == (0, 1, True, False)
    assert (first.head, first.negated, second.tail, second.negated) == (2, True, 1, True)
    assert not (first.known and second.known)
