from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import UnknownName
from halfgraph.query.exact import Exact, Ragged, in_pieces
from halfgraph.query.program import QueryBatch, compile_query
from halfgraph.query.rewriting import disjuncts, pin
from halfgraph.query.structures import NAMED, structure_named
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, shared_variables
from query_oracles import answers, answers_by_assignment, graph_of
from small_graphs import Small, graphs_and_queries, queries, smalls, unshared

TRIANGLE = graph_of([(0, 0, 1), (1, 0, 2), (2, 2, 0)], [2, 1], 4)


@given(graphs_and_queries(most_entities=4, most_nodes=4), st.booleans())
def test_the_two_oracles_agree(given_, relaxed):
    small, query = given_
    assert answers(small.plain, query, relaxed) == answers_by_assignment(small.plain, query, relaxed)


@given(graphs_and_queries(most_nodes=8))
def test_the_answers_of_a_tree_are_those_found_by_trying_all(given_):
    small, query = given_
    tree = unshared(query)
    assert Exact(small.graph).answers(tree).tolist() == answers(small.plain, tree)


@given(graphs_and_queries(most_nodes=8))
def test_the_answers_of_a_query_with_shared_variables_are_those_found_by_trying_all(given_):
    small, query = given_
    found = Exact(small.graph).answers(query)
    assert found.dtype == np.int32
    assert found.tolist() == answers(small.plain, query)


@given(graphs_and_queries(most_nodes=8))
def test_the_relaxed_answers_are_those_with_intersections_read_as_unions(given_):
    small, tree = given_[0], unshared(given_[1])
    relaxed = Exact(small.graph).answer_sets(compile_query(tree), relaxed=True)[0].tolist()
    assert relaxed == answers(small.plain, tree, relaxed=True)
    assert relaxed == Exact(small.graph).answers(_as_unions(tree, {})).tolist()


def _as_unions(node: Query, made: dict[int, Query]) -> Query:
    """The query with a union for each intersection."""
    if id(node) not in made:
        match node:
            case Anchor():
                made[id(node)] = node
            case Project():
                made[id(node)] = Project(_as_unions(node.source, made), node.relation, node.type_id)
            case Intersect() | Union():
                parts = (part for part in node.parts if not isinstance(part, Negate))
                made[id(node)] = Union(tuple(_as_unions(part, made) for part in parts), node.type_id)
    return made[id(node)]


def has_answer(exact: Exact, tree: Query, entity: int) -> bool:
    return bool(exact.have_answers(compile_query(tree), np.array([entity], np.int32))[0])


@given(graphs_and_queries(most_nodes=8))
def test_an_entity_is_an_answer_just_if_it_is_among_the_answers(given_):
    small, tree = given_[0], unshared(given_[1])
    exact = Exact(small.graph)
    found = [entity for entity in small.plain.entities if has_answer(exact, tree, entity)]
    assert found == exact.answers(tree).tolist()


@given(smalls(6))
def test_membership_agrees_with_the_answers_on_all_paths_of_two_edges_whatever_the_type_between(small):
    count, exact = len(small.plain.types), Exact(small.graph)
    relations = range(small.relation_count)
    rows = np.array(list(product(range(count), relations, relations, range(count))), np.int32)
    for type_id in (None, *range(len(small.sizes))):
        batch = compile_query(Project(Project(Anchor(rows[:, 0]), rows[:, 1], type_id), rows[:, 2]))
        sets = exact.answer_sets(batch)
        among = [entity in found for entity, found in zip(rows[:, 3], sets, strict=True)]
        assert exact.have_answers(batch, rows[:, 3]).tolist() == among


@given(smalls(), st.sampled_from(NAMED), st.booleans(), st.integers(0, 2**32))
def test_a_batch_has_the_answers_of_its_queries_one_by_one(small, structure, relaxed, seed):
    generator = np.random.default_rng(seed)
    anchors = generator.integers(0, len(small.plain.types), (12, structure.anchor_count), dtype=np.int32)
    relations = generator.integers(0, small.relation_count, (12, structure.relation_count), dtype=np.int32)
    entities = generator.integers(0, len(small.plain.types), 12, dtype=np.int32)
    exact, batch = Exact(small.graph), compile_query(structure.fill(anchors, relations))
    sets, hits = exact.answer_sets(batch, relaxed=relaxed), exact.have_answers(batch, entities)
    for row in range(12):
        query = structure.fill(anchors[row], relations[row])
        assert sets[row].tolist() == answers(small.plain, query, relaxed)
        assert hits[row] == (entities[row] in answers(small.plain, query))


