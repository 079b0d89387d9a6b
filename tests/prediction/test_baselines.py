"""The two baselines against plain counting: dictionaries, one entity after another."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.prediction.baselines import FLOOR, LEAST_SOURCE, PRIOR, VOTE, neighbour_vote, popularity
from halfgraph.query.structures import DRAWN, Structure, structure_named
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union
from query_oracles import Plain, graph_of
from small_graphs import Small, graphs_and_queries, smalls, unshared

Plainly = Mapping[int, float]


def popular(small: Small, query: Query) -> list[float]:
    """How often each entity is a tail of the relations that lead to the target, by hand."""
    plain = small.plain
    match query:
        case Anchor():
            found = [float(entity == query.entity) for entity in plain.entities]
        case Project():
            counts = Counter(tail for _, relation, tail in plain.edges if relation == query.relation)
            found = [float(counts[entity]) for entity in plain.entities]
        case Intersect():
            found = [math.prod(some) for some in zip(*(popular(small, part) for part in query.parts), strict=True)]
        case Union():
            found = [max(some) for some in zip(*(popular(small, part) for part in query.parts), strict=True)]
        case Negate():
            found = [1.0] * len(plain.entities)
    return restricted(plain, query, found)


def restricted(plain: Plain, query: Query, scores: list[float]) -> list[float]:
    """Set the scores of entities of another type than the query's to 0."""
    if isinstance(query, Anchor | Negate):
        return scores
    return [score if plain.is_of(entity, query.type_id) else 0.0 for entity, score in enumerate(scores)]


def voted(small: Small, query: Query) -> list[float]:
    """The neighbour vote, one edge after another."""
    plain = small.plain
    match query:
        case Anchor():
            return [float(entity == query.entity) for entity in plain.entities]
        case Project():
            return restricted(plain, query, followed(plain, voted(small, query.source), int(query.relation)))
        case Intersect():
            parts = zip(*(voted(small, part) for part in query.parts), strict=True)
            return restricted(plain, query, [math.prod(score + FLOOR for score in some) for some in parts])
        case Union():
            parts = zip(*(voted(small, part) for part in query.parts), strict=True)
            return restricted(plain, query, [max(some) for some in parts])
        case Negate():
            return [1.0 - min(score, 1.0) for score in voted(small, query.part)]


def followed(plain: Plain, source: list[float], relation: int) -> list[float]:
    """The scores after a relation: edges that are there, or votes."""
    top = max(source)
    if top == 0.0:
        return source
    likeness = like(plain, {head: score for head, score in enumerate(source) if score >= LEAST_SOURCE * top})
    edges = [(head, tail) for head, its, tail in plain.edges if its == relation]
    total = sum(likeness[head] for head in {head for head, _ in edges})
    found = []
    for entity in plain.entities:
        heads = [head for head, tail in edges if tail == entity]
        there = max((source[head] for head in heads), default=0.0)
        vote = sum(likeness[head] for head in heads) / total if total else 0.0
        found.append(max(there, top * (VOTE * vote + PRIOR * len(heads) / max(len(edges), 1))))
    return found


def like(plain: Plain, source: Plainly) -> dict[int, float]:
    """Where a walk ends that takes an edge of the source at random and goes back over its relation at random."""
    found: defaultdict[int, float] = defaultdict(float)
    total = sum(score for head, score in source.items() if any(edge[0] == head for edge in plain.edges))
    for head, score in source.items():
        own = [edge for edge in plain.edges if edge[0] == head]
        for _, relation, tail in own:
            group = plain.heads(relation, tail)
            for other in group:
                found[other] += score / (total * len(own) * len(group))
    return found


@given(graphs_and_queries())
def test_popularity_counts_the_tails_of_the_last_relations(pair: tuple[Small, Query]) -> None:
    small, query = pair
    query = unshared(query)
    np.testing.assert_allclose(popularity(small.graph).scorer()(query), popular(small, query), rtol=1e-5)


@given(graphs_and_queries())
def test_the_neighbour_vote_is_that_of_a_plain_walk(pair: tuple[Small, Query]) -> None:
    small, query = pair
    query = unshared(query)
    found = neighbour_vote(small.graph).scorer()(query)
    np.testing.assert_allclose(found, voted(small, query), rtol=1e-3, atol=1e-6)


@given(smalls(), st.integers(0, 11), st.integers(0, 7))
def test_an_edge_that_is_there_counts_one_and_nothing_counts_more(small: Small, head: int, relation: int) -> None:
    entities, relations = len(small.plain.types), small.relation_count
    query = Project(Anchor(head % entities), relation % relations)
    scores = neighbour_vote(small.graph).scorer()(query)
    for entity in small.plain.entities:
        is_there = (head % entities, relation % relations, entity) in small.plain.edges
        assert (scores[entity] == 1.0) == is_there
    assert scores.max(initial=0.0) <= 1.0


def test_the_vote_of_similar_entities_comes_before_popularity() -> None:
    # 0, 1 and 2 share the tail 5; 1 and 2 lead on to 6, and many others to 7.
    triples = [(head, 0, 5) for head in (0, 1, 2)] + [(head, 2, 6) for head in (1, 2)]
    triples += [(head, 2, 7) for head in range(8, 20)]
    graph = graph_of(triples, (20,), 4)
    query = Project(Anchor(0), 2)
    assert neighbour_vote(graph).scorer()(query).argmax() == 6
    assert popularity(graph).scorer()(query).argmax() == 7


@pytest.mark.parametrize("structure", DRAWN, ids=lambda structure: structure.short)
def test_scratch_memory_is_left_as_it_was(structure: Structure) -> None:
    rng = np.random.default_rng(0)
    triples = [(int(h), 2 * int(r), int(t)) for h, r, t in rng.integers(0, (9, 2, 9), (30, 3))]
    score = neighbour_vote(graph_of(triples, (9,), 4)).scorer()
    anchors = rng.integers(0, 9, (20, structure.anchor_count)).astype(np.int32)
    relations = rng.integers(0, 4, (20, structure.relation_count)).astype(np.int32)
    first = [score(structure.fill(*ids)) for ids in zip(anchors, relations, strict=True)]
    again = [score(structure.fill(*ids)) for ids in zip(anchors, relations, strict=True)]
    np.testing.assert_array_equal(first, again)


def test_a_graph_without_edges_gives_no_votes() -> None:
    graph = graph_of([], (4,), 2)
    for predictor in (popularity(graph), neighbour_vote(graph)):
        scores = predictor.scores(structure_named("2p"), np.array([[1]], np.int32), np.array([[0, 1]], np.int32))
        assert scores.tolist() == [[0.0] * 4]
