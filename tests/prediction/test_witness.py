"""Witnesses: of known triples wherever the graph has one, else the best by the executor's own scores."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.baselines import TriplesByRelation
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.link_predictor import CosineLinks, LinkPredictor, LinkWeights
from halfgraph.prediction.witness import find_witness
from halfgraph.query.exact import Exact
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Union, nodes, type_of
from small_graphs import Small, graphs_and_queries, unshared

WEIGHTS = LinkWeights(bias=-2.0, cosine=3.0, inverse_cosine=1.0, level=0.1, vote=0.2, rules=0.1, popularity=0.1)
WITHOUT_VOTES = LinkWeights(bias=-2.0, cosine=3.0, inverse_cosine=1.0, level=0.1, popularity=0.1)
FEW = settings(max_examples=60)


def executors(small: Small, beam: int = 4) -> list[LinkExecutor]:
    """One by link weights, one by cosines alone."""
    index = EmbeddingIndex.of(Encoder(Architecture(dim=8, heads=2), small.graph, torch.Generator().manual_seed(0)))
    cosines = CosineLinks(index, TriplesByRelation.of(small.graph), lambda cosine: np.clip(cosine, 0, 1) / 2)
    return [LinkExecutor(links, beam) for links in (LinkPredictor(index, small.graph, WEIGHTS), cosines)]


@FEW
@given(graphs_and_queries(most_nodes=8))
def test_a_known_answer_has_a_witness_of_known_triples(given_):
    small, query = given_
    for executor in executors(small):
        for entity in Exact(small.graph).answers(query).tolist():
            witness = find_witness(executor, query, entity)
            assert all(step.known for step in witness.steps if not step.negated)
            assert witness.entities[id(query)] == entity
            for node in nodes(query, negated=False):
                if id(node) in witness.entities and type_of(node) is not None:
                    assert small.plain.is_of(witness.entities[id(node)], type_of(node))


@FEW
@given(graphs_and_queries(most_nodes=6), st.data())
def test_the_steps_of_a_witness_join_its_entities_and_say_what_is_known(given_, data):
    small, query = given_
    entity = data.draw(st.integers(0, len(small.plain.types) - 1))
    for executor in executors(small):
        witness = find_witness(executor, query, entity)
        assert witness.entities[id(query)] == (query.entity if isinstance(query, Anchor) else entity)
        for step in witness.steps:
            assert witness.entities[id(step.node)] == step.tail
            assert witness.entities[id(step.node.source)] == step.head
            assert step.known == (step.tail in small.graph.tails_of(step.head, int(step.node.relation)))
            assert step.probability == 1.0 if step.known else 0.0 <= step.probability < 1.0
        order = [step.negated for step in witness.steps]
        if not any(
            isinstance(node, Negate)
            for outer in nodes(query)
            if isinstance(outer, Negate)
            for node in nodes(outer.part)
        ):
            assert order == sorted(order)


@FEW
@given(graphs_and_queries(most_nodes=5, negations=False, unions=False, types=False))
def test_the_probabilities_of_a_witness_multiply_to_the_score(given_):
    small, query = given_
    tree = unshared(query)
    first, second = executors(small, beam=100)
    # Votes and rules are shared by all heads of a step: only without them does a link alone have the same probability.
    assert isinstance(first.links, LinkPredictor)
    for executor in (LinkExecutor(first.links.copy(WITHOUT_VOTES), 100), second):
        scores = executor.scores(tree)
        for entity in range(len(small.plain.types)):
            witness = find_witness(executor, tree, entity)
            if witness.steps and scores[entity]:  # an anchor that meets a path excludes all other entities
                assert np.prod([step.probability for step in witness.steps]) == pytest.approx(scores[entity], abs=1e-5)


@FEW
@given(graphs_and_queries(most_entities=6, most_nodes=2))
def test_no_witness_of_a_path_is_better_than_the_best_of_all(given_):
    small, _ = given_
    executor = executors(small, beam=100)[1]
    entities = range(len(small.plain.types))
    query = Project(Project(Project(Anchor(0), 0), 1), 0)

    def likely(head: int, relation: int) -> np.ndarray:
        evidence = executor.links.evidence(np.ones(len(entities), np.float32), relation)
        row = executor.links.probabilities(np.array([head]), relation, evidence, slice(None), anchored=False)[0].numpy()
        row[small.graph.tails_of(head, relation)] = 1.0
        return row

    links = {(head, relation): likely(head, relation) for head, relation in product(entities, (0, 1))}
    for entity in entities:
        best = max(links[0, 0][y] * links[y, 1][z] * links[z, 0][entity] for y, z in product(entities, entities))
        steps = find_witness(executor, query, entity).steps
        assert np.prod([step.probability for step in steps]) == pytest.approx(best, rel=1e-4)


def test_a_variable_used_twice_is_found_among_very_many():
    # Both 0 and 1 lead to 2..61; only 60 leads on to the answer in both ways.
    triples = [(head, 0, tail) for head in (0, 1) for tail in range(2, 62)] + [(60, 2, 62), (60, 4, 62), (5, 2, 63)]
    small = Small(triples=tuple(triples), sizes=(64,), relation_count=6)
    variable = Intersect((Project(Anchor(0), 0), Project(Anchor(1), 0)))
    query = Intersect((Project(variable, 2), Project(variable, 4)))
    witness = find_witness(executors(small)[0], query, 62)
    assert witness.entities[id(variable)] == 60
    assert all(step.known for step in witness.steps)


def test_a_union_is_witnessed_by_the_part_that_holds():
    small = Small(triples=((0, 0, 1), (2, 2, 3)), sizes=(5,), relation_count=4)
    query = Union((Project(Anchor(0), 0), Project(Anchor(2), 2)))
    for executor in executors(small):
        (step,) = find_witness(executor, query, 3).steps
        assert (step.head, step.tail, step.known) == (2, 3, True)


def test_a_negated_path_is_listed_last_as_the_way_in_which_it_could_hold():
    small = Small(triples=((0, 0, 1), (2, 2, 3), (3, 0, 4)), sizes=(6,), relation_count=4)
    query = Intersect((Negate(Project(Project(Anchor(2), 2), 0)), Project(Anchor(0), 0)))
    for executor in executors(small):
        here, first, second = find_witness(executor, query, 1).steps
        assert (here.head, here.tail, here.known, here.negated) == (0, 1, True, False)
        assert (first.head, first.negated, second.tail, second.negated) == (2, True, 1, True)
        assert not (first.known and second.known)