@given(st.data())
def test_a_batch_with_shared_variables_has_the_answers_of_its_queries_one_by_one(data):
    small = data.draw(smalls())
    entity = st.integers(0, len(small.plain.types) - 1)
    column = np.array(data.draw(st.lists(entity, min_size=3, max_size=3)), np.int32)
    shared = Project(Anchor(column), data.draw(st.integers(0, small.relation_count - 1)))
    rest = data.draw(queries(small, most_nodes=3))
    query = Intersect((Project(shared, 0), Union((Project(shared, 1), rest))))
    batch = compile_query(query)
    sets = Exact(small.graph).answer_sets(batch)
    for row in range(3):
        one = Project(Anchor(int(column[row])), shared.relation)
        expected = answers(small.plain, Intersect((Project(one, 0), Union((Project(one, 1), rest)))))
        assert sets[row].tolist() == expected


def busy_batch(count: int) -> tuple[Exact, QueryBatch]:
    """Many questions on a graph of a few hundred edges."""
    generator = np.random.default_rng(5)
    triples = np.stack(
        [generator.integers(0, 80, 900), 2 * generator.integers(0, 3, 900), generator.integers(0, 80, 900)]
    )
    exact, structure = Exact(graph_of(map(tuple, triples.T.tolist()), [30, 50], 6)), structure_named("pi")
    anchors, relations = generator.integers(0, 80, (count, 2)), generator.integers(0, 6, (count, 3))
    return exact, compile_query(structure.fill(anchors.astype(np.int32), relations.astype(np.int32)))


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1_000])
def test_answers_do_not_depend_on_the_number_of_threads(count):
    exact, batch = busy_batch(count)
    entities = np.arange(count, dtype=np.int32) % 80
    alone, hits = exact.answer_sets(batch, threads=1), exact.have_answers(batch, entities, threads=1)
    assert len(alone) == len(hits) == count
    for threads in (2, 3, 7, None):
        found = exact.answer_sets(batch, threads=threads)
        np.testing.assert_array_equal(found.values, alone.values)
        np.testing.assert_array_equal(found.offsets, alone.offsets)
        np.testing.assert_array_equal(exact.have_answers(batch, entities, threads=threads), hits)


def test_answers_do_not_depend_on_the_size_of_pieces():
    exact, batch = busy_batch(200)
    alone = exact.answer_sets(batch, threads=1)
    for size in (1, 7, 199):
        pieces = [slice(first, first + size) for first in range(0, 200, size)]
        found = [
            exact.answer_sets(QueryBatch(batch.program, batch.anchors[some], batch.relations[some])) for some in pieces
        ]
        np.testing.assert_array_equal(np.concatenate([sets.values for sets in found]), alone.values)


@pytest.mark.parametrize(("count", "threads"), [(0, 1), (0, 2), (1, 3), (64, 1), (65, 2), (1_000, 3), (5_000, None)])
def test_the_pieces_of_some_rows_are_all_of_them_once_and_in_order(count, threads):
    pieces = in_pieces(lambda rows: list(range(count))[rows], count, threads)
    assert [row for piece in pieces for row in piece] == list(range(count))


def test_an_anchor_alone_answers_itself():
    exact = Exact(TRIANGLE)
    assert exact.answers(Anchor(1)).tolist() == [1]
    assert [has_answer(exact, Anchor(1), entity) for entity in range(3)] == [False, True, False]
    assert exact.answers(Intersect((Anchor(1), Anchor(1)))).tolist() == [1]
    assert exact.answers(Intersect((Anchor(1), Anchor(2)))).tolist() == []


def test_a_repeated_part_changes_nothing():
    part = Project(Anchor(0), 0)
    assert Exact(TRIANGLE).answers(Intersect((part, part))).tolist() == [1]
    assert Exact(TRIANGLE).answers(Union((part, part))).tolist() == [1]


def test_a_variable_that_is_source_and_target_ties_an_entity_to_itself():
    graph = graph_of([(0, 0, 1), (0, 0, 2), (1, 2, 1), (2, 2, 1)], [3], 4)
    start = Project(Anchor(0), 0)
    query = Intersect((start, Project(start, 2)))
    assert shared_variables(query) == [start]
    assert Exact(graph).answers(query).tolist() == [1]


def test_a_branch_that_does_not_need_an_impossible_variable_still_answers():
    nobody = Project(Anchor(2), 0)
    impossible = Intersect((Project(nobody, 0), Project(nobody, 2)))
    query = Union((Project(Anchor(0), 0), impossible))
    assert Exact(TRIANGLE).answers(query).tolist() == [1]


