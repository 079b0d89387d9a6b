import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.link_executor import NORMS, Scored
from halfgraph.prediction.link_predictor import Edges, Scale
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, nodes
from small_graphs import Small, graphs_and_queries, unshared

SOME = Scale(
    bias=-2.0,
    cosine=3.0,
    back=1.0,
    level=0.1,
    vote=0.2,
    rules=0.1,
    popularity=0.1,
    ends=0.1,
    often=-0.1,
    breadth=0.2,
    asked=0.5,
)
FEW = settings(max_examples=40)


def scored(small: Small, scale: Scale, beam: int = 4, norm: str = "product") -> Scored:
    encoder = Encoder(Architecture(dim=8, heads=2), small.graph, torch.Generator().manual_seed(0))
    return Scored(Edges.of(encoder, small.graph, scale), beam, norm)


@FEW
@given(graphs_and_queries(most_nodes=8), st.sampled_from(sorted(NORMS)), st.integers(1, 4))
def test_with_known_edges_alone_the_scores_of_a_tree_are_its_exact_answers(given_, norm, beam):
    small, query = given_
    tree = unshared(query)
    scores = scored(small, Scale.certain(), beam, norm).scores(tree)
    assert set(np.unique(scores)) <= {0.0, 1.0}
    assert np.flatnonzero(scores).tolist() == Exact(small.graph).answers(tree).tolist()


@FEW
@given(graphs_and_queries(most_nodes=6, negations=False))
def test_known_answers_have_the_score_one_and_all_scores_are_shares(given_):
    small, query = given_
    scores = scored(small, SOME).scores(unshared(query))
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0
    assert scores[Exact(small.graph).answers(unshared(query))] == pytest.approx(1.0)


@FEW
@given(graphs_and_queries(most_nodes=8))
def test_a_variable_used_twice_is_one_entity(given_):
    small, query = given_
    answers = Exact(small.graph).answers(query)
    if len(small.plain.types) <= 8:  # all entities are tried for it
        scores = scored(small, Scale.certain(), beam=16).scores(query)
        assert np.flatnonzero(scores).tolist() == answers.tolist()


def test_a_variable_without_any_way_to_it_leaves_the_rest_of_a_union():
    small = Small(triples=(), sizes=(2,), relation_count=2)
    nobody = Project(Anchor(0), 0)
    query = Union((Anchor(0), Intersect((Project(nobody, 0), Project(nobody, 1)))))
    assert np.flatnonzero(scored(small, Scale.certain()).scores(query)).tolist() == [0]


def test_a_variable_used_twice_in_a_negation_is_any_entity():
    small = Small(triples=((0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 2, 3)), sizes=(5,), relation_count=4)
    twice = Project(Anchor(0), 0)  # 1 or 2
    query = Intersect((Project(Anchor(1), 0), Negate(Intersect((Project(twice, 0), Project(twice, 2))))))
    assert np.flatnonzero(scored(small, Scale.certain()).scores(query)).tolist() == [3]  # neither leads there both ways
    both = Small(triples=(*small.triples, (1, 2, 3)), sizes=(5,), relation_count=4)
    assert not scored(both, Scale.certain()).scores(query).any()


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_how_likely_a_variable_used_twice_is_counts_for_its_own_part_of_a_union_alone(norm):
    small = Small(triples=((0, 0, 1),), sizes=(4,), relation_count=2)
    likely = Project(Anchor(3), 0)  # no known edge leads there
    known, guessed = Project(Anchor(0), 0), Intersect((Project(likely, 0), Project(likely, 1)))
    meaning = scored(small, SOME, norm=norm)
    assert meaning.scores(Union((known, guessed)))[1] == pytest.approx(1.0)
    assert meaning.scores(guessed).max() < 1


@FEW
@given(graphs_and_queries(most_nodes=4, negations=False, unions=False))
def test_a_beam_of_all_entities_is_never_worse(given_):
    small, query = given_
    tree = unshared(query)
    wide = scored(small, SOME, beam=100).scores(tree)
    for beam in (1, 2, 4):
        assert (scored(small, SOME, beam).scores(tree) <= wide + 1e-6).all()


