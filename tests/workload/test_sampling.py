from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halfgraph.errors import SettingError
from halfgraph.query.exact import Ragged
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.structures import DRAWN, NEGATIONS, NEIGHBOURHOODS, UNIONS, Structure, path, structure_named
from halfgraph.query.tree import Intersect, Negate, Project, nodes
from halfgraph.workload import sampling
from halfgraph.workload._sampling_kernels import PATIENCE, REASONS
from halfgraph.workload.sampling import HOW, Questions, Sampler, every_edge
from query_oracles import answers, clean_paths, graph_of, is_likely
from small_graphs import Small, smalls, splits

by_name = pytest.mark.parametrize("structure", [*NEIGHBOURHOODS, *DRAWN], ids=lambda structure: structure.name)
seeds = st.integers(0, 2**40)
uniforms = st.sampled_from(sorted(HOW))


@pytest.fixture
def _impatient(monkeypatch):
    """Small random graphs often cannot fill a structure; not to wait for each."""
    monkeypatch.setattr(sampling, "PATIENCE", 1)


few = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


@by_name
@pytest.mark.usefixtures("_impatient")
@few
@given(small=smalls(8), uniform=uniforms, seed=seeds)
def test_a_sampled_answer_is_an_answer_and_a_negative_is_not(structure, small, uniform, seed):
    drawn = Sampler(small.graph, uniform, threads=1).draw(structure, 6, seed)
    questions, plain = drawn.questions, small.plain
    assert drawn.tally.get("kept", 0) == len(questions) <= 6
    for i in range(len(questions)):
        query, answer = questions.query(i), int(questions.answers[i])
        right = answers(plain, query)
        assert answer in right
        negative = int(questions.negative[i])
        assert negative not in right
        assert plain.types[negative] == plain.types[answer]
        if structure.has_intersection:
            hard = int(questions.hard_negative[i])
            assert hard in answers(plain, query, relaxed=True)
            assert hard not in right
            assert plain.types[hard] == plain.types[answer]
        else:
            assert questions.hard_negative[i] == -1


@by_name
@pytest.mark.usefixtures("_impatient")
@few
@given(small=smalls(8), uniform=uniforms, seed=seeds)
def test_no_edge_is_used_twice_and_none_stepped_back_over(structure, small, uniform, seed):
    questions = Sampler(small.graph, uniform, threads=1).draw(structure, 6, seed, negatives=False, hard_negatives=False)
    for i in range(len(questions.questions)):
        query, answer = questions.questions.query(i), int(questions.questions.answers[i])
        for_answer = (
            way for one in disjuncts(without_negation(query)) for way in clean_paths(small.plain, one, answer)
        )
        assert next(for_answer, None) is not None
    assert (questions.questions.negative == -1).all()
    assert (questions.questions.hard_negative == -1).all()
    assert not questions.questions.missing.any()


@pytest.mark.parametrize("structure", DRAWN, ids=lambda structure: structure.name)
@pytest.mark.usefixtures("_impatient")
@few
@given(split=splits(), uniform=uniforms, seed=seeds)
def test_a_held_out_question_needs_a_held_out_triple(structure, split, uniform, seed):
    sampler = Sampler(split.whole.graph, uniform, split.train.graph, split.known.graph, threads=1)
    questions = sampler.draw(structure, 6, seed).questions
    train, known, whole = set(split.train.triples), set(split.known.triples), split.whole.plain
    for i in range(len(questions)):
        query, answer = questions.query(i), int(questions.answers[i])
        assert answer in answers(whole, query)
        assert answer not in answers(split.train.plain, query)
        assert int(questions.negative[i]) not in answers(whole, query)
        if structure.has_intersection:
            hard = int(questions.hard_negative[i])
            assert hard in answers(whole, query, relaxed=True)
            assert hard not in answers(whole, query)
        missing = int(questions.missing[i])
        assert missing > 0
        assert any(
            len(set(triples) - train) == missing and not set(triples) <= known
            for way in disjuncts(without_negation(query))
            for triples in clean_paths(whole, way, answer)
        )


