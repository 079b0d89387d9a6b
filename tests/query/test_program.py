from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from halfgraph.query.program import ANCHOR, INTERSECT, PROJECT, UNION, compile_query
from halfgraph.query.structures import NAMED, structure_named
from halfgraph.query.tree import Anchor, Intersect, Project, Union, nodes, shared_variables
from small_graphs import graphs_and_queries, unshared


@given(graphs_and_queries(most_nodes=8))
def test_every_step_stands_after_those_that_it_uses_and_the_target_is_last(given_):
    _, query = given_
    program = compile_query(query).program
    assert len(program.operations) == len(nodes(query))
    for step, (first, last) in enumerate(pairwise(program.child_starts)):
        assert all(child < step for child in program.children[first:last])


@given(graphs_and_queries(most_nodes=8))
def test_a_compiled_query_reads_back_as_it_was(given_):
    _, query = given_
    batch = compile_query(query)
    assert len(batch) == 1
    assert batch.query(0) == query


@given(graphs_and_queries(most_nodes=8))
def test_a_program_joins_just_if_a_variable_is_shared(given_):
    _, query = given_
    assert compile_query(query).program.has_shared_variables == bool(shared_variables(query))
    assert not compile_query(unshared(query)).program.has_shared_variables


@pytest.mark.parametrize("structure", NAMED, ids=lambda structure: structure.name)
def test_a_structure_and_its_filled_queries_have_one_program(structure):
    anchors = np.arange(3 * structure.anchor_count, dtype=np.int32).reshape(3, -1)
    relations = np.arange(3 * structure.relation_count, dtype=np.int32).reshape(3, -1)
    batch = compile_query(structure.fill(anchors, relations))
    program = structure.program
    for name in ("operations", "columns", "types", "child_starts", "children"):
        np.testing.assert_array_equal(getattr(batch.program, name), getattr(program, name))
    np.testing.assert_array_equal(batch.anchors, anchors)
    np.testing.assert_array_equal(batch.relations, relations)


def test_the_steps_of_a_query_are_its_nodes():
    program = compile_query(
        Union((Intersect((Project(Anchor(5), 2, type_id=1), Anchor(6))), Anchor(7)), type_id=0)
    ).program
    assert program.operations.tolist() == [ANCHOR, PROJECT, ANCHOR, INTERSECT, ANCHOR, UNION]
    assert program.types.tolist() == [-1, 1, -1, -1, -1, 0]
    assert program.child_starts.tolist() == [0, 0, 1, 1, 3, 3, 5]
    assert program.children.tolist() == [0, 1, 2, 3, 4]


def test_one_id_among_columns_stands_for_a_column_of_it():
    column = np.array([3, 4, 5], np.int32)
    batch = compile_query(Project(Intersect((Project(Anchor(column), 0), Project(Anchor(9), column))), 2))
    assert batch.anchors.tolist() == [[3, 9], [4, 9], [5, 9]]
    assert batch.relations.tolist() == [[0, 3, 2], [0, 4, 2], [0, 5, 2]]
    assert len(compile_query(Project(Anchor(column[:0]), 0))) == 0


def test_columns_of_different_lengths_are_no_batch():
    with pytest.raises(ValueError, match="shape mismatch"):
        compile_query(Project(Anchor(np.arange(3, dtype=np.int32)), np.arange(2, dtype=np.int32)))


def test_queries_without_relations_compile():
    batch = compile_query(Anchor(3))
    assert batch.anchors.shape == (1, 1)
    assert batch.relations.shape == (1, 0)


def test_the_columns_of_a_batch_are_plain_arrays_side_by_side():
    structure = structure_named("2i")
    table = np.asfortranarray(np.arange(8, dtype=np.int32).reshape(4, 2))
    batch = compile_query(structure.fill(table, table))
    assert batch.anchors.flags.c_contiguous
    assert batch.anchors.dtype == batch.relations.dtype == np.int32
