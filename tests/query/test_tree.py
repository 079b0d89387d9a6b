import pytest
from hypothesis import given

from halfgraph.errors import QueryError
from halfgraph.query.tree import (
    NODE_TYPES,
    Anchor,
    Intersect,
    Negate,
    Project,
    Query,
    Union,
    attributes,
    check_negations,
    children,
    edges,
    intersect,
    nodes,
    rebuild,
    shared_variables,
    type_of,
)
from small_graphs import graphs_and_queries, unshared


@given(graphs_and_queries())
def test_a_tree_has_no_shared_variables_and_every_projection_is_an_edge(given_):
    _, query = given_
    assert shared_variables(unshared(query)) == []
    assert len(list(edges(query))) == sum(isinstance(node, Project) for node in nodes(query))


def test_a_shared_anchor_or_a_part_said_twice_is_no_shared_variable():
    anchor = Anchor(0)
    part = Project(anchor, 0)
    assert shared_variables(Intersect((part, part, Project(anchor, 2)))) == []
    assert shared_variables(Intersect((part, Project(part, 2)))) == [part]


def test_intersect_leaves_one_part_alone_and_counts_the_same_part_once():
    part = Project(Anchor(0), 0)
    long = Project(Project(Anchor(0), 0), 2)
    assert intersect([part]) is part
    assert intersect([part, Project(Anchor(0), 0)]) is part
    assert intersect([long, long]) is long
    assert intersect([part], type_id=1) == Intersect((part,), type_id=1)
    assert len(intersect([part, Project(Anchor(0), 2)]).parts) == 2


def test_intersect_keeps_equal_paths_with_variables_of_their_own():
    first, second = (Project(Project(Anchor(0), 0), 2) for _ in range(2))
    assert len(intersect([first, second]).parts) == 2


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_intersect_keeps_of_equal_parts_the_one_that_other_parts_start_from(order):
    copy, inner = Project(Anchor(0), 0), Project(Anchor(0), 0)
    parts = (copy, inner, Project(inner, 2))
    assert intersect([parts[place] for place in order]) == Intersect((inner, Project(inner, 2)))


def edge(entity: int) -> Query:
    return Project(Anchor(entity), 0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Project(Negate(edge(0)), 0),
        lambda: Negate(Negate(edge(0))),
        lambda: Union((edge(0), Negate(edge(1)))),
        lambda: Intersect((Negate(edge(0)), Negate(edge(1)))),
        lambda: intersect([Negate(edge(0))]),
        lambda: check_negations(Negate(edge(0))),
    ],
)
def test_a_negation_is_a_part_of_an_intersection_that_has_another_part(wrong):
    with pytest.raises(QueryError, match=r"only excludes answers.*Join the negation with a part"):
        wrong()


def test_a_variable_of_a_negation_is_used_nowhere_else():
    inner, anchor = edge(0), Anchor(1)
    check_negations(Intersect((Project(anchor, 0), Negate(Project(anchor, 2)), Negate(Project(inner, 2)))))
    for other in (inner, Project(inner, 4), Negate(Project(inner, 4))):
        with pytest.raises(QueryError, match="also used outside of it"):
            check_negations(Intersect((edge(1), Negate(Project(inner, 2)), other)))
    negation = Negate(edge(2))
    shared = Intersect((Project(Intersect((edge(0), negation)), 0), negation))
    with pytest.raises(QueryError, match="also used outside of it"):
        check_negations(shared)


def test_the_same_negation_twice_counts_once():
    assert intersect([edge(0), Negate(edge(1)), Negate(edge(1))]) == Intersect((edge(0), Negate(edge(1))))
    assert Intersect((edge(0), Negate(edge(1)))) != Intersect((edge(0), edge(1)))


@given(graphs_and_queries())
def test_a_node_rebuilt_of_its_own_children_is_the_same(given_):
    _, query = given_
    for node in nodes(query):
        again = rebuild(node, children(node))
        assert type(again) is type(node)
        assert attributes(again) == attributes(node)
        assert all(one is other for one, other in zip(children(again), children(node), strict=True))


def test_what_a_node_says_of_itself_leaves_out_its_children_name_and_span():
    inner = Project(Anchor(4), 2, 1, name="x", span=(3, 9))
    assert attributes(inner) == {"node": "Project", "relation": 2, "type_id": 1}
    assert attributes(Negate(inner)) == {"node": "Negate"}
    assert [type_of(node) for node in (Anchor(4), inner, Negate(inner), Union((inner,), 5))] == [None, 1, None, 5]
    assert {type(node) for node in nodes(Intersect((Union((inner, inner)), Negate(edge(0)))))} == set(NODE_TYPES)