@pytest.mark.parametrize("structure", NEGATIONS, ids=lambda structure: structure.name)
def test_a_negation_rules_something_out(structure):
    small = busy(200)
    questions = Sampler(small.graph, threads=1).draw(structure, 40, 3).questions
    assert len(questions) == 40
    for i in range(40):
        joint = next(node for node in nodes(questions.query(i)) if isinstance(node, Intersect))
        negated = next(part.part for part in joint.parts if isinstance(part, Negate))
        ruled_out = set(answers(small.plain, joint, relaxed=True)) & set(answers(small.plain, negated))
        assert ruled_out - {int(questions.answers[i])}


@pytest.mark.parametrize("structure", UNIONS, ids=lambda structure: structure.name)
def test_the_answer_of_a_union_seldom_is_one_by_every_part(structure):
    questions = Sampler(busy(200).graph, threads=1).draw(structure, 200, 3).questions
    ways = [[answers(busy(200).plain, way) for way in disjuncts(questions.query(i))] for i in range(50)]
    by = [sum(int(questions.answers[i]) in found for found in some) for i, some in enumerate(ways)]
    assert min(by) == 1
    assert sum(by) < 75


def busy(count: int = 900, sizes: tuple[int, ...] = (30, 50), seed: int = 5) -> Small:
    """A graph of a few hundred edges."""
    generator = np.random.default_rng(seed)
    total = sum(sizes)
    columns = (
        generator.integers(0, total, count),
        2 * generator.integers(0, 3, count),
        generator.integers(0, total, count),
    )
    return Small(tuple(set(zip(*(column.tolist() for column in columns), strict=True))), sizes, 6)


def columns_of(questions: Questions) -> list[np.ndarray]:
    """All columns that a drawn question has."""
    return [
        getattr(questions, name) for name in ("anchors", "relations", "answers", "negative", "hard_negative", "missing")
    ]


def assert_same(one: Questions, other: Questions) -> None:
    for mine, yours in zip(columns_of(one), columns_of(other), strict=True):
        np.testing.assert_array_equal(mine, yours)


@pytest.mark.parametrize("name", ["2p", "3i", "ip", "5i"])
def test_the_same_seed_gives_the_same_questions_for_any_number_of_threads(name):
    graph = busy().graph
    drawn = [Sampler(graph, threads=threads).draw(structure_named(name), 20_000, 7) for threads in (1, 2, 3)]
    assert len(drawn[0].questions) == 20_000
    for other in drawn[1:]:
        assert_same(drawn[0].questions, other.questions)
        assert drawn[0].tally == other.tally


def test_held_out_questions_are_the_same_for_any_number_of_threads():
    whole = busy()
    train = whole.part(list(whole.triples[:800]))
    drawn = [
        Sampler(whole.graph, "triples", train.graph, threads=n).draw(structure_named("pi"), 9_000, 7) for n in (1, 2, 3)
    ]
    assert len(drawn[0].questions) == 9_000
    for other in drawn[1:]:
        assert_same(drawn[0].questions, other.questions)


def test_a_poor_yield_is_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(sampling, "PATIENCE", 1)
    monkeypatch.setattr(sampling, "BLOCK", 64)
    # One entity in 150 has seven neighbours, and few draws of seven edges take each once.
    triples = [(0, 0, 1 + tail) for tail in range(7)] + [(place, 0, place + 1) for place in range(8, 150, 2)]
    graph = graph_of(triples, [150], 2)
    drawn = [Sampler(graph, threads=n).draw(structure_named("7i"), 640, 1, hard_negatives=False) for n in (1, 2, 3)]
    assert 0 < len(drawn[0].questions) < 640
    for other in drawn[1:]:
        assert_same(drawn[0].questions, other.questions)
        assert drawn[0].tally == other.tally


def test_streams_seeds_and_structures_differ():
    sampler = Sampler(busy().graph, threads=1)
    draws = [
        sampler.draw(structure_named("2p"), 100, 1),
        sampler.draw(structure_named("2p"), 100, 2),
        sampler.draw(structure_named("2p"), 100, 1, stream=1),
        sampler.draw(structure_named("3p"), 100, 1),
    ]
    assert len({drawn.questions.answers.tobytes() for drawn in draws}) == len(draws)
    assert_same(draws[0].questions, sampler.draw(structure_named("2p"), 100, 1).questions)


# Entities 0..5 of different degrees; 6 and 7 have no edge; relation 4 has none.
UNEVEN = Small(((0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 2, 4), (1, 2, 0), (5, 0, 5), (3, 0, 4)), (8,), 6)


