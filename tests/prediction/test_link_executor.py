"""The executor against plain enumeration, and the laws of its probabilities on small random graphs."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.model.architecture import Architecture
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, type_of
from small_graphs import Small, graphs_and_queries, queries, smalls, unshared
from small_links import executor_of, known_only
from small_models import small_model

FEW = settings(max_examples=40)
WIDE = 100  # a beam of all entities


def enumerated(executor: LinkExecutor, query: Query, entity: int) -> float:
    """The probability of an answer to a tree, one entity after another."""
    links = executor.links
    match query:
        case Anchor():
            return float(query.entity == entity)
        case Project():
            ways = (
                enumerated(executor, query.source, head) * links.probability(head, int(query.relation), entity)
                for head in range(links.graph.entity_count)
            )
            own = 1 - prod(1 - way for way in ways)
        case Intersect():
            own = prod(enumerated(executor, part, entity) for part in set(query.parts))
        case Union():
            own = 1 - prod(1 - enumerated(executor, part, entity) for part in set(query.parts))
        case Negate():
            return 1 - enumerated(executor, query.part, entity)
    type_id = type_of(query)
    return own if type_id is None else own * float(executor.types.probabilities(type_id)[entity])


@FEW
@given(graphs_and_queries(most_entities=5, most_nodes=5))
def test_the_probability_of_a_tree_is_that_of_enumerated_ways(given_):
    small, query = given_
    tree = unshared(query)
    executor = executor_of(small.graph, beam=WIDE)
    expected = [enumerated(executor, tree, entity) for entity in range(small.graph.entity_count)]
    assert executor.scores(tree) == pytest.approx(expected, abs=1e-5)


@FEW
@given(graphs_and_queries(most_nodes=8), st.integers(1, 4))
def test_known_triples_alone_give_the_exact_answers(given_, beam):
    small, query = given_
    tree = unshared(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.type_predictor.MISSING", 0.0)
        scores = executor_of(small.graph, known_only(small.graph), beam=beam).scores(tree)
    assert set(np.unique(scores)) <= {0.0, 1.0}
    assert np.flatnonzero(scores).tolist() == Exact(small.graph).answers(tree).tolist()


@FEW
@given(graphs_and_queries(most_entities=8, most_nodes=8, types=False))
def test_a_variable_used_twice_is_one_entity(given_):
    small, query = given_
    scores = executor_of(small.graph, known_only(small.graph)).scores(query)  # all entities are tried for it
    assert np.flatnonzero(scores).tolist() == Exact(small.graph).answers(query).tolist()


@FEW
@given(graphs_and_queries(most_nodes=6, negations=False))
def test_known_answers_have_probability_one_and_no_probability_is_above(given_):
    small, query = given_
    tree = unshared(query)
    scores = executor_of(small.graph).scores(tree)
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0
    assert scores[Exact(small.graph).answers(tree)] == pytest.approx(1.0)


@st.composite
def two_queries(draw) -> tuple[Small, Query, Query]:
    """A graph and two queries, perhaps with variables that are used twice."""
    small = draw(smalls(most_entities=6))
    return small, *(draw(queries(small, most_nodes=5, negations=False)) for _ in range(2))


@FEW
@given(two_queries())
def test_a_condition_never_raises_a_probability(given_):
    small, query, condition = given_
    executor = executor_of(small.graph)
    both = executor.scores(Intersect((query, condition)))
    assert (both <= executor.scores(query) + 1e-6).all()
    assert (both <= executor.scores(condition) + 1e-6).all()
    assert (executor.scores(Intersect((query, Negate(condition)))) <= executor.scores(query) + 1e-6).all()


@FEW
@given(two_queries())
def test_parts_join_as_independent_events(given_):
    small, first, second = given_
    executor = executor_of(small.graph)
    one, other = executor.scores(first), executor.scores(second)
    both = one * other if first != second else one
    assert executor.scores(Intersect((first, second))) == pytest.approx(both, abs=1e-5)
    either = 1 - (1 - one) * (1 - other) if first != second else one
    assert executor.scores(Union((first, second))) == pytest.approx(either, abs=1e-5)
    assert executor.scores(Intersect((first, Negate(second)))) == pytest.approx(one * (1 - other), abs=1e-5)


@FEW
@given(two_queries())
def test_a_union_is_at_least_as_sure_as_its_best_part(given_):
    small, *parts = given_
    executor = executor_of(small.graph)
    scores = executor.scores(Union(tuple(parts)))
    assert (scores >= np.maximum(*map(executor.scores, parts)) - 1e-6).all()


@FEW
@given(smalls(most_entities=8), st.data())
def test_a_missing_link_from_an_anchor_has_the_probability_of_its_triple(small, data):
    relation = data.draw(st.integers(0, small.relation_count - 1))
    executor = executor_of(small.graph)
    for head in range(small.graph.entity_count):
        scores = executor.scores(Project(Anchor(head), relation))
        alone = [executor.links.probability(head, relation, tail) for tail in range(len(scores))]
        assert scores == pytest.approx(alone, abs=1e-6)
        back = [executor.scores(Project(Anchor(tail), relation ^ 1))[head] for tail in range(len(scores))]
        assert scores == pytest.approx(back, abs=1e-5)


@FEW
@given(smalls(most_entities=8), st.data())
def test_an_answer_that_lacks_two_triples_is_as_sure_as_their_product(small, data):
    relations = [data.draw(st.integers(0, small.relation_count - 1)) for _ in range(2)]
    anchors = [data.draw(st.integers(0, small.graph.entity_count - 1)) for _ in range(2)]
    executor = executor_of(small.graph)
    ends = list(zip(anchors, relations, strict=True))
    scores = executor.scores(Intersect(tuple(Project(Anchor(anchor), relation) for anchor, relation in ends)))
    ends = sorted(set(ends))
    for entity, score in enumerate(scores):
        assert score == pytest.approx(prod(executor.links.probability(*end, entity) for end in ends), abs=1e-6)


def test_a_variable_without_any_way_to_it_leaves_the_rest_of_a_union():
    small = Small(triples=(), sizes=(2,), relation_count=2)
    nobody = Project(Anchor(0), 0)
    query = Union((Anchor(0), Intersect((Project(nobody, 0), Project(nobody, 1)))))
    assert np.flatnonzero(executor_of(small.graph, known_only(small.graph)).scores(query)).tolist() == [0]


def test_a_union_where_the_paths_of_such_a_variable_meet_keeps_its_other_parts():
    small = Small(triples=(), sizes=(2,), relation_count=2)
    nobody = Project(Anchor(0), 0)
    query = Union((nobody, Intersect((nobody,)), Anchor(0)))
    assert np.flatnonzero(executor_of(small.graph, known_only(small.graph)).scores(query)).tolist() == [0]


def test_a_variable_used_twice_in_a_negation_is_any_entity():
    small = Small(triples=((0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 2, 3)), sizes=(5,), relation_count=4)
    twice = Project(Anchor(0), 0)  # 1 or 2
    query = Intersect((Project(Anchor(1), 0), Negate(Intersect((Project(twice, 0), Project(twice, 2))))))
    executor = executor_of(small.graph, known_only(small.graph))
    assert np.flatnonzero(executor.scores(query)).tolist() == [3]  # neither leads there both ways
    both = Small(triples=(*small.triples, (1, 2, 3)), sizes=(5,), relation_count=4)
    assert not executor_of(both.graph, known_only(both.graph)).scores(query).any()


@FEW
@given(smalls(most_entities=6), st.data())
def test_a_variable_used_twice_is_one_entity_in_each_of_its_ways(small, data):
    first, there, back = (data.draw(st.integers(0, small.relation_count - 1)) for _ in range(3))
    variable = Project(Anchor(0), first)
    executor, count = executor_of(small.graph), small.graph.entity_count
    scores = executor.scores(Intersect((Project(variable, there), Project(variable, back))))
    known = executor.links.probability
    for entity in range(count):
        ways = [
            known(0, first, way) * prod(known(way, relation, entity) for relation in {there, back})
            for way in range(count)
        ]
        assert scores[entity] == pytest.approx(1 - prod(1 - way for way in ways), abs=1e-5)


@FEW
@given(two_queries(), st.booleans())
def test_a_part_counts_once_if_another_one_uses_a_variable_twice(given_, further):
    small, part, _ = given_
    variable = Project(Anchor(0), 0)
    twice: Query = Intersect((Project(Project(variable, 0), 1), Project(variable, 1)))
    twice = Project(twice, 0) if further else twice
    executor = executor_of(small.graph)
    one, other = executor.scores(part), executor.scores(twice)
    either = 1 - (1 - one) * (1 - other) if part != twice else one
    assert executor.scores(Union((part, twice))) == pytest.approx(either, abs=1e-5)
    both = one * other if part != twice else one
    assert executor.scores(Intersect((part, twice))) == pytest.approx(both, abs=1e-5)
    assert executor.scores(Intersect((part, Negate(twice)))) == pytest.approx(one * (1 - other), abs=1e-5)


@FEW
@given(smalls())
def test_a_beam_of_all_entities_is_never_worse_on_a_path(small):
    path = Project(Project(Project(Anchor(0), 0), 1), 0)
    wide = executor_of(small.graph, beam=WIDE).scores(path)
    for beam in (1, 2, 4):
        assert (executor_of(small.graph, beam=beam).scores(path) <= wide + 1e-6).all()


@FEW
@given(graphs_and_queries(most_nodes=5))
def test_a_query_leaves_no_trace_in_the_executor(given_):
    small, query = given_
    executor = executor_of(small.graph)
    first = executor.scores(query)
    executor.scores(Anchor(0))
    assert (executor.scores(query) == first).all()


def test_links_in_chunks_give_the_same_scores(monkeypatch):
    model = small_model(Architecture(dim=8, heads=2))
    query = STRUCTURES[1].fill(np.array([0], np.int32), np.array([0, 1], np.int32))
    whole = executor_of(model.graph).scores(query)
    monkeypatch.setattr("halfgraph.prediction.link_predictor.CHUNK", 7)
    monkeypatch.setattr("halfgraph.prediction.link_features.CHUNK", 1024)
    assert executor_of(model.graph).scores(query) == pytest.approx(whole, abs=1e-6)


@FEW
@given(smalls(), st.data())
def test_a_batch_has_the_scores_of_its_queries_alone(small, data):
    asked = data.draw(st.lists(queries(small, most_nodes=6), min_size=1, max_size=6))
    together = list(executor_of(small.graph).batch_scores(asked))
    alone = executor_of(small.graph)
    for query, scores in zip(asked, together, strict=True):
        assert scores == pytest.approx(alone.scores(query), abs=1e-6)


@FEW
@given(graphs_and_queries(most_nodes=6))
def test_with_all_entities_proposed_a_large_graph_is_as_a_small_one(given_):
    small, query = given_
    expected = executor_of(small.graph).scores(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.link_executor.LARGE", 0)
        patch.setattr("halfgraph.prediction.link_predictor.LARGE", 0)
        assert executor_of(small.graph).scores(query) == pytest.approx(expected, abs=1e-5)


@FEW
@given(graphs_and_queries(most_nodes=6, negations=False))
def test_entities_that_are_not_proposed_keep_their_known_triples(given_):
    small, query = given_
    tree = unshared(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.link_executor.LARGE", 0)
        patch.setattr("halfgraph.prediction.link_executor.PROPOSED", 1)
        scores = executor_of(small.graph).scores(tree)
    assert scores[Exact(small.graph).answers(tree)] == pytest.approx(1.0)
