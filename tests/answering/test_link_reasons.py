"""Reasons of missing triples: what they say is so, checked against the graph and the model's own scores."""

import re

import numpy as np
import pytest

from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.link_reasons import MODELS, LinkReasons, proposals_of
from halfgraph.prediction.link_features import FEATURES
from halfgraph.prediction.link_predictor import COMPLEX, COSINE, SORTS, VOTE, LinkWeights
from halfgraph.prediction.missing_triples import MissingTriple
from small_links import links_of
from small_runs import chance


def only(column: int, weight: float = 1.0) -> LinkWeights:
    """Weights by which one feature counts."""
    row = tuple(weight if own == column else 0.0 for own in range(len(FEATURES)))
    return LinkWeights((row,) * SORTS)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return chance(tmp_path_factory.mktemp("chance"), entities=20, triples=120)


@pytest.fixture
def names(graph):
    return EntityNames(graph)


def missing(links):
    for head in range(links.graph.entity_count):
        for relation in range(links.graph.relation_count):  # inverses too
            for tail in range(head % 3, links.graph.entity_count, 3):
                if tail not in links.graph.tails_of(head, relation):
                    yield head, relation, tail


def test_votes_are_counted_as_the_graph_has_them(graph, names):
    links, kinds = links_of(graph.whole, only(VOTE)), set()
    for head, relation, tail in missing(links):
        reason = LinkReasons(links, names).reason(head, relation, tail)
        near, near_tail = (set(links.neighbours.ids[entity].tolist()) - {-1} for entity in (head, tail))
        if found := re.match(r"(\d+) of (\d+) similar subjects with this relation have it too: (.*)", reason):
            voters = [own for own in near if tail in links.graph.tails_of(own, relation)]
            able = [own for own in near if len(links.graph.tails_of(own, relation))]
            assert (int(found[1]), int(found[2])) == (len(voters), len(able))
            assert found[3].split(", ")[0] in [names.entity(own).label for own in voters]
            kinds.add("heads")
        elif found := re.match(r"it has this relation to (\d+) similar objects?: ", reason):
            assert int(found[1]) == len(near_tail & set(links.graph.tails_of(head, relation).tolist())) > 0
            kinds.add("tails")
        else:
            assert re.match(r"[\d,]+ of [\d,]+ triples of this relation have this object", reason)
            kinds.add("frequency")
    assert kinds == {"heads", "tails", "frequency"}


@pytest.mark.parametrize("model", [COSINE, COMPLEX])
def test_a_rank_is_that_of_the_model_among_unknown_tails(graph, names, model):
    links, ranked = links_of(graph.whole, only(model, 10.0)), 0
    for head, relation, tail in missing(links):
        reason = LinkReasons(links, names).reason(head, relation, tail)
        if found := re.match(rf"{MODELS[model]} ranks it number (\d+) of (\d+) possible objects", reason):
            features = list(links.pair_features(np.array([head]), relation, slice(None)))
            scores = dict(enumerate(features[model][0][0].tolist()))
            others = [own for own in scores if own not in links.graph.tails_of(head, relation)]
            assert int(found[1]) == 1 + sum(scores[own] > scores[tail] for own in others)
            assert int(found[2]) == len(others)
            ranked += 1
    assert ranked


def test_a_triple_of_an_inverse_relation_is_turned_round(graph, names):
    links = links_of(graph.whole)
    there, back = MissingTriple(1, 0, 2, 0.5), MissingTriple(2, 1, 1, 0.5)
    assert proposals_of(links, names, [there]) == proposals_of(links, names, [back])