def drawn_edges(uniform: str) -> Counter[tuple[int, int, int]]:
    """How often each edge is drawn as a one-edge question."""
    questions = (
        Sampler(UNEVEN.graph, uniform, threads=1).draw(structure_named("1p"), 30_000, 11, negatives=False).questions
    )
    rows = zip(
        questions.anchors[:, 0].tolist(), questions.relations[:, 0].tolist(), questions.answers.tolist(), strict=True
    )
    counts = Counter(rows)
    assert set(counts) == UNEVEN.plain.edges
    return counts


def weights_by(place: int, edges: list[tuple[int, int, int]]) -> list[float]:
    """The weight of each edge when first an answer (2) or relation (1) is chosen, and then one of its edges."""
    sizes = Counter(edge[place] for edge in edges)
    return [1 / sizes[edge[place]] for edge in edges]


def test_uniform_over_triples_draws_each_edge_as_often():
    assert is_likely(drawn_edges("triples").values())


@pytest.mark.parametrize(("uniform", "place"), [("answers", 2), ("relations", 1)])
def test_uniform_over_answers_or_relations_draws_each_as_often_and_then_their_edges(uniform, place):
    counts = drawn_edges(uniform)
    edges = sorted(counts)
    totals = Counter()
    for edge in edges:
        totals[edge[place]] += counts[edge]
    assert is_likely(totals.values())
    assert is_likely([counts[edge] for edge in edges], weights_by(place, edges))
    assert not is_likely(counts.values())


@pytest.mark.parametrize("uniform", sorted(HOW))
def test_on_a_graph_where_all_look_alike_every_path_is_as_likely(uniform):
    complete = [(head, 0, tail) for head in range(5) for tail in range(head)]
    # Every relation by its inverse too, so that all edges look alike from all ends.
    graph = graph_of([*complete, *((tail, 0, head) for head, _, tail in complete)], [5], 2)
    questions = Sampler(graph, uniform, threads=1).draw(structure_named("2p"), 60_000, 3, negatives=False).questions
    rows = np.column_stack([questions.anchors, questions.relations, questions.answers])
    paths, counts = np.unique(rows, axis=0, return_counts=True)
    # From 5 anchors to 4 others, over 3 entities between, in 2 * 2 directions; and there and back over another edge.
    back = paths[:, 0] == paths[:, -1]
    assert len(counts[~back]) == 5 * 4 * 4
    assert is_likely(counts[~back])


STAR = Small(tuple((0, 0, leaf) for leaf in range(1, 2_001)), (1, 2_000), 2)
SINGLE = Small(((0, 0, 1),), (2,), 2)
ONE_EACH = Small(((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 0), (0, 2, 2), (1, 2, 3)), (1, 1, 1, 1), 4)
EMPTY = Small((), (3,), 2)
FULL = Small(tuple((head, 0, tail) for head in range(30) for tail in range(30)), (30,), 2)

TWICE, NO_EDGE = "an edge would be used twice", "an entity has no edge to go on"
NO_NEGATIVE, NO_HARD = "no negative of the answer's type", "no hard negative"


@pytest.mark.parametrize(
    ("small", "name", "reasons"),
    [
        (STAR, "1p", {NO_NEGATIVE}),
        (STAR, "2p", {NO_NEGATIVE, TWICE}),
        (STAR, "3p", {TWICE}),
        (STAR, "2i", {NO_NEGATIVE, TWICE}),
        (STAR, "4i", {NO_NEGATIVE, TWICE}),
        (STAR, "ip", {NO_NEGATIVE, TWICE}),
        (SINGLE, "2p", {TWICE}),
        (SINGLE, "2i", {TWICE}),
        (ONE_EACH, "1p", {NO_NEGATIVE}),
        (ONE_EACH, "3p", {NO_NEGATIVE, TWICE}),
        (ONE_EACH, "pi", {NO_NEGATIVE, TWICE}),
        (EMPTY, "1p", {NO_EDGE}),
        (EMPTY, "pi", {NO_EDGE}),
        (FULL, "2i", {NO_NEGATIVE, TWICE}),
    ],
)
def test_a_graph_that_cannot_fill_a_structure_says_why_and_soon(small, name, reasons):
    drawn = Sampler(small.graph).draw(structure_named(name), 200_000, 0)
    assert len(drawn.questions) == 0
    assert set(drawn.tally) == reasons <= set(REASONS)
    assert sum(drawn.tally.values()) <= PATIENCE
    assert drawn.questions.anchors.shape == (0, structure_named(name).anchor_count)


