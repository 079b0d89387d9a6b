from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from halfgraph.graph.folder import Graph
from halfgraph.query.rendering import drawing, one_line
from halfgraph.query.tree import Anchor, Intersect, Project, Union, shared_variables
from imported_graphs import made
from listing_one import DBR, paper_graph, person, relation
from sparql_strategies import (
    any_queries,
    whole_graph,
)


@pytest.fixture(scope="module")
def dbpedia(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return paper_graph(tmp_path_factory.mktemp("dbpedia"))


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with whole_graph() as found:
        yield found


@given(any_queries())
def test_any_query_has_a_line_and_a_drawing(graph, query) -> None:
    assert one_line(query, graph).startswith("?answer . ")
    assert "\n" not in one_line(query, graph)
    assert drawing(query, graph).startswith("?answer")


def test_one_line_reads_as_the_paper_s_figure_1(dbpedia: Graph) -> None:
    query = Project(person(dbpedia), relation(dbpedia, "deathCause"))
    assert one_line(query, dbpedia) == (
        "?answer . ∃ ?v1 : almaMater⁻¹(UCLA, ?v1) ∧ guest(Escape Clause, ?v1) ∧ deathCause(?v1, ?answer)"
    )
    assert one_line(Project(Anchor(0), 0, 0), dbpedia, target="x").startswith("?x . almaMater(")
    assert one_line(Project(Anchor(0), 0, 0), dbpedia).endswith("∧ Thing(?answer)")


def test_a_union_is_written_where_it_stands(dbpedia: Graph) -> None:
    clause = Anchor(dbpedia.entities.find(DBR + "Escape_Clause") or 0)
    either = Union((Project(clause, relation(dbpedia, "guest")), person(dbpedia, type_id=0)))
    query = Project(either, relation(dbpedia, "deathCause"))
    assert one_line(query, dbpedia) == (
        "?answer . ∃ ?v1 : (guest(Escape Clause, ?v1) ∨ (almaMater⁻¹(UCLA, ?v1) ∧ guest(Escape Clause, ?v1) "
        "∧ Thing(?v1))) ∧ deathCause(?v1, ?answer)"
    )
    assert drawing(query, dbpedia) == (
        "?answer\n"
        "└─ deathCause ← ?v1\n"
        "   ├─ either\n"
        "   │  └─ guest ← Escape Clause\n"
        "   └─ or : Thing\n"
        "      ├─ almaMater⁻¹ ← UCLA\n"
        "      └─ guest ← Escape Clause"
    )


def test_a_shared_variable_is_drawn_once_and_marked(dbpedia: Graph) -> None:
    shared = person(dbpedia, type_id=0)
    query = Intersect((Project(shared, relation(dbpedia, "deathCause")), Project(shared, relation(dbpedia, "guest"))))
    assert shared_variables(query)
    assert drawing(query, dbpedia, target="x") == (
        "?x\n"
        "├─ deathCause ← ?v1 : Thing (shared)\n"
        "│  ├─ almaMater⁻¹ ← UCLA\n"
        "│  └─ guest ← Escape Clause\n"
        "└─ guest ← ?v1 (as above)"
    )


def test_a_known_entity_by_itself_is_its_own_answer(dbpedia: Graph) -> None:
    assert drawing(Anchor(0), dbpedia).startswith("?answer\n└─ = ")


def test_a_blank_node_has_a_label(tmp_path: Path) -> None:
    graph = made(tmp_path, "_:x <http://x/p> <http://x/a> .", ending="nt")
    blank = next(place for place, name in enumerate(graph.entities.names) if name.startswith("_:"))
    assert one_line(Project(Anchor(blank), 0), graph).startswith("?answer . p(")