def test_a_query_that_asks_for_a_type_gets_no_other():
    exact = Exact(TRIANGLE)
    assert exact.answers(Project(Anchor(1), 0, type_id=1)).tolist() == [2]
    assert exact.answers(Project(Anchor(1), 0, type_id=0)).tolist() == []
    assert not has_answer(exact, Project(Anchor(1), 0, type_id=0), 2)
    assert exact.answers(Intersect((Project(Anchor(0), 0), Project(Anchor(2), 1)), type_id=1)).tolist() == []


@pytest.mark.parametrize("query", [Anchor(3), Project(Anchor(-1), 0), Project(Anchor(2**31 - 1), 0)])
def test_an_entity_that_the_graph_does_not_have_is_refused(query):
    with pytest.raises(UnknownName, match="no entity number"):
        Exact(TRIANGLE).answers(query)


def test_an_answer_or_a_type_that_the_graph_does_not_have_is_refused():
    query = Project(Project(Anchor(0), 0), 0)
    for entity in (-1, 3):
        with pytest.raises(UnknownName, match="no entity number"):
            has_answer(Exact(TRIANGLE), query, entity)
    with pytest.raises(UnknownName, match="no type number 2"):
        Exact(TRIANGLE).answers(Project(query, 0, type_id=2))


def test_a_relation_that_the_graph_does_not_have_leads_nowhere():
    assert Exact(TRIANGLE).answers(Project(Anchor(0), 99)).tolist() == []


def test_a_graph_without_edges_answers_nothing():
    exact = Exact(graph_of([], [3], 2))
    assert exact.answers(Project(Anchor(0), 0)).tolist() == []
    assert not has_answer(exact, Project(Project(Anchor(0), 0), 1), 0)


@given(graphs_and_queries(most_nodes=7))
def test_pinning_a_variable_to_each_entity_gives_all_answers(given_):
    small, query = given_
    for variable in shared_variables(query)[:1]:
        exact = Exact(small.graph)
        found = {
            int(one) for value in exact.answers(variable) for one in exact.answers(pin(query, variable, int(value)))
        }
        assert found <= set(exact.answers(query).tolist())


@given(graphs_and_queries(most_nodes=7))
def test_the_disjuncts_of_a_tree_have_its_answers_together(given_):
    small, query = given_
    tree = unshared(query)
    exact = Exact(small.graph)
    found = {entity for part in disjuncts(tree) for entity in exact.answers(part).tolist()}
    assert sorted(found) == exact.answers(tree).tolist()


def test_many_values_of_a_shared_variable_are_joined_piece_by_piece():
    # 0 -> 1..1500 -> each to its own and to the next; the two ways meet where a value has both edges.
    middle = range(1, 1_501)
    triples = [(0, 0, one) for one in middle] + [(one, 2, 1_500 + one) for one in middle]
    triples += [(one, 4, 1_500 + one) for one in middle if one % 3 == 0]
    small = Small(tuple(triples), (3_001,), 6)
    shared = Project(Anchor(0), 0)
    query = Intersect((Project(shared, 2), Project(shared, 4)))
    assert Exact(small.graph).answers(query).tolist() == [1_500 + one for one in middle if one % 3 == 0]


def test_sets_one_after_another_are_read_by_their_place():
    sets = [np.array(some, np.int32) for some in ([1, 2], [], [5], [])]
    ragged = Ragged.of(sets)
    assert [found.tolist() for found in ragged] == [[1, 2], [], [5], []]
    assert ragged[-2].tolist() == [5]
    assert ragged.sizes().tolist() == [2, 0, 1, 0]
    assert [found.tolist() for found in ragged.take(np.array([2, 0, 0]))] == [[5], [1, 2], [1, 2]]
    assert len(Ragged.of([])) == len(ragged.take(np.array([], int))) == 0
    with pytest.raises(IndexError):
        ragged[4]


def test_a_long_path_is_no_burden_though_its_ways_are_many():
    triples = [(head, 0, tail) for head in range(60) for tail in range(60)] + [(60, 2, 61)]
    exact = Exact(graph_of(triples, [62], 4))
    near: Query = Anchor(0)
    far: Query = Anchor(60)
    for _ in range(12):
        near, far = Project(near, 0), Project(far, 0)
    assert exact.answers(near).tolist() == list(range(60))
    assert exact.answers(far).tolist() == []
    assert exact.answers(Intersect((far, Project(near, 0)))).tolist() == []