@pytest.mark.parametrize("uniform", sorted(HOW))
def test_a_graph_without_edges_is_given_up_however_targets_are_drawn(uniform):
    assert Sampler(EMPTY.graph, uniform).draw(structure_named("2p"), 10, 0).tally == {NO_EDGE: PATIENCE}


def test_nothing_held_out_gives_no_held_out_question():
    graph = busy().graph
    drawn = Sampler(graph, known=graph, threads=1).draw(structure_named("2p"), 100, 0)
    assert len(drawn.questions) == 0
    assert set(drawn.tally) == {"no held-out triple in it", TWICE}


def test_a_structure_that_is_hard_to_fill_gives_as_many_as_there_are():
    # Two questions in all among many edges: only 1 and 2 have two edges, both from the same pair.
    lonely = [(place, 0, place + 1) for place in range(4, 200, 2)]
    small = Small((*lonely, (0, 0, 1), (0, 0, 2), (3, 0, 1), (3, 0, 2)), (200,), 2)
    drawn = Sampler(small.graph).draw(structure_named("2i"), 500, 0, hard_negatives=False)
    assert len(drawn.questions) == 500
    assert set(drawn.questions.answers.tolist()) <= {0, 1, 2, 3}


def test_neighbourhoods_are_different_edges_around_their_centre():
    small = busy(400)
    for structure in NEIGHBOURHOODS:
        questions = (
            Sampler(small.graph, threads=1).draw(structure, 200, 0, negatives=False, hard_negatives=False).questions
        )
        assert questions.anchors.shape == questions.relations.shape == (200, structure.relation_count)
        for i in range(200):
            edges = set(zip(questions.anchors[i].tolist(), questions.relations[i].tolist(), strict=True))
            assert len(edges) == structure.relation_count
            assert all((anchor, relation, questions.answers[i]) in small.plain.edges for anchor, relation in edges)


def test_no_questions_are_drawn_where_none_are_asked_for():
    drawn = Sampler(busy().graph).draw(structure_named("pi"), 0, 0)
    assert len(drawn.questions) == 0
    assert drawn.tally == {}


def test_a_structure_with_a_shared_variable_or_a_type_is_refused():
    shared = Project(path(0, 0), 1)
    joined = Structure("own", "own", Intersect((Project(shared, 2), Project(shared, 3))))
    restricted = Structure("own", "own", Project(path(0, 0), 1, type_id=0))
    for structure, problem in ((joined, "uses a variable twice"), (restricted, "restricts a type")):
        with pytest.raises(SettingError, match=problem):
            Sampler(busy().graph).draw(structure, 10, 0)


def test_a_structure_of_ones_own_is_drawn_as_any_other():
    small = busy()
    structure = Structure("own", "own", Intersect((path(0, 0, 1), path(1, 2, 3), path(2, 4))))
    questions = Sampler(small.graph).draw(structure, 20, 0).questions
    assert len(questions) == 20
    for i in range(20):
        found = answers(small.plain, questions.query(i))
        assert questions.answers[i] in found
        assert questions.negative[i] not in found
        assert questions.hard_negative[i] not in found


@given(smalls())
def test_every_edge_is_a_question_once_in_each_direction(small):
    questions = every_edge(small.graph, structure_named("1p"))
    rows = list(
        zip(
            questions.anchors[:, 0].tolist(),
            questions.relations[:, 0].tolist(),
            questions.answers.tolist(),
            strict=True,
        )
    )
    assert len(rows) == len(set(rows))
    assert set(rows) == small.plain.edges


def test_some_of_the_questions_keep_all_their_columns():
    questions = Sampler(busy().graph).draw(structure_named("pi"), 5, 0).questions
    full = Questions(
        *(
            getattr(questions, name)
            for name in ("structure", "anchors", "relations", "answers", "negative", "hard_negative")
        ),
        easy=Ragged.of([np.arange(size, dtype=np.int32) for size in range(5)]),
    )
    some = full.take(np.array([4, 1]))
    assert len(some) == 2
    assert some.query(0) == full.query(4)
    assert some.query(1) == full.query(1)
    assert some.easy.sizes().tolist() == [4, 1]
    assert some.missing is None
    np.testing.assert_array_equal(some.negative, full.negative[[4, 1]])
