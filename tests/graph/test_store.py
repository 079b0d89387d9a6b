import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, CanonicalizationAlgorithm, Dataset, DefaultGraph, NamedNode, Quad, RdfFormat, Store

from halfgraph.graph.folder import Graph
from halfgraph.graph.splitting import Shares
from halfgraph.graph.statements import LABEL, TYPE
from halfgraph.graph.store import open_store, quads, store_folder
from imported_graphs import made, rdf, short_lived, stored, tsv
from oracles import Named
from strategies import HERE, cells, statements

ONE_TRIPLE = Quad(NamedNode(HERE + "e0"), NamedNode(HERE + "r0"), NamedNode(HERE + "e1"))


def canonical(found: Iterable[Quad]) -> Dataset:
    """The statements with blank nodes named in a canonical way, so that equal up to renaming is equal."""
    dataset = Dataset(found)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return dataset


def with_all_in_the_default_graph(store: Store) -> list[Quad]:
    return [*store, *(Quad(quad.subject, quad.predicate, quad.object) for quad in store)]


@given(statements(), st.sampled_from(["nt", "ttl", "jsonld"]))
def test_the_store_holds_exactly_the_statements_of_the_source(given_quads: list[Quad], ending: str) -> None:
    syntax = RdfFormat.from_extension(ending)
    assert syntax
    content = rdf([*given_quads, ONE_TRIPLE], syntax)
    with short_lived(content, ending) as graph:
        assert canonical(list(quads(graph))) == canonical(stored(content, syntax))


@given(statements(with_graphs=True), st.sampled_from(["nq", "trig"]), st.booleans())
def test_named_graphs_are_kept_apart_from_the_default_graph(
    given_quads: list[Quad], ending: str, is_union: bool
) -> None:
    syntax = RdfFormat.from_extension(ending)
    assert syntax
    content = rdf([*given_quads, ONE_TRIPLE], syntax)
    with short_lived(content, ending, default_graph="union" if is_union else "own") as graph:
        store = stored(content, syntax)
        assert canonical(list(quads(graph))) == canonical(with_all_in_the_default_graph(store) if is_union else store)


@given(statements(with_graphs=True))
def test_the_default_graph_is_the_union_of_all_graphs_if_it_were_empty(given_quads: list[Quad]) -> None:
    content = rdf(given_quads, RdfFormat.N_QUADS)
    store = stored(content, RdfFormat.N_QUADS)
    has_own = any(isinstance(quad.graph_name, DefaultGraph) for quad in store)
    with short_lived(content, "nq") as graph:
        assert canonical(list(quads(graph))) == canonical(store if has_own else with_all_in_the_default_graph(store))
        assert graph.is_union == (bool(given_quads) and not has_own)


def test_a_triple_of_the_default_graph_stays_there_if_a_named_graph_has_it_too(tmp_path: Path) -> None:
    line = "<http://a.org/a> <http://a.org/r> <http://a.org/b>"
    other = "<http://a.org/b> <http://a.org/r> <http://a.org/b>"
    for lines in ([f"{line} <http://g>", line], [line, f"{line} <http://g>", f"{line} <http://h>"]):
        content = "".join(f"{one} .\n" for one in [*lines, f"{other} <http://g>", f"{other} <http://g>"]).encode()
        graph = made(tmp_path, content, "nq")
        assert set(open_store(graph)) == set(stored(content, RdfFormat.N_QUADS))
        assert graph.whole.triple_count == 2