@FEW
@given(graphs_and_queries(most_nodes=6), st.data())
def test_a_witness_is_a_way_to_the_answer_with_its_known_and_likely_edges(given_, data):
    small, query = given_
    meaning = scored(small, SOME)
    entity = data.draw(st.integers(0, len(small.plain.types) - 1))
    witness = meaning.witness(query, entity)
    assert witness.entities[id(query)] == (query.entity if isinstance(query, Anchor) else entity)
    assert witness.score == pytest.approx(float(scored(small, SOME).scores(query)[entity]), abs=1e-6)
    for step in witness.steps:
        assert witness.entities[id(step.node)] == step.tail
        assert witness.entities[id(step.node.source)] == step.head
        assert step.known == (step.tail in small.graph.tails_of(step.head, int(step.node.relation)))
        assert step.probability == 1.0 if step.known else 0.0 <= step.probability < 1.0


@FEW
@given(graphs_and_queries(most_nodes=5, negations=False, unions=False, types=False))
def test_the_score_of_a_path_is_that_of_its_witness(given_):
    small, query = given_
    meaning = scored(small, SOME, beam=100)
    tree = unshared(query)
    if any(isinstance(node, Intersect) for node in nodes(tree)):
        return
    # Votes and rules are one for all of a hop's heads, so only what the model says is the same for a head alone.
    plain = Scored(meaning.edges.another(Scale(**{**SOME.to_dict(), "vote": 0.0, "rules": 0.0, "offsets": ()})), 100)
    for entity in range(len(small.plain.types)):
        witness = plain.witness(tree, entity)
        product = np.prod([step.probability for step in witness.steps]) if witness.steps else None
        if product is not None:
            assert witness.score == pytest.approx(product, abs=1e-5)


@FEW
@given(graphs_and_queries(most_nodes=5))
def test_one_meaning_can_be_asked_again_and_again(given_):
    small, query = given_
    meaning = scored(small, SOME)
    first = meaning.scores(query)
    meaning.scores(Anchor(0))
    assert (meaning.scores(query) == first).all()


def _two(small: Small) -> tuple[Query, Query]:
    return Project(Anchor(0), 0), Project(Anchor(1), 1)


@FEW
@given(graphs_and_queries(most_entities=8))
def test_norms_join_as_they_say(given_):
    small, _ = given_
    first, second = _two(small)
    if len(small.plain.types) < 2 or small.relation_count < 2:
        return
    for norm, joined in (("product", np.multiply), ("minimum", np.minimum)):
        meaning = scored(small, SOME, norm=norm)
        one, other = meaning.scores(first).copy(), meaning.scores(second).copy()
        assert meaning.scores(Intersect((first, second))) == pytest.approx(joined(one, other))
        assert meaning.scores(Union((first, second))) == pytest.approx(1 - joined(1 - one, 1 - other), abs=1e-6)
        assert meaning.scores(Intersect((first, Negate(second)))) == pytest.approx(joined(one, 1 - other), abs=1e-6)


def test_pieces_of_a_large_graph_give_the_same_scores(monkeypatch):
    from small_models import small_model

    model = small_model(Architecture(dim=8, heads=2))
    edges = Edges.of(model.encoder.float(), model.graph, SOME)
    query = STRUCTURES[1].fill(np.array([0], np.int32), np.array([0, 1], np.int32))
    whole = Scored(edges).scores(query)
    monkeypatch.setattr("halfgraph.prediction.link_executor.PIECE", 7)
    assert Scored(edges).scores(query) == pytest.approx(whole, abs=1e-6)


@FEW
@given(graphs_and_queries(most_nodes=6))
def test_with_all_entities_proposed_a_large_graph_is_as_a_small_one(given_):
    small, query = given_
    expected = scored(small, SOME).scores(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.link_executor.LARGE", 0)
        assert scored(small, SOME).scores(query) == pytest.approx(expected, abs=1e-6)


@FEW
@given(graphs_and_queries(most_nodes=6, negations=False))
def test_what_is_not_proposed_has_its_known_edges_still(given_):
    small, query = given_
    tree = unshared(query)
    # Votes and rules are shares over all of a hop's heads: with fewer heads one may count for more.
    alone = Scale(**{**SOME.to_dict(), "vote": 0.0, "rules": 0.0, "offsets": ()})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.link_executor.LARGE", 0)
        patch.setattr("halfgraph.prediction.link_executor.PROPOSED", 1)
        scores = scored(small, alone).scores(tree)
    assert scores[Exact(small.graph).answers(tree)] == pytest.approx(1.0)
    assert (scores <= scored(small, alone).scores(tree) + 1e-6).all()
