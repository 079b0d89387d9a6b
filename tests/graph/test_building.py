from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.errors import EmptyGraph, InputError, UnknownName
from halfgraph.graph.building import SelectionRecipe, build, query_seeds, read_seeds, select
from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions
from halfgraph.graph.splitting import Shares
from halfgraph.graph.statements import LABEL, TYPE
from halfgraph.graph.store import open_store, quads
from imported_graphs import made, report_of, short_lived, triples_by_name, tsv, types_by_name
from oracles import Named, around, entities, of_enough_degree
from strategies import HERE, iris, named_triples

WORLD = """
@prefix : <http://example.org/> . @prefix o: <http://ontology.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a a o:City ; o:near :b ; rdfs:label "A"@en, "Ah"@de ; o:size 3 .
:b a o:City ; o:near _:c ; :other :d . _:c a o:Town ; o:near :e ; rdfs:label "a town" .
:e o:near :f . :x o:near :y ; rdfs:label "far away" . o:City rdfs:subClassOf o:Place . o:Town rdfs:subClassOf o:Place .
"""


def chosen(graph: Graph, recipe: SelectionRecipe) -> set[Named]:
    name = graph.entities.name
    return {(name(h), graph.relations.name(r // 2), name(t)) for h, r, t in select(graph, recipe).tolist()}


@given(named_triples(most=20), st.sets(iris("e", 8), min_size=1, max_size=2), st.integers(1, 3))
def test_the_triples_around_seeds_are_those_a_walk_meets(triples: list[Named], seeds: set[str], hops: int) -> None:
    seeds &= entities(triples)
    with short_lived(tsv(triples)) as graph:
        assert chosen(graph, SelectionRecipe(sorted(seeds), hops)) == around(triples, seeds, hops)


@given(named_triples(), st.integers(1, 6))
def test_entities_of_less_degree_are_removed_until_all_have_it(triples: list[Named], degree: int) -> None:
    with short_lived(tsv(triples)) as graph:
        assert chosen(graph, SelectionRecipe(degree=degree)) == of_enough_degree(triples, degree)


@given(named_triples())
def test_the_namespace_chooses_the_predicates(triples: list[Named]) -> None:
    with short_lived(tsv(triples)) as graph:
        found = chosen(graph, SelectionRecipe(namespace=HERE + "r1"))
        assert found == {triple for triple in triples if triple[1] == HERE + "r1"}


@given(named_triples())
def test_the_default_recipe_keeps_the_whole_graph(triples: list[Named]) -> None:
    with short_lived(tsv(triples)) as graph:
        built = build(graph, graph.path.parent / "built", SelectionRecipe(), ImportOptions())
        assert built.fingerprint == graph.fingerprint


def test_a_built_graph_has_only_the_statements_about_its_entities(tmp_path: Path) -> None:
    graph = made(tmp_path, WORLD, "ttl", language="de")
    recipe = SelectionRecipe([HERE + "a"], hops=2, namespace="http://ontology.org/")
    built = build(graph, tmp_path / "built", recipe, ImportOptions())
    assert set(triples_by_name(built, built.whole)) == {
        (HERE + "a", "http://ontology.org/near", HERE + "b"),
        (HERE + "b", "http://ontology.org/near", "_:b0"),
    }
    city, town = "http://ontology.org/City", "http://ontology.org/Town"
    assert types_by_name(built) == {HERE + "a": city, HERE + "b": city, "_:b0": town}
    assert built.entities.label(built.entities.find(HERE + "a") or 0) == "Ah"  # as it was chosen for the source
    said = {str(quad.triple) for quad in quads(built)}
    assert f'_:b0 <{LABEL}> "a town"' in said
    assert f'<{HERE}a> <http://ontology.org/size> "3"^^<http://www.w3.org/2001/XMLSchema#integer>' in said
    assert not [triple for triple in said if "far away" in triple]
    assert built.description["prefixes"] == graph.description["prefixes"]


def test_a_built_graph_keeps_types_and_labels_from_files(tmp_path: Path) -> None:
    (tmp_path / "types.tsv").write_text("a\tA\nb\tB\nc\tC\n")
    (tmp_path / "labels.tsv").write_text("a\tThe A\nc\tThe C\nr\tis near\n")
    files = {"types_file": tmp_path / "types.tsv", "labels_files": (tmp_path / "labels.tsv",)}
    graph = made(tmp_path, "a\tr\tb\nb\tr\tc\n", **files)
    built = build(graph, tmp_path / "built", SelectionRecipe(["a"], hops=1), ImportOptions())
    assert types_by_name(built) == {"a": "A", "b": "B"}
    assert built.relations.label(0) == "is near"
    said = {(getattr(quad.subject, "value", ""), quad.predicate.value) for quad in open_store(built)}
    local = "http://halfgraph.local/"
    assert {(f"{local}a", TYPE), (f"{local}b", TYPE), (f"{local}a", LABEL), (f"{local}r", LABEL)} <= said
    assert f"{local}c" not in {subject for subject, _ in said}


def test_a_build_is_split_and_records_its_source(tmp_path: Path) -> None:
    graph = made(tmp_path, tsv((f"e{n % 9}", "r", f"e{n * n % 9}") for n in range(81)))
    built = build(
        graph, tmp_path / "built", SelectionRecipe(degree=2), ImportOptions(split=Shares(90, 1, 9)), source="somewhere"
    )
    assert built.has_split
    provenance = built.description["provenance"]
    assert provenance["sources"] == ["somewhere"]
    assert provenance["built_from"] == graph.fingerprint
    assert provenance["recipe"] == {"seeds": None, "hops": 2, "namespace": None, "degree": 2}
    report = report_of(built)
    assert report["statements read"] == report["triples of the graph"] == built.whole.triple_count


def test_seeds_are_names_or_iris_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    graph = made(tmp_path, "alpha\tr\tbeta\nc\tr\td\n")
    assert chosen(graph, SelectionRecipe(["http://halfgraph.local/alpha"])) == {("alpha", "r", "beta")}
    with pytest.raises(UnknownName, match=r"seeds: no entity alhpa in this graph\. Did you mean alpha\?"):
        select(graph, SelectionRecipe(["alhpa"]))


def test_a_recipe_that_leaves_no_triples_is_reported(tmp_path: Path) -> None:
    graph = made(tmp_path, "a\tr\tb\n")
    with pytest.raises(EmptyGraph, match="Lower degree"):
        build(graph, tmp_path / "built", SelectionRecipe(degree=5), ImportOptions())
    assert not (tmp_path / "built").exists()


def test_seeds_are_read_one_a_line(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\ufeff<http://a.org/a>\r\n\n  plain name \n")
    assert read_seeds(seeds) == ["http://a.org/a", "plain name"]
    seeds.write_text("\n \n")
    with pytest.raises(InputError, match="has no seed"):
        read_seeds(seeds)


def test_seeds_are_found_by_a_query(tmp_path: Path) -> None:
    graph = made(tmp_path, WORLD, "ttl")
    assert query_seeds(graph, "SELECT ?city WHERE { ?city a <http://ontology.org/City> }") == [HERE + "a", HERE + "b"]
    with pytest.raises(EmptyGraph, match="seeds_query"):
        query_seeds(graph, "SELECT ?x WHERE { ?x a <http://ontology.org/Nothing> }")
    for query in ("SELECT", "ASK { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }"):
        with pytest.raises(InputError, match="seeds_query"):
            query_seeds(graph, query)
