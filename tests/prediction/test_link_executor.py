from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.link_predictor import LinkPredictor, LinkWeights
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Union
from small_graphs import Small, graphs_and_queries, unshared
from small_models import small_model

KNOWN_ONLY = LinkWeights(bias=-1e9)  # no missing link is likely
SOME = LinkWeights(
    bias=-2.0,
    cosine=3.0,
    inverse_cosine=1.0,
    level=0.1,
    vote=0.2,
    rules=0.1,
    popularity=0.1,
    is_tail=0.1,
    log_tail_count=-0.1,
    log_known_tails=0.2,
    anchored_without_tail=0.5,
)
# Votes and rules are shares over all heads of a step: with fewer heads one may count for more.
BY_HEAD = replace(SOME, vote=0.0, rules=0.0)
FEW = settings(max_examples=40)


def executor(small: Small, weights: LinkWeights, beam: int = 4) -> LinkExecutor:
    encoder = Encoder(Architecture(dim=8, heads=2), small.graph, torch.Generator().manual_seed(0))
    return LinkExecutor(LinkPredictor(EmbeddingIndex.of(encoder), small.graph, weights), beam)


@FEW
@given(graphs_and_queries(most_nodes=8), st.integers(1, 4))
def test_with_known_triples_alone_the_scores_of_a_tree_are_its_exact_answers(given_, beam):
    small, query = given_
    tree = unshared(query)
    scores = executor(small, KNOWN_ONLY, beam).scores(tree)
    assert set(np.unique(scores)) <= {0.0, 1.0}
    assert np.flatnonzero(scores).tolist() == Exact(small.graph).answers(tree).tolist()


@FEW
@given(graphs_and_queries(most_nodes=6, negations=False))
def test_known_answers_have_the_score_one_and_all_scores_are_shares(given_):
    small, query = given_
    scores = executor(small, SOME).scores(unshared(query))
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0
    assert scores[Exact(small.graph).answers(unshared(query))] == pytest.approx(1.0)


@FEW
@given(graphs_and_queries(most_nodes=8))
def test_a_variable_used_twice_is_one_entity(given_):
    small, query = given_
    answers = Exact(small.graph).answers(query)
    if len(small.plain.types) <= 8:  # all entities are tried for it
        scores = executor(small, KNOWN_ONLY, beam=16).scores(query)
        assert np.flatnonzero(scores).tolist() == answers.tolist()


def test_a_variable_without_any_way_to_it_leaves_the_rest_of_a_union():
    small = Small(triples=(), sizes=(2,), relation_count=2)
    nobody = Project(Anchor(0), 0)
    query = Union((Anchor(0), Intersect((Project(nobody, 0), Project(nobody, 1)))))
    assert np.flatnonzero(executor(small, KNOWN_ONLY).scores(query)).tolist() == [0]


def test_a_variable_used_twice_in_a_negation_is_any_entity():
    small = Small(triples=((0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 2, 3)), sizes=(5,), relation_count=4)
    twice = Project(Anchor(0), 0)  # 1 or 2
    query = Intersect((Project(Anchor(1), 0), Negate(Intersect((Project(twice, 0), Project(twice, 2))))))
    assert np.flatnonzero(executor(small, KNOWN_ONLY).scores(query)).tolist() == [3]  # neither leads there both ways
    both = Small(triples=(*small.triples, (1, 2, 3)), sizes=(5,), relation_count=4)
    assert not executor(both, KNOWN_ONLY).scores(query).any()


def test_the_score_of_a_variable_used_twice_counts_for_its_own_part_of_a_union_alone():
    small = Small(triples=((0, 0, 1),), sizes=(4,), relation_count=2)
    likely = Project(Anchor(3), 0)  # no known edge leads there
    known, guessed = Project(Anchor(0), 0), Intersect((Project(likely, 0), Project(likely, 1)))
    own = executor(small, SOME)
    assert own.scores(Union((known, guessed)))[1] == pytest.approx(1.0)
    assert own.scores(guessed).max() < 1


@FEW
@given(graphs_and_queries(most_nodes=4, negations=False, unions=False))
def test_with_evidence_by_head_a_beam_of_all_entities_is_never_worse(given_):
    small, query = given_
    tree = unshared(query)
    wide = executor(small, BY_HEAD, beam=100).scores(tree)
    for beam in (1, 2, 4):
        assert (executor(small, BY_HEAD, beam).scores(tree) <= wide + 1e-6).all()


@FEW
@given(graphs_and_queries(most_entities=8), st.data())
def test_a_beam_of_all_entities_is_never_worse_on_two_links(given_, data):
    small, _ = given_
    relations = [data.draw(st.integers(0, small.relation_count - 1)) for _ in range(2)]
    query = Project(Project(Anchor(0), relations[0]), relations[1])
    wide = executor(small, SOME, beam=100).scores(query)
    for beam in (1, 2, 4):
        assert (executor(small, SOME, beam).scores(query) <= wide + 1e-6).all()


@FEW
@given(graphs_and_queries(most_nodes=5))
def test_a_query_leaves_no_trace_in_the_executor(given_):
    small, query = given_
    own = executor(small, SOME)
    first = own.scores(query)
    own.scores(Anchor(0))
    assert (own.scores(query) == first).all()


@FEW
@given(graphs_and_queries(most_entities=8))
def test_parts_join_as_independent_events(given_):
    small, _ = given_
    first, second = Project(Anchor(0), 0), Project(Anchor(1), 1)
    own = executor(small, SOME)
    one, other = own.scores(first), own.scores(second)
    assert own.scores(Intersect((first, second))) == pytest.approx(one * other)
    assert own.scores(Union((first, second))) == pytest.approx(1 - (1 - one) * (1 - other), abs=1e-6)
    assert own.scores(Intersect((first, Negate(second)))) == pytest.approx(one * (1 - other), abs=1e-6)


def test_chunks_of_a_large_graph_give_the_same_scores(monkeypatch):
    model = small_model(Architecture(dim=8, heads=2))
    links = LinkPredictor(EmbeddingIndex.of(model.encoder.float()), model.graph, SOME)
    query = STRUCTURES[1].fill(np.array([0], np.int32), np.array([0, 1], np.int32))
    whole = LinkExecutor(links).scores(query)
    monkeypatch.setattr("halfgraph.prediction.link_executor.CHUNK", 7)
    assert LinkExecutor(links).scores(query) == pytest.approx(whole, abs=1e-6)


@FEW
@given(graphs_and_queries(most_nodes=6))
def test_with_all_entities_proposed_a_large_graph_is_as_a_small_one(given_):
    small, query = given_
    expected = executor(small, SOME).scores(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.link_executor.LARGE", 0)
        assert executor(small, SOME).scores(query) == pytest.approx(expected, abs=1e-6)


@FEW
@given(graphs_and_queries(most_nodes=6, negations=False))
def test_entities_that_are_not_proposed_keep_their_known_triples(given_):
    small, query = given_
    tree = unshared(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.link_executor.LARGE", 0)
        patch.setattr("halfgraph.prediction.link_executor.PROPOSED", 1)
        scores = executor(small, BY_HEAD).scores(tree)
    assert scores[Exact(small.graph).answers(tree)] == pytest.approx(1.0)
    assert (scores <= executor(small, BY_HEAD).scores(tree) + 1e-6).all()
