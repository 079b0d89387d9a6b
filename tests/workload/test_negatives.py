from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halfgraph.query.exact import Exact
from halfgraph.query.structures import NEIGHBOURHOODS, STRUCTURES, UNIONS, structure_named
from halfgraph.workload import sampling
from halfgraph.workload.negatives import (
    NegativeCounts,
    add_answers,
    add_negatives,
    draw_distinct,
    fresh_negatives,
    held_out_edges,
    non_answers,
)
from halfgraph.workload.sampling import Questions, Sampler, every_edge
from query_oracles import answers, is_answer
from small_graphs import Small, smalls, splits

seeds = st.integers(0, 2**40)
few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def _impatient(monkeypatch):
    """Small random graphs often cannot fill a structure; not to wait for each."""
    monkeypatch.setattr(sampling, "PATIENCE", 1)


def completed(questions: Questions, sampler: Sampler, seed: int, counts: NegativeCounts) -> Questions:
    """The questions as a workload has them."""
    return add_negatives(add_answers(questions, sampler), sampler.truth or sampler.graph, seed, counts)


@pytest.mark.parametrize("structure", [*STRUCTURES, *UNIONS], ids=lambda structure: structure.name)
@pytest.mark.usefixtures("_impatient")
@few
@given(split=splits(), seed=seeds, most=st.integers(1, 6), one_in=st.integers(1, 3))
def test_easy_and_hard_answers_and_all_negatives_are_just_those(structure, split, seed, most, one_in):
    sampler = Sampler(split.whole.graph, "triples", split.train.graph, split.known.graph, threads=1)
    drawn = sampler.draw(structure, 6, seed).questions
    questions = completed(drawn, sampler, seed, NegativeCounts(most, one_in))
    whole, train = split.whole.plain, split.train.plain
    for i in range(len(questions)):
        query, answer = questions.query(i), int(questions.answers[i])
        everything, easy = answers(whole, query), answers(train, query)
        assert questions.easy[i].tolist() == easy
        assert questions.hard[i].tolist() == sorted(set(everything) - set(easy))
        assert answer in questions.hard[i]
        mates = [entity for entity in whole.entities if whole.types[entity] == whole.types[answer]]
        relaxed = answers(whole, query, relaxed=True) if structure.has_intersection else []
        for found, candidates in ((questions.negatives[i], mates), (questions.hard_negatives[i], relaxed)):
            right = sorted(set(candidates) & set(mates) - set(everything))
            assert len(found) == (min(most, len(right)) if i % one_in == 0 else 0)
            assert set(found.tolist()) <= set(right)
            assert found.tolist() == sorted(set(found.tolist()))


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.name)
@pytest.mark.usefixtures("_impatient")
@few
@given(split=splits(), seed=seeds)
def test_negatives_of_validation_questions_are_no_answers_on_the_whole_graph_either(structure, split, seed):
    graphs = (split.train.graph, split.train.graph, split.whole.graph)
    sampler = Sampler(split.known.graph, "triples", *graphs, threads=1)
    drawn = sampler.draw(structure, 6, seed).questions
    questions = completed(drawn, sampler, seed, NegativeCounts(5, 1))
    for i in range(len(questions)):
        right = set(answers(split.whole.plain, questions.query(i)))
        wrong = {int(questions.negative[i]), int(questions.hard_negative[i]), *questions.negatives[i].tolist()}
        assert not right & (wrong | set(questions.hard_negatives[i].tolist()))
        assert questions.hard[i].tolist() == sorted(
            set(answers(split.known.plain, questions.query(i))) - set(questions.easy[i].tolist())
        )


def test_no_questions_get_no_answers_and_negatives():
    small = Small(((0, 0, 1),), (2,), 2)
    none = every_edge(small.graph, structure_named("1p")).take(np.array([], int))
    found = completed(none, Sampler(small.graph, threads=1), 0, NegativeCounts())
    assert len(found) == len(found.easy) == len(found.hard) == len(found.negatives) == len(found.hard_negatives) == 0


@given(smalls(), st.data())
def test_the_others_of_an_answers_type_are_all_that_are_no_answer(small, data):
    entity = st.sampled_from(small.plain.entities)
    some = sorted(data.draw(st.sets(entity, min_size=1)))
    answer = data.draw(st.sampled_from(some))
    mates = [other for other in small.plain.entities if small.plain.types[other] == small.plain.types[answer]]
    found = non_answers(small.graph, answer, np.array(some, np.int32))
    assert found.tolist() == [mate for mate in mates if mate not in some]


def questions_of(small: Small, name: str, count: int = 8) -> Questions:
    """Questions drawn without any negative."""
    return (
        Sampler(small.graph, threads=1)
        .draw(structure_named(name), count, 1, negatives=False, hard_negatives=False)
        .questions
    )


@pytest.mark.parametrize("name", ["1p", "2p", "2i", "ip", "4i"])
@pytest.mark.usefixtures("_impatient")
@few
@given(small=smalls(8), seed=seeds, hard=st.booleans())
def test_fresh_negatives_are_right_and_lacking_only_where_there_are_none(name, small, seed, hard):
    questions = questions_of(small, name)
    drawn = fresh_negatives(small.graph, questions, 5, seed, hard=hard)
    assert drawn.shape == (len(questions), 5)
    np.testing.assert_array_equal(drawn, fresh_negatives(small.graph, questions, 5, seed, hard=hard))
    for i in range(len(questions)):
        query, type_id = questions.query(i), small.plain.types[questions.answers[i]]
        relaxed = answers(small.plain, query, relaxed=True) if hard else small.plain.entities
        right = {one for one in relaxed if small.plain.types[one] == type_id} - set(answers(small.plain, query))
        assert set(drawn[i].tolist()) <= (right or {-1})