@given(statements(with_graphs=True))
def test_a_view_holds_no_triple_that_is_held_out_from_it(given_quads: list[Quad]) -> None:
    content = rdf([*given_quads, ONE_TRIPLE], RdfFormat.N_QUADS)
    with short_lived(content, "nq", split=Shares(50, 0, 50)) as graph:
        name = graph.entities.name
        held_out = {(name(h), graph.relations.name(r // 2), name(t)) for h, r, t in graph.test.triples().tolist()}
        seen = {
            (f"_:{s.value}" if isinstance(s, BlankNode) else getattr(s, "value", ""), quad.predicate.value, str(o))
            for quad in quads(graph, "train")
            for s, o in [(quad.subject, quad.object)]
        }
        assert not {(h, r, t if t.startswith("_:") else f"<{t}>") for h, r, t in held_out} & seen


def test_blank_nodes_inside_of_triple_terms_are_the_same_nodes(tmp_path: Path) -> None:
    content = b"<http://a.org/a> <http://a.org/r> _:x . _:s <http://a.org/says> <<( _:x <http://a.org/q> 3 )>> ."
    graph = made(tmp_path, content, "ttl")
    assert canonical(open_store(graph)) == canonical(stored(content, RdfFormat.TURTLE))


@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=6))
def test_any_names_of_a_tsv_file_come_back_from_the_store(triples: list[Named]) -> None:
    triples = [(f"e{head}", f"r{relation}", f"e{tail}") for head, relation, tail in triples]  # not to clash
    with short_lived(tsv(triples)) as graph:
        found = [(quad.subject, quad.predicate, quad.object) for quad in quads(graph)]
        assert len(found) == len(set(triples))
        for triple in triples:
            assert tuple(graph.namer.term(name) for name in triple) in found
        for terms in found:
            words = (graph.entities, graph.relations, graph.entities)
            named = [
                [name for name in graph.namer.names(getattr(term, "value", "")) if name in known]
                for term, known in zip(terms, words, strict=True)
            ]
            assert [len(names) for names in named] == [1, 1, 1]


@pytest.mark.parametrize(
    "name", ["two words", 'a "quote"', "50%", "%41", "a#b?c", "<tag>", "naïve café", "a\\b", "{x}|^`"]
)
def test_strange_names_make_iris_that_queries_can_use(tmp_path: Path, name: str) -> None:
    graph = made(tmp_path, f"{name}\tr\tb\n")
    rows = open_store(graph).query(f"SELECT ?o WHERE {{ <{graph.namer.iri(name)}> <r> ?o }}", base_iri=graph.namer.base)
    assert [row[0].value for row in rows] == ["http://halfgraph.local/b"]  # type: ignore[union-attr]


def test_types_and_labels_from_files_are_in_the_store_as_stated(tmp_path: Path) -> None:
    (tmp_path / "types.tsv").write_text("a\tA\na\tB\n")
    (tmp_path / "labels.tsv").write_text('a\tThe "A"\n')
    graph = made(tmp_path, "a\tr\tb\n", types_file=tmp_path / "types.tsv", labels_files=(tmp_path / "labels.tsv",))
    found = {(quad.subject.value, quad.predicate.value, quad.object.value) for quad in open_store(graph)}  # type: ignore[union-attr]
    local = "http://halfgraph.local/"
    assert found == {
        (f"{local}a", f"{local}r", f"{local}b"),
        (f"{local}a", TYPE, f"{local}A"),
        (f"{local}a", TYPE, f"{local}B"),
        (f"{local}a", LABEL, 'The "A"'),
    }


def test_the_store_is_built_once_and_opens_for_several_readers(tmp_path: Path) -> None:
    graph = made(tmp_path, "a\tr\tb\n")
    one, other = open_store(graph), open_store(Graph.open(graph.path))
    assert len(one) == len(other) == 1
    assert [path.name for path in graph.path.glob("*store*")] == ["store-train"]


def test_a_graph_without_a_split_has_one_store_whatever_is_asked(tmp_path: Path) -> None:
    graph = made(tmp_path, "a\tr\tb\n")
    assert store_folder(graph, "test") == store_folder(graph) == store_folder(graph, "known")
    assert len(open_store(graph)) == 1


def test_each_view_of_a_split_graph_has_its_store(tmp_path: Path) -> None:
    graph = made(tmp_path, tsv((f"e{n % 9}", "r", f"e{n * n % 9}") for n in range(81)), split=Shares(50, 25, 25))
    for view in ("train", "valid", "test", "known", "whole"):
        assert len(open_store(graph, view)) == getattr(graph, view).triple_count


def test_a_store_that_another_one_is_building_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = made(tmp_path, "a\tr\tb\n")
    built = []

    def quads_while_another_waits(found: Graph, view: str) -> list[Quad]:
        built.append(threading.get_native_id())
        other.start()
        other.join(0.2)
        assert other.is_alive()
        return list(quads(found, view))

    monkeypatch.setattr("halfgraph.graph.store.quads", quads_while_another_waits)
    other = threading.Thread(target=store_folder, args=(Graph.open(graph.path),))
    assert len(open_store(graph)) == 1
    other.join()
    assert built == [threading.get_native_id()]


def test_no_statement_is_in_a_graph_that_is_not_named(tmp_path: Path) -> None:
    graph = made(tmp_path, '<http://a.org/a> <http://a.org/r> <http://a.org/b>, "x" .', "ttl")
    assert all(isinstance(quad.graph_name, DefaultGraph) for quad in quads(graph))


def test_the_store_of_a_graph_with_triples_held_out_lacks_them_in_train_alone(tmp_path: Path) -> None:
    graph = made(tmp_path, tsv((f"a{n % 9}", "r", f"b{n % 7}") for n in range(60)))
    held = graph.with_held_out(5, 0)
    assert store_folder(graph) == store_folder(held) == store_folder(held, "known")
    assert len(open_store(held)) == 60
    assert len(open_store(held, "train")) == 55
    assert len(open_store(graph, "train")) == 60
    assert store_folder(held, "train") != store_folder(graph.with_held_out(5, 1), "train")
