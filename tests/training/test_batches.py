from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.errors import EmptyGraph
from halfgraph.graph.folder import Graph
from halfgraph.query.structures import NEIGHBOURHOODS, STRUCTURES, structure_named
from halfgraph.training.batches import Batch, Batches, FromWorkload, OnTheFly
from halfgraph.training.recipe import PAPER, Recipe
from halfgraph.workload.folder import Workload
from halfgraph.workload.sampling import Questions, Sampler
from query_files import sampled, split_graph
from query_oracles import Plain, answers, graph_of, is_answer, type_list
from small_models import RELATIONS, TYPE_SIZES, small_triples

SOFTMAX = Recipe(one_edge=7, longer=4, neighbourhoods=2, type_negatives=4, other_negatives=5, hard_negatives=2)
HINGE = replace(SOFTMAX, loss="hinge", type_negatives=3, other_negatives=0)
GRAPH = graph_of(small_triples(), TYPE_SIZES, RELATIONS)
PLAIN = Plain.of(small_triples(), type_list(TYPE_SIZES))


def batches(recipe: Recipe = SOFTMAX, seed: int = 0, **others: Any) -> Batches:
    return Batches(GRAPH, OnTheFly(Sampler(GRAPH, recipe.uniform, threads=1)), recipe, seed, **others)


def rows(batch: Batch) -> list[tuple[Questions, int]]:
    """Each question of a batch: its set and its place in the set."""
    return [(some, row) for some in batch.questions for row in range(len(some))]


