"""Witnesses: right where all is known, and as good as trying everything where something is missing."""

from itertools import product

import numpy as np
import pytest

from asked import engine_of
from halfgraph.answering.explanation import Laid
from halfgraph.answering.witness import Seeker

TWO_HOPS = "SELECT ?x { <person1> <knows> ?y . ?y <knows> ?z . ?z <lives_in> ?x }"


def test_the_witness_of_a_known_answer_is_all_in_the_graph(engine):
    found = engine.explain(TWO_HOPS, "city3")
    assert found.answer.known
    assert [(one.variable, one.label) for one in found.witness] == [("?y", "person2"), ("?z", "person3")]
    assert all(triple.known for triple in found.triples)


def test_the_witness_of_another_answer_says_which_triples_are_missing(graph, engine):
    found = engine.explain(TWO_HOPS, "city4")
    assert not found.answer.known
    for triple in found.triples:
        ends = [engine.names.find(end.entity) for end in (triple.subject, triple.object)]
        relation = 2 * graph.relations.find(triple.predicate.label)
        assert triple.known == (ends[1] in graph.whole.tails_of(ends[0], relation))
    assert any(not triple.known for triple in found.triples)


@pytest.mark.parametrize("city", range(6))
def test_no_witness_is_better_than_the_best_of_all(graph, city):
    engine = engine_of(graph, "train")
    seeker: Seeker = engine.reasons.seeker
    laid = Laid.of(engine.templates.read("SELECT ?x { <person1> <knows> ?y . ?y <lives_in> ?x }"))
    answer = graph.entities.find(f"city{city}")
    found = seeker.best(laid, answer)
    first, second = laid.edges
    likely = seeker.edges_from([(int(first.source.entity), int(first.relation)), (answer, int(second.relation) ^ 1)])
    likely[0][graph.train.tails_of(int(first.source.entity), int(first.relation))] = 1
    likely[1][graph.train.tails_of(answer, int(second.relation) ^ 1)] = 1
    assert found.score == pytest.approx(np.log(likely).sum(axis=0).max())


def test_two_variables_are_tried_together(graph):
    engine = engine_of(graph, "train")
    seeker, laid = engine.reasons.seeker, Laid.of(engine.templates.read(TWO_HOPS))
    answer, anchor = graph.entities.find("city4"), graph.entities.find("person1")
    knows, lives = (2 * graph.relations.find(name) for name in ("knows", "lives_in"))

    def likely(head, relation):
        row = seeker.edges_from([(head, relation)])[0]
        row[graph.train.tails_of(head, relation)] = 1
        return np.log(row)

    first, last = likely(anchor, knows), likely(answer, lives ^ 1)
    between = {z: likely(z, knows ^ 1) for z in range(graph.train.entity_count)}
    every = range(graph.train.entity_count)
    best = max(first[y] + between[z][y] + last[z] for y, z in product(every, every))
    assert seeker.best(laid, answer).score == pytest.approx(best)
