from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from halfgraph.errors import InputError
from halfgraph.graph.folder import Graph
from halfgraph.query.exact import Exact
from halfgraph.query.tree import Anchor, Project, Query, Union
from halfgraph.sparql.prefixes import COMMON, Prefixes
from halfgraph.sparql.rendering import to_sparql
from imported_graphs import made
from listing_one import DBR, paper_graph, person, relation
from sparql_strategies import (
    answers,
    any_queries,
    dags,
    full_trees,
    graph_data,
    store_of,
    trees,
    typed_graph,
    whole_graph,
)


@pytest.fixture(scope="module")
def dbpedia(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return paper_graph(tmp_path_factory.mktemp("dbpedia"))


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with whole_graph() as found:
        yield found


@given(graph_data(), trees() | dags() | full_trees())
def test_the_store_answers_the_rendered_query_as_exact_does(data, query) -> None:
    with typed_graph(*data) as graph:
        assert answers(store_of(graph), to_sparql(query, graph), graph) == Exact(graph.train).answers(query).tolist()


@given(graph_data(), any_queries())
def test_so_it_does_for_any_query_with_unions_doubled_parts_and_anchors_anywhere(data, query) -> None:
    with typed_graph(*data) as graph:
        assert answers(store_of(graph), to_sparql(query, graph), graph) == Exact(graph.train).answers(query).tolist()


@given(any_queries())
def test_any_query_can_be_written_as_sparql(graph, query) -> None:
    assert "SELECT DISTINCT ?answer WHERE {" in to_sparql(query, graph)


def test_sparql_declares_the_prefixes_it_uses_and_writes_the_rest_in_full(dbpedia: Graph) -> None:
    query = Project(person(dbpedia, type_id=0), relation(dbpedia, "deathCause"))
    assert to_sparql(query, dbpedia) == (
        "PREFIX : <http://halfgraph.local/>\n"
        "PREFIX dbo: <http://dbpedia.org/ontology/>\n"
        "PREFIX dbr: <http://dbpedia.org/resource/>\n"
        "SELECT DISTINCT ?answer WHERE {\n"
        "  ?v1 dbo:almaMater <http://dbpedia.org/resource/University_of_California,_Los_Angeles> .\n"
        "  dbr:Escape_Clause dbo:guest ?v1 .\n"
        "  ?v1 a :Thing .\n"
        "  ?v1 dbo:deathCause ?answer .\n"
        "}\n"
    )


def test_the_target_can_have_any_name(dbpedia: Graph) -> None:
    query = Project(person(dbpedia), relation(dbpedia, "deathCause"))
    text = to_sparql(query, dbpedia, target="v1")
    assert "SELECT DISTINCT ?v1" in text
    assert "?v2 dbo:deathCause ?v1 ." in text


def test_a_union_is_written_where_it_stands(dbpedia: Graph) -> None:
    clause = Anchor(dbpedia.entities.find(DBR + "Escape_Clause") or 0)
    either = Union((Project(clause, relation(dbpedia, "guest")), person(dbpedia, type_id=0)))
    query = Project(either, relation(dbpedia, "deathCause"))
    assert "  } UNION {\n" in to_sparql(query, dbpedia)
    assert to_sparql(query, dbpedia).endswith("  }\n  ?v1 dbo:deathCause ?answer .\n}\n")


def test_a_known_entity_by_itself_is_its_own_answer(dbpedia: Graph) -> None:
    assert "VALUES ?answer { " in to_sparql(Anchor(0), dbpedia)


def test_ten_variables_are_in_the_order_of_their_numbers(graph: Graph) -> None:
    query: Query = Anchor(0)
    for _ in range(12):
        query = Project(query, 0)
    assert "?v9 :r0 ?v10 .\n  ?v10 :r0 ?v11 ." in to_sparql(query, graph)


def test_a_chain_of_thousands_is_rendered(graph: Graph) -> None:
    query: Query = Anchor(0)
    for _ in range(2000):
        query = Project(query, 0)
    assert to_sparql(query, graph).count("\n") == 2003


def test_a_blank_node_cannot_be_named_in_sparql(tmp_path: Path) -> None:
    graph = made(tmp_path, "_:x <http://x/p> <http://x/a> .", ending="nt")
    blank = next(place for place, name in enumerate(graph.entities.names) if name.startswith("_:"))
    query = Project(Anchor(blank), 0)
    with pytest.raises(InputError, match="is a blank node, which a query cannot name"):
        to_sparql(query, graph)


@pytest.mark.parametrize(
    ("iri", "short"),
    [
        ("http://dbpedia.org/resource/UCLA", "dbr:UCLA"),
        ("http://dbpedia.org/resource/U.C", "dbr:U.C"),
        ("http://dbpedia.org/resource/U.C.", "<http://dbpedia.org/resource/U.C.>"),
        ("http://dbpedia.org/resource/%60Abbās", "dbr:%60Abbās"),
        ("http://dbpedia.org/resource/AC/DC", "<http://dbpedia.org/resource/AC/DC>"),
        ("http://dbpedia.org/resource/", "<http://dbpedia.org/resource/>"),
        ("http://dbpedia.org/resource/music/AC", "music:AC"),
        ("http://halfgraph.local/Q1", ":Q1"),
        ("http://halfgraph.local/m/010016", "</m/010016>"),
        ("http://halfgraph.local//m", "<http://halfgraph.local//m>"),
        ("http://halfgraph.local/a/../b", "<http://halfgraph.local/a/../b>"),
        ("Compound::DB00014", "<Compound::DB00014>"),
    ],
)
def test_an_iri_is_as_short_as_sparql_lets_it_be(iri: str, short: str) -> None:
    prefixes = Prefixes(
        COMMON | {"": "http://halfgraph.local/", "music": DBR + "music/"}, base="http://halfgraph.local/"
    )
    assert prefixes.short(iri) == short


def test_a_base_is_declared_only_where_something_is_relative_to_it(graph: Graph) -> None:
    by_name = {name: place for place, name in enumerate(graph.entities.names)}
    assert to_sparql(Project(Anchor(by_name["/m/0e1"]), 0), graph).startswith("BASE <http://halfgraph.local/>\n")
    assert "</m/0e1> :r0 ?answer" in to_sparql(Project(Anchor(by_name["/m/0e1"]), 0), graph)
    assert "BASE" not in to_sparql(Project(Anchor(by_name["http://example.org/e0"]), 0), graph)


def test_the_prefixes_of_the_graph_s_file_are_used(tmp_path: Path) -> None:
    graph = made(tmp_path, "@prefix ex: <http://x/> . ex:a ex:p ex:b .", ending="ttl")
    assert to_sparql(Project(Anchor(0), 0), graph).startswith("PREFIX ex: <http://x/>\nSELECT")