def assert_same(one: Batch, other: Batch) -> None:
    for some, again in zip(one.questions, other.questions, strict=True):
        assert some.structure is again.structure
        for name in ("anchors", "relations", "answers"):
            np.testing.assert_array_equal(getattr(some, name), getattr(again, name))
    for name in ("answers", "weights", "negatives", "hard_negatives"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    if one.shared is None or other.shared is None:
        assert one.shared is other.shared
        return
    for name in ("of_any", "groups", "known"):
        np.testing.assert_array_equal(getattr(one.shared, name), getattr(other.shared, name))
    for some, again in zip(one.shared.of_type, other.shared.of_type, strict=True):
        np.testing.assert_array_equal(some, again)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def workload(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return sampled(graph, tmp_path_factory.mktemp("workload") / "w")


# A batch is a function of seed and step


@pytest.mark.parametrize("recipe", [SOFTMAX, HINGE], ids=["softmax", "hinge"])
def test_a_batch_depends_on_seed_and_step_alone(recipe: Recipe) -> None:
    source = batches(recipe)
    in_order = [source.batch(step) for step in range(4)]
    for step in (3, 1, 2, 0, 3):
        assert_same(batches(recipe).batch(step), in_order[step])
        assert_same(source.batch(step), in_order[step])


@pytest.mark.parametrize("recipe", [SOFTMAX, HINGE], ids=["softmax", "hinge"])
def test_other_seeds_and_steps_give_other_batches(recipe: Recipe) -> None:
    first = batches(recipe).batch(0)
    for other in (batches(recipe).batch(1), batches(recipe, seed=1).batch(0)):
        assert not np.array_equal(first.answers, other.answers)
        assert not np.array_equal(first.hard_negatives, other.hard_negatives)


def test_a_batch_of_a_workload_depends_on_seed_and_step_alone(graph: Graph, workload: Workload) -> None:
    def made(source: FromWorkload, seed: int = 0) -> Batches:
        return Batches(graph.train, source, SOFTMAX, seed)

    source = FromWorkload(workload)
    expected = [made(FromWorkload(workload)).batch(step) for step in range(40)]
    for step in (39, 0, 17, 3, 39):
        made(source, seed=8).batch(step)  # another seed in between changes nothing
        assert_same(made(source).batch(step), expected[step])
    assert not np.array_equal(made(source, seed=8).batch(0).answers, expected[0].answers)


# What is in a batch


@pytest.mark.parametrize("recipe", [SOFTMAX, HINGE], ids=["softmax", "hinge"])
def test_a_batch_has_the_structures_and_counts_of_the_recipe(recipe: Recipe) -> None:
    batch = batches(recipe).batch(0)
    counts = {some.structure.name: len(some) for some in batch.questions}
    expected = {structure.name: 7 if structure.relation_count == 1 else 4 for structure in STRUCTURES}
    assert counts == expected | {structure.name: 2 for structure in NEIGHBOURHOODS}
    assert len(batch) == sum(counts.values()) == len(batch.weights)
    np.testing.assert_array_equal(batch.answers, np.concatenate([some.answers for some in batch.questions]))


def test_only_one_edge_questions_are_there_while_burning_in() -> None:
    batch = batches().batch(0, burning_in=True)
    assert [some.structure.name for some in batch.questions] == ["1-chain"]


def test_a_recipe_without_neighbourhoods_has_no_kg_phase() -> None:
    batch = batches(replace(SOFTMAX, neighbourhoods=0)).batch(0)
    assert {some.structure.name for some in batch.questions} == {structure.name for structure in STRUCTURES}


def test_a_neighbourhood_is_an_intersection_whose_answer_is_its_centre() -> None:
    for some, row in rows(batches().batch(1)):
        if some.structure in NEIGHBOURHOODS:
            centre = int(some.answers[row])
            pairs = list(zip(some.anchors[row].tolist(), some.relations[row].tolist(), strict=True))
            assert all((anchor, relation, centre) in PLAIN.edges for anchor, relation in pairs)
            assert len(set(pairs)) == len(pairs)


def test_every_answer_is_an_answer_on_the_training_graph() -> None:
    for some, row in rows(batches().batch(2)):
        assert is_answer(PLAIN, some.query(row), int(some.answers[row]))


# Negatives


@given(st.integers(0, 1000))
@settings(max_examples=10)
def test_the_candidates_that_are_marked_are_just_the_answers(step: int) -> None:
    batch = batches().batch(step)
    for place, (some, row) in enumerate(rows(batch)):
        candidates = [*batch.shared.of_type[batch.shared.groups[place]].tolist(), *batch.shared.of_any.tolist()]
        right = set(answers(PLAIN, some.query(row)))
        assert batch.shared.known[place][: len(candidates)].tolist() == [other in right for other in candidates]
        assert batch.shared.known[place][len(candidates) :].all()


def test_shared_candidates_are_of_the_answers_type_and_the_others_of_any() -> None:
    batch = batches(replace(SOFTMAX, other_negatives=200)).batch(0)
    for place, (some, row) in enumerate(rows(batch)):
        types = GRAPH.types.of(batch.shared.of_type[batch.shared.groups[place]])
        assert set(types.tolist()) == {int(GRAPH.types.of(int(some.answers[row])))}
    assert set(batch.shared.of_any.tolist()) == set(range(GRAPH.entity_count))


def test_a_type_with_fewer_entities_than_negatives_asked_for_gives_all_of_them() -> None:
    batch = batches(replace(SOFTMAX, type_negatives=6)).batch(0)
    by_type = {int(GRAPH.types.of(int(some[0]))): some.tolist() for some in batch.shared.of_type}
    assert by_type[1] == [7, 8, 9, 10, 11]  # five entities
    assert by_type[2] == [12, 13, 14, 15, 16, 17]  # six
    assert len(by_type[0]) == 6  # of seven, drawn


@given(st.integers(0, 1000))
@settings(max_examples=10)
def test_negatives_are_of_the_answers_type_and_never_answers(step: int) -> None:
    batch = batches(HINGE).batch(step)
    assert batch.negatives.shape == (len(batch), 3)
    for place, (some, row) in enumerate(rows(batch)):
        type_id = PLAIN.types[int(some.answers[row])]
        for negative in batch.negatives[place].tolist():
            assert negative < 0 or PLAIN.types[negative] == type_id
            assert negative < 0 or not is_answer(PLAIN, some.query(row), negative)
    assert (batch.negatives >= 0).mean() > 0.5


@given(st.integers(0, 1000))
@settings(max_examples=10)
def test_hard_negatives_satisfy_some_branch_and_not_all(step: int) -> None:
    batch = batches(HINGE).batch(step)
    found = 0
    for place, (some, row) in enumerate(rows(batch)):
        type_id = PLAIN.types[int(some.answers[row])]
        for negative in batch.hard_negatives[place].tolist():
            if negative >= 0:
                found += 1
                assert some.structure.has_intersection
                assert PLAIN.types[negative] == type_id
                assert is_answer(PLAIN, some.query(row), negative, relaxed=True)
                assert not is_answer(PLAIN, some.query(row), negative)
    assert found


def test_negatives_are_fresh_at_every_step() -> None:
    structure = structure_named("1-chain")
    one = Sampler(GRAPH, threads=1).draw(structure, 1, 0).questions

    class Same:
        def questions(self, *_: object) -> Questions:
            return one

    made = Batches(GRAPH, Same(), replace(HINGE, longer=0, neighbourhoods=0), 0)
    seen = {other for step in range(40) for other in made.batch(step).negatives[0].tolist()}
    type_id = PLAIN.types[int(one.answers[0])]
    right = set(answers(PLAIN, one.query(0)))
    assert seen - {-1} == {other for other in PLAIN.entities if PLAIN.types[other] == type_id} - right


def test_the_papers_recipe_has_one_negative_of_each_sort() -> None:
    batch = batches(replace(PAPER, one_edge=3, longer=3, neighbourhoods=3)).batch(0)
    assert batch.negatives.shape == batch.hard_negatives.shape == (len(batch), 1)
    assert batch.shared is None
    assert np.allclose([batch.weights[:3].sum(), batch.weights[-3:].sum()], 1.0)


# A workload as source


def test_a_workload_is_gone_through_once_in_a_pass(workload: Workload) -> None:
    structure = structure_named("2-inter")
    everything = workload.questions("train", structure)
    source, count = FromWorkload(workload), 7

    def key(questions: Questions, row: int) -> tuple[int, ...]:
        return (*questions.anchors[row].tolist(), *questions.relations[row].tolist(), int(questions.answers[row]))

    seen = []
    for step in range(-(-3 * len(everything) // count)):
        questions = source.questions(structure, count, 0, step)
        assert len(questions) == count
        seen += [key(questions, row) for row in range(count)]
    expected = Counter(key(everything, row) for row in range(len(everything)))
    passes = [seen[first : first + len(everything)] for first in range(0, 3 * len(everything), len(everything))]
    for one in passes:
        assert Counter(one) == expected
    assert passes[0] != passes[1] != passes[2]


def test_a_step_may_ask_for_more_questions_than_a_workload_has(workload: Workload) -> None:
    structure = NEIGHBOURHOODS[0]
    size = len(workload.questions("train", structure))
    questions = FromWorkload(workload).questions(structure, 3 * size + 1, 0, 0)
    assert len(questions) == 3 * size + 1
    counts = Counter(map(tuple, np.column_stack([questions.anchors, questions.relations]).tolist()))
    assert max(counts.values()) >= 4 or len(counts) < size


def test_a_structure_that_the_workload_lacks_has_no_questions(graph: Graph, tmp_path: Path) -> None:
    from halfgraph.workload.folder import Counts, Plan, sample

    lacking = (structure_named("2-chain"), structure_named("2-inter"))
    only = sample(graph, tmp_path / "w", Plan(Counts(20, 0, 0, 0, 0), structures=lacking, threads=1))
    batch = Batches(graph.train, FromWorkload(only), SOFTMAX, 0).batch(0)
    assert [some.structure.name for some in batch.questions] == ["2-chain", "2-inter"]
    with pytest.raises(EmptyGraph, match="no question of any structure"):
        Batches(graph.train, FromWorkload(only), SOFTMAX, 0).batch(0, burning_in=True)


def test_a_graph_without_paths_that_meet_gives_what_it_has() -> None:
    lonely = graph_of([(0, 0, 1)], (2,), 2)
    recipe = replace(SOFTMAX, neighbourhoods=0)
    structures = (structure_named("1-chain"), structure_named("2-inter"))
    source = OnTheFly(Sampler(lonely, threads=1))
    batch = Batches(lonely, source, recipe, 0, structures).batch(0)
    assert [some.structure.name for some in batch.questions] == ["1-chain"]
    with pytest.raises(EmptyGraph):
        Batches(lonely, source, replace(recipe, one_edge=0), 0, structures).batch(0)
