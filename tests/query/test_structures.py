import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import SettingError
from halfgraph.query.canonical import structure_formula
from halfgraph.query.structures import (
    NAMED,
    NEIGHBOURHOODS,
    STRUCTURES,
    match_structure,
    neighbourhood,
    structure_name,
    structure_named,
)
from halfgraph.query.tree import (
    Anchor,
    Intersect,
    Negate,
    Project,
    Union,
)
from small_graphs import reordered

SEVEN = {
    "1-chain": ("1p", 1, 1),
    "2-chain": ("2p", 1, 2),
    "3-chain": ("3p", 1, 3),
    "2-inter": ("2i", 2, 2),
    "3-inter": ("3i", 3, 3),
    "3-inter_chain": ("pi", 2, 3),
    "3-chain_inter": ("ip", 2, 3),
}


every_shape = pytest.mark.parametrize("structure", NAMED, ids=lambda structure: structure.name)


def ids(structure, count=5, seed=0):
    """Random columns for a structure."""
    generator = np.random.default_rng(seed)
    return (
        generator.integers(0, 20, (count, structure.anchor_count), dtype=np.int32),
        generator.integers(0, 8, (count, structure.relation_count), dtype=np.int32),
    )


def test_the_papers_seven_structures_have_their_names_and_sizes():
    found = {
        structure.name: (structure.short, structure.anchor_count, structure.relation_count) for structure in STRUCTURES
    }
    assert found == SEVEN
    assert [structure.name for structure in STRUCTURES if structure.has_intersection] == list(SEVEN)[3:]


@every_shape
def test_a_structure_is_known_by_both_of_its_names(structure):
    assert structure_named(structure.name) is structure_named(structure.short) is structure


def test_no_two_structures_share_a_name_or_a_form():
    assert len({name for structure in NAMED for name in (structure.name, structure.short)}) == 2 * len(NAMED)
    assert len({structure_formula(structure.query) for structure in NAMED}) == len(NAMED)


def test_an_unknown_structure_is_refused_with_those_that_are_known():
    with pytest.raises(SettingError, match=r"3-inter_chian.*3-inter_chain \(pi\)"):
        structure_named("3-inter_chian")


def test_neighbourhoods_are_intersections_of_single_edges():
    assert [structure.relation_count for structure in NEIGHBOURHOODS] == [4, 5, 6, 7]
    assert [structure.anchor_count for structure in NEIGHBOURHOODS] == [4, 5, 6, 7]
    assert neighbourhood(5) in NEIGHBOURHOODS
    assert neighbourhood(3) in STRUCTURES


def test_fill_puts_the_columns_where_the_structure_says():
    anchors, relations = np.array([10, 11], np.int32), np.array([0, 2, 4], np.int32)
    filled = {name: structure_named(name).fill(anchors, relations) for name in ("pi", "ip", "up")}
    assert filled["pi"] == Intersect((Project(Anchor(10), 0), Project(Project(Anchor(11), 2), 4)))
    assert filled["ip"] == Project(Intersect((Project(Anchor(10), 0), Project(Anchor(11), 2))), 4)
    assert filled["up"] == Project(Union((Project(Anchor(10), 0), Project(Anchor(11), 2))), 4)
    three = structure_named("3p").fill(anchors, relations)
    assert three == Project(Project(Project(Anchor(10), 0), 2), 4)


@every_shape
def test_a_batch_filled_is_the_queries_filled_one_by_one(structure):
    anchors, relations = ids(structure)
    batch = structure.fill(anchors, relations)
    assert structure_name(batch) == structure.name
    for row in range(len(anchors)):
        assert structure.fill(anchors[row], relations[row]) == _row(batch, row)


def _row(node, row):
    """One query of a batch."""
    match node:
        case Anchor():
            return Anchor(int(node.entity[row]))
        case Project():
            return Project(_row(node.source, row), int(node.relation[row]), node.type_id)
        case Negate():
            return Negate(_row(node.part, row))
        case _:
            return type(node)(tuple(_row(part, row) for part in node.parts), node.type_id)


@given(st.sampled_from(NAMED), st.integers(0, 99), st.data())
def test_every_named_structure_is_recognised_and_read_back_in_any_order_of_its_parts(structure, seed, data):
    anchors, relations = ids(structure, 1, seed)
    query = data.draw(reordered(structure.fill(anchors[0], relations[0])))
    assert structure_name(query) == structure.name
    found, own_anchors, own_relations = match_structure(query)
    assert found is structure
    assert structure.fill(np.array(own_anchors), np.array(own_relations)) == query


def test_an_anchor_used_twice_has_a_column_for_each_use():
    anchor = Anchor(4)
    query = Intersect((Project(anchor, 0), Project(Project(anchor, 2), 4)))
    assert match_structure(query) == (structure_named("pi"), [4, 4], [0, 2, 4])


def test_a_restricted_type_is_none_of_the_named_structures_for_reading_back():
    assert match_structure(Project(Anchor(0), 0, type_id=1)) is None
    assert match_structure(Intersect((Project(Anchor(0), 0), Project(Anchor(1), 0)), type_id=0)) is None


@pytest.mark.parametrize(
    ("query", "form"),
    [
        (Anchor(0), "a"),
        (Project(Project(Project(Project(Anchor(0), 0), 0), 0), 0), "apppp"),
        (Project(Intersect((Project(Project(Anchor(0), 0), 0), Project(Anchor(1), 2))), 4), "(ap&app)p"),
        (Intersect((Union((Project(Anchor(0), 0), Project(Anchor(1), 0))), Project(Anchor(2), 0))), "((ap|ap)&ap)"),
        (Intersect(tuple(Project(Anchor(n), 0) for n in range(8))), f"({'&'.join(['ap'] * 8)})"),
    ],
)
def test_any_other_tree_is_named_by_its_form(query, form):
    assert structure_name(query) == form
    assert match_structure(query) is None