@pytest.mark.usefixtures("_impatient")
@few
@given(small=smalls(8), seed=seeds, hard=st.booleans())
def test_quick_negatives_are_right_too_where_there_are_any(small, seed, hard):
    questions = questions_of(small, "pi")
    drawn = fresh_negatives(small.graph, questions, 5, seed, hard=hard, certain=False)
    for i in range(len(questions)):
        for negative in set(drawn[i].tolist()) - {-1}:
            assert small.plain.types[negative] == small.plain.types[questions.answers[i]]
            assert not is_answer(small.plain, questions.query(i), negative)
            assert not hard or is_answer(small.plain, questions.query(i), negative, relaxed=True)


@given(splits(), seeds, st.integers(0, 20))
def test_held_out_triples_are_questions_once_in_each_direction(split, seed, count):
    train, whole = split.train.plain, split.whole.plain
    held_out = split.whole.part(sorted(set(split.whole.triples) - set(split.known.triples)))
    sampler = Sampler(split.whole.graph, "triples", split.train.graph, split.known.graph, threads=1)
    drawn = held_out_edges(held_out.graph, sampler, structure_named("1p"), count, seed)
    questions = drawn.questions
    rows = zip(
        questions.anchors[:, 0].tolist(), questions.relations[:, 0].tolist(), questions.answers.tolist(), strict=True
    )
    found = set(rows)
    right = {edge for edge in held_out.plain.edges - train.edges if _has_negative(whole, edge)}
    assert len(found) == len(questions) == min(count, len(right))
    assert found <= right
    assert (questions.missing == 1).all()
    for i in range(len(questions)):
        assert questions.negative[i] not in answers(whole, questions.query(i))
        assert whole.types[questions.negative[i]] == whole.types[questions.answers[i]]


def _has_negative(whole, edge) -> bool:
    """Whether an entity of the tail's type is no tail."""
    head, relation, tail = edge
    mates = [entity for entity in whole.entities if whole.types[entity] == whole.types[tail]]
    return any((head, relation, mate) not in whole.edges for mate in mates)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("structure", [*STRUCTURES[1:], NEIGHBOURHOODS[0]], ids=lambda structure: structure.name)
@few
@given(split=splits(), seed=seeds)
def test_distinct_questions_differ_whatever_the_order_of_their_parts(structure, split, seed):
    sampler = Sampler(split.whole.graph, "answers", split.train.graph, threads=1)
    drawn = draw_distinct(sampler, structure, 12, seed)
    found = [(drawn.questions.query(i), int(drawn.questions.answers[i])) for i in range(len(drawn.questions))]
    assert len(set(found)) == len(found) <= 12
    assert drawn.tally.get("kept", 0) == len(found)


def test_distinct_questions_are_found_until_there_are_no_more():
    triples = [(0, 0, 3), (1, 0, 3), (2, 2, 3), (0, 2, 4), (1, 0, 4), (2, 0, 5), (0, 0, 5), (1, 2, 6), (2, 2, 6)]
    small = Small(tuple(triples), (3, 5), 4)
    structure = structure_named("2i")
    possible = set()
    for answer in small.plain.entities:
        edges = [(anchor, relation) for anchor, relation, tail in small.plain.edges if tail == answer]
        for (one, by), (other, via) in combinations(edges, 2):
            query = structure.fill(np.array([one, other]), np.array([by, via]))
            mates = [mate for mate in small.plain.entities if small.plain.types[mate] == small.plain.types[answer]]
            relaxed = set(answers(small.plain, query, relaxed=True)) & set(mates)
            if relaxed - set(answers(small.plain, query)):
                possible.add((query, answer))
    drawn = draw_distinct(Sampler(small.graph), structure, 2_000, 0)
    found = [(drawn.questions.query(i), int(drawn.questions.answers[i])) for i in range(len(drawn.questions))]
    assert set(found) == possible
    assert len(found) == len(possible)
    assert drawn.tally["kept"] == len(possible)
    assert drawn.tally["drawn before"] >= 2_000 - len(possible)


def test_distinct_questions_are_as_many_as_asked_for_and_the_same_for_any_number_of_threads():
    generator = np.random.default_rng(1)
    triples = {(int(h), 2 * int(r), int(t)) for h, r, t in generator.integers(0, (60, 3, 60), (700, 3))}
    small = Small(tuple(sorted(triples)), (20, 40), 6)
    train = small.part(list(small.triples[::2]))
    drawn = [
        draw_distinct(Sampler(small.graph, "relations", train.graph, threads=threads), structure_named("ip"), 3_000, 4)
        for threads in (1, 2, 3)
    ]
    assert [len(some.questions) for some in drawn] == [3_000] * 3
    for other in drawn[1:]:
        np.testing.assert_array_equal(drawn[0].questions.anchors, other.questions.anchors)
        np.testing.assert_array_equal(drawn[0].questions.hard_negative, other.questions.hard_negative)
    assert not Exact(train.graph).have_answers(drawn[0].questions.batch(), drawn[0].questions.answers).any()
