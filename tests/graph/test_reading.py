import gzip
import io
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Store

from halfgraph.errors import InputError, SettingError
from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions, import_graph
from halfgraph.graph.reading import format_of
from halfgraph.graph.statements import SCHEMA, SUB_CLASS_OF, TYPE, label_rank
from imported_graphs import choices_of, made, nt, rdf, report_of, short_lived, stored, triples_by_name, tsv
from oracles import Named, learnt
from strategies import HERE, cells, named_triples, statements
from wild_graphs import WILD

SYNTAXES = {
    "nt": RdfFormat.N_TRIPLES,
    "nq": RdfFormat.N_QUADS,
    "ttl": RdfFormat.TURTLE,
    "trig": RdfFormat.TRIG,
    "rdf": RdfFormat.RDF_XML,
    "jsonld": RdfFormat.JSON_LD,
}
WITH_GRAPHS = [ending for ending, syntax in SYNTAXES.items() if syntax.supports_datasets]


def learnt_by_pyoxigraph(store: Store) -> set[str]:
    return {str(triple) for triple in learnt(store, [TYPE, *SCHEMA])}


def shape(graph: Graph) -> dict[str, int]:
    """Counts that a graph and any other reader of the file share."""
    return {
        "triples": graph.whole.triple_count,
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "literals": graph.description["counts"]["literals"],
    }


def shape_by_pyoxigraph(store: Store) -> dict[str, int]:
    triples = learnt(store, [TYPE, *SCHEMA])
    return {
        "triples": len(triples),
        "entities": len({str(end) for triple in triples for end in (triple.subject, triple.object)}),
        "relations": len({triple.predicate for triple in triples}),
        "literals": sum(isinstance(quad.object, Literal) for quad in store),
    }


def shape_by_rdflib(content: bytes, syntax: str) -> dict[str, int]:
    found = rdflib.Dataset(default_union=True)
    found.parse(data=content, format=syntax, publicID="http://halfgraph.local/")
    aside = {rdflib.URIRef(name) for name in (TYPE, *SCHEMA)}
    triples = {(s, p, o) for s, p, o in found.triples((None, None, None)) if not isinstance(o, rdflib.Literal)}
    triples = {(s, p, o) for s, p, o in triples if p not in aside}
    return {
        "triples": len(triples),
        "entities": len({end for s, _, o in triples for end in (s, o)}),
        "relations": len({p for _, p, _ in triples}),
        "literals": sum(isinstance(o, rdflib.Literal) for _, _, o, _ in found.quads((None, None, None, None))),
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # rdflib warns of its own insides
@pytest.mark.parametrize(("ending", "other"), [("ttl", "turtle"), ("nt", "nt"), ("rdf", "xml"), ("jsonld", "json-ld")])
def test_a_wild_file_counts_as_it_does_for_rdflib_and_pyoxigraph(tmp_path: Path, ending: str, other: str) -> None:
    content = rdf(stored(WILD, RdfFormat.TURTLE), SYNTAXES[ending]) if ending != "ttl" else WILD
    graph = made(tmp_path, content, ending)
    assert shape(graph) == shape_by_pyoxigraph(stored(content, SYNTAXES[ending])) == shape_by_rdflib(content, other)
    assert shape(graph)["triples"] == 11


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_file_of_named_graphs_counts_as_it_does_for_rdflib(tmp_path: Path) -> None:
    content = b"""@prefix : <http://example.org/> . :a :p :b . :a :p "x" .
    :g { :a :p :b . :b :p :c . :c :q "y"@en } :h { :b :p :c . :c :q "y"@en . [] :p :a } _:i { :c :p "z" }"""
    graph = made(tmp_path, content, "trig")
    assert shape(graph) == shape_by_pyoxigraph(stored(content, RdfFormat.TRIG)) == shape_by_rdflib(content, "trig")
    assert shape(graph) == {"triples": 3, "entities": 4, "relations": 1, "literals": 4}


@given(statements(), st.sampled_from([ending for ending in SYNTAXES if ending != "rdf"]))
def test_any_rdf_counts_as_it_does_for_pyoxigraph(quads: list[Quad], ending: str) -> None:
    quads.append(Quad(NamedNode(HERE + "e0"), NamedNode(HERE + "r0"), NamedNode(HERE + "e1")))
    content = rdf(quads, SYNTAXES[ending])
    with short_lived(content, ending) as graph:
        assert shape(graph) == shape_by_pyoxigraph(stored(content, SYNTAXES[ending]))


@given(statements(with_graphs=True), st.sampled_from(WITH_GRAPHS))
def test_any_rdf_with_named_graphs_counts_as_it_does_for_pyoxigraph(quads: list[Quad], ending: str) -> None:
    quads.append(Quad(NamedNode(HERE + "e0"), NamedNode(HERE + "r0"), NamedNode(HERE + "e1")))
    content = rdf(quads, SYNTAXES[ending])
    with short_lived(content, ending) as graph:
        assert shape(graph) == shape_by_pyoxigraph(stored(content, SYNTAXES[ending]))


@given(statements(with_graphs=True), st.sampled_from(["keep", "drop"]), st.sampled_from(["keep", "drop"]))
def test_nothing_is_lost_silently(quads: list[Quad], blank_nodes: str, self_loops: str) -> None:
    quads.append(Quad(NamedNode(HERE + "e0"), NamedNode(HERE + "r0"), NamedNode(HERE + "e1")))
    content = rdf(quads, RdfFormat.N_QUADS)
    with short_lived(content, "nq", blank_nodes=blank_nodes, self_loops=self_loops) as graph:
        report = Counter(report_of(graph))
        dropped_loops = report["self-loops"] if self_loops == "drop" else 0
        fates = ("triples of the graph", "duplicates", "literals", "types", "schema", "blank nodes dropped")
        assert report["statements read"] == len(quads)
        assert report["statements read"] == dropped_loops + sum(report[fate] for fate in fates)
        has_blank = [any(isinstance(term, BlankNode) for term in (quad.subject, quad.object)) for quad in quads]
        assert report["blank nodes dropped"] == (sum(has_blank) if blank_nodes == "drop" else 0)


@given(named_triples(), st.randoms(use_true_random=False))
def test_neither_the_order_nor_the_format_changes_the_fingerprint(triples: list[Named], rng: random.Random) -> None:
    shuffled = [*triples, *rng.sample(triples, len(triples) // 2)]
    rng.shuffle(shuffled)
    with short_lived(tsv(triples)) as one, short_lived(nt(shuffled), "nt") as other:
        assert one.fingerprint == other.fingerprint
        assert one.train.triple_count == len(set(triples))


@given(statements(), st.randoms(use_true_random=False))
def test_the_order_of_rdf_statements_does_not_change_the_fingerprint(quads: list[Quad], rng: random.Random) -> None:
    named = [
        quad for quad in quads if not isinstance(quad.subject, BlankNode) and not isinstance(quad.object, BlankNode)
    ]
    named.append(Quad(NamedNode(HERE + "e0"), NamedNode(HERE + "r0"), NamedNode(HERE + "e1")))
    shuffled = [*named, *rng.sample(named, len(named) // 2)]
    rng.shuffle(shuffled)
    with (
        short_lived(rdf(named, SYNTAXES["ttl"]), "ttl") as one,
        short_lived(rdf(shuffled, SYNTAXES["nt"]), "nt") as other,
    ):
        assert one.fingerprint == other.fingerprint
        assert list(one.entities.labels) == list(other.entities.labels)


def test_another_triple_name_or_type_changes_the_fingerprint(tmp_path: Path) -> None:
    graphs = [
        made(tmp_path, "a\tr\tb\na\tr\tc\n"),
        made(tmp_path, "a\tr\tb\nb\tr\tc\n"),
        made(tmp_path, "a\tr\tb\na\tr\td\n"),
        made(tmp_path, "a\ts\tb\na\ts\tc\n"),
        made(tmp_path, "a\tr\tb\na\tr\tc\n", types="one"),
    ]
    assert len({graph.fingerprint for graph in graphs}) == 5


@pytest.mark.parametrize("ending", SYNTAXES)
def test_a_gzipped_file_reads_as_the_plain_one(tmp_path: Path, ending: str) -> None:
    content = rdf(stored(WILD, RdfFormat.TURTLE), SYNTAXES[ending])
    one, other = made(tmp_path, content, ending), made(tmp_path, gzip.compress(content), f"{ending}.gz")
    assert shape(one) == shape(other)
    assert shape(one) == shape(made(tmp_path, gzip.compress(content), ending))  # whatever the ending says


def test_standard_input_reads_as_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (WILD, gzip.compress(WILD)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        out = tmp_path / str(len(content))
        graph = import_graph([Path("-")], out, choices_of(format="ttl"))
        assert shape(graph) == shape_by_pyoxigraph(stored(WILD, RdfFormat.TURTLE))


@pytest.mark.parametrize("ending", [*SYNTAXES, "tsv", "csv"])
def test_a_byte_order_mark_is_not_part_of_the_file(tmp_path: Path, ending: str) -> None:
    quads = [Quad(NamedNode(HERE + "a"), NamedNode(HERE + "r"), NamedNode(HERE + "b"))]
    tables = {"tsv": b"a\tr\tb\n", "csv": b'"a",r,b\n'}
    content = tables.get(ending) or rdf(quads, SYNTAXES[ending])
    plain, marked = made(tmp_path, content, ending), made(tmp_path, b"\xef\xbb\xbf" + content, ending)
    assert plain.fingerprint == marked.fingerprint


def test_line_ends_of_windows_and_empty_lines_do_not_matter(tmp_path: Path) -> None:
    plain = made(tmp_path, "a\tr\tb\nb\tr\tc\n")
    assert made(tmp_path, "\r\na\tr\tb\r\n\r\n\r\nb\tr\tc").fingerprint == plain.fingerprint
    assert made(tmp_path, "a,r,b\r\n\r\nb,r,c\r\n", "csv").fingerprint == plain.fingerprint


def test_a_header_is_passed_over_when_asked(tmp_path: Path) -> None:
    plain = made(tmp_path, "a\tr\tb\n")
    assert made(tmp_path, "\nhead\trelation\ttail\na\tr\tb\n", header=True).fingerprint == plain.fingerprint
    assert made(tmp_path, '"the\nhead",relation,tail\na,r,b\n', "csv", header=True).fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    "header", ["head,relation,tail", "Subject,Predicate,Object", "h,r,t", "source,relation,target"]
)
def test_a_header_is_recognised_and_reported(tmp_path: Path, header: str) -> None:
    graph = made(tmp_path, f"{header}\na,r,b\n", "csv")
    assert graph.fingerprint == made(tmp_path, "a\tr\tb\n").fingerprint
    assert [row["count"] for row in graph.description["report"] if row["what"] == "header lines"] == [1]


def test_a_header_is_a_triple_if_there_is_said_to_be_none(tmp_path: Path) -> None:
    graph = made(tmp_path, "head,relation,tail\na,r,b\n", "csv", header=False)
    assert graph.train.triple_count == 2


def test_names_of_columns_in_a_later_row_or_in_another_order_are_a_triple(tmp_path: Path) -> None:
    graph = made(tmp_path, "tail,relation,head\nhead,relation,tail\na,r,b\n", "csv")
    assert graph.train.triple_count == 3


@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=8))
def test_any_names_of_a_tsv_file_are_kept_as_they_are(triples: list[Named]) -> None:
    triples = [(f"e{head}", f"r{relation}", f"e{tail}") for head, relation, tail in triples]  # not to clash
    with short_lived(tsv(triples)) as graph:
        assert set(triples_by_name(graph, graph.train)) == set(triples)


def test_cells_of_csv_may_hold_commas_quotes_and_lines(tmp_path: Path) -> None:
    graph = made(tmp_path, '"Smith, John","says ""hi""","two\n\nlines"\n"Smith, John",r,c\n', "csv")
    assert ("Smith, John", 'says "hi"', "two\n\nlines") in triples_by_name(graph, graph.train)
    assert graph.train.triple_count == 2


def test_a_very_long_name_is_a_name(tmp_path: Path) -> None:
    name = "x" * 1_000_000
    graph = made(tmp_path, f"{name}\tr\tb\n")
    assert graph.entities.find(name) is not None


BROKEN = {
    "nt": (
        "<http://a.org/a> <http://a.org/r> <http://a.org/{}> .\n",
        ["<a b> <c> .\n", "nonsense\n", '<http://a.org/a> "\n'],
    ),
    "nq": ("<http://a.org/a> <http://a.org/r> <http://a.org/{}> <http://a.org/g> .\n", ["<x> .\n", "nonsense\n"]),
    "ttl": ("<http://a.org/a> <http://a.org/r> <http://a.org/{}> .\n", ["<a b> <c> <d> .\n", "x:y <a> <b> .\n"]),
    "tsv": ("a\tr\t{}\n", ["one\n", "a\tb\tc\td\n", "\tr\tb\n", " \n"]),
    "csv": ("a,r,{}\n", ["one\n", "a,b,c,d\n", ",r,b\n", '"a"b,c,d\n']),
}


@given(st.sampled_from(list(BROKEN)), st.data())
def test_skip_bad_counts_each_bad_line_and_keeps_all_others(ending: str, data: st.DataObject) -> None:
    good, bads = BROKEN[ending]
    lines = data.draw(st.lists(st.one_of(st.none(), st.sampled_from(bads)), min_size=1, max_size=12))
    lines.append(None)
    text = "".join(good.format(number) if line is None else line for number, line in enumerate(lines))
    with short_lived(text, ending, skip_bad=True) as graph:
        assert graph.train.triple_count == lines.count(None)
        assert Counter(report_of(graph))["malformed"] == len(lines) - lines.count(None)


@pytest.mark.parametrize("ending", ["nt", "tsv", "csv"])
def test_skip_bad_passes_over_lines_that_are_not_utf_8(tmp_path: Path, ending: str) -> None:
    good = BROKEN[ending][0].encode()
    lines = [good.replace(b"{}", name) for name in (b"b", b"\xff", b"c", b"\xc3", b"d")]
    graph = made(tmp_path, b"".join(lines), ending, skip_bad=True)
    assert graph.train.triple_count == 3
    assert report_of(graph)["malformed"] == 2


LOST = {
    "csv": b'a,r,b\n"open,r,b\nc,r,d\ne,r,f\n',
    "CSV": b'a,r,b\n"open,r,b\nc,"r",d\ne,r,f\n',
    "ttl": b'<http://a> <http://r> <http://b> .\n<http://a> <http://r> "open\n . <http://a> <http://r> <http://c> .\n',
    "trig": b'<http://a> <http://r> <http://b> .\n<http://a> <http://r> "\xff" .\n<http://a> <http://r> <http://c> .\n',
    "jsonld": b'[{"@id":"http://a","http://r":{"@id":"http://b"}},\n {"@id":"http://a",,"http://r":{"@id":"http://c"}}]',
    "rdf": b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">\n'
    b'<rdf:Description rdf:about="http://a"><e:r rdf:resource="http://b"/></rdf:Descr>\n</rdf:RDF>',
}


@pytest.mark.parametrize("ending", LOST)
@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_mistake_after_which_the_rest_is_lost_is_never_skipped(tmp_path: Path, ending: str, skip_bad: bool) -> None:
    with pytest.raises(InputError) as refusal:
        made(tmp_path, LOST[ending], ending, skip_bad=skip_bad)
    assert refusal.value.line == 2
    assert "pass --skip-bad" not in str(refusal.value)


def test_the_line_of_a_mistake_in_a_long_rdf_xml_file_is_found(tmp_path: Path) -> None:
    lines = [f'<rdf:Description rdf:about="a{n}"><e:r rdf:resource="b{n}"/></rdf:Description>' for n in range(5000)]
    lines[3000] = '<rdf:Description rdf:about="a"><x:r rdf:resource="b"/></rdf:Description>'
    start = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    with pytest.raises(InputError) as refusal:
        made(tmp_path, "\n".join([start, *lines, "</rdf:RDF>"]), "rdf")
    assert refusal.value.line == 3002


def test_an_error_names_the_position_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        made(tmp_path, "<http://a> <http://r> <http://b> .\n<http://a> <http://r> <b c> .\n", "nt")
    assert str(refusal.value).count("line") == 2  # the place, and the advice about such lines
    assert (refusal.value.line, refusal.value.column) == (2, 23)


@pytest.mark.parametrize("ending", ["nt", "tsv", "csv", "ttl", "rdf", "jsonld"])
def test_a_truncated_gzip_file_breaks_off(tmp_path: Path, ending: str) -> None:
    content = {"nt": nt, "ttl": nt, "tsv": tsv}.get(ending, tsv)(
        [(f"{HERE}{n}", f"{HERE}r", HERE) for n in range(9999)]
    )
    packed = gzip.compress(content.encode() if ending in ("nt", "ttl", "tsv") else WILD * 100)
    for end in (5, len(packed) // 2, len(packed) - 4):
        with pytest.raises(InputError, match=r"is incomplete|not CSV|expected|Unexpected|namespaces|text|value"):
            made(tmp_path, packed[:end], f"{ending}.gz")


def test_a_gzip_file_with_damage_inside_breaks_off(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(nt([(f"{HERE}{n * n}", f"{HERE}r", HERE) for n in range(9999)]).encode()))
    packed[len(packed) // 2] ^= 0xFF
    for ending in ("nt.gz", "tsv.gz"):
        with pytest.raises(InputError):
            made(tmp_path, bytes(packed), ending)


@pytest.mark.parametrize(
    ("magic", "said"), [(b"PK\x03\x04", "zip"), (b"BZh91AY&SY", "bzip2"), (b"\xff\xfea\x00", "UTF-16")]
)
def test_the_type_of_an_archive_is_named(tmp_path: Path, magic: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        made(tmp_path, magic + bytes(50), "nt")


EMPTY = [b"", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)]


@pytest.mark.parametrize("ending", ["rdf", "jsonld", "tsv", "csv"])
@pytest.mark.parametrize("content", EMPTY)
def test_an_empty_file_is_reported(tmp_path: Path, ending: str, content: bytes) -> None:
    with pytest.raises(InputError, match="empty"):
        made(tmp_path, content, ending)


@pytest.mark.parametrize("ending", ["nt", "nq", "ttl", "trig", "n3"])
@pytest.mark.parametrize("content", [*EMPTY, b"# nothing\n"])
def test_rdf_without_statements_is_an_empty_graph(tmp_path: Path, ending: str, content: bytes) -> None:
    graph = made(tmp_path, content, ending)
    assert (report_of(graph)["files without statements"], graph.whole.triple_count) == (1, 0)


def test_a_table_of_empty_lines_holds_no_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no rows"):
        made(tmp_path, "\n\n", "tsv")


def test_the_format_follows_from_the_file_extension() -> None:
    endings = {
        "a.nt": "nt",
        "a.b.ttl": "ttl",
        "A.TSV.GZ": "tsv",
        "train.txt.gz": "txt",
        "x.owl": "owl",
        "a.json": "json",
    }
    assert {name: format_of(Path(name)) for name in endings} == endings
    for unknown in ("a", "a.gz", "a.pdf", "a.nt.zip", "-"):
        with pytest.raises(InputError, match="Pass format"):
            format_of(Path(unknown))


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match='unknown format "n-triples"'):
        made(tmp_path, "a\tr\tb\n", format="n-triples")


def test_blank_nodes_of_two_files_are_different_ones(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.ttl").write_text(f"_:x <http://a.org/r> <http://a.org/{name}> .")
    files = [tmp_path / "one.ttl", tmp_path / "two.ttl"]
    assert len(import_graph(files, tmp_path / "apart", ImportOptions()).entities) == 4
    together = import_graph(files, tmp_path / "together", choices_of(one_document=True))
    assert len(together.entities) == 3


@pytest.mark.parametrize(
    ("language", "expected"), [("en", "Vienna"), ("de", "Wien"), ("fr", "Vienne"), ("it", "Vienna")]
)
def test_the_label_is_in_the_preferred_language(tmp_path: Path, language: str, expected: str) -> None:
    graph = made(tmp_path, WILD, "ttl", language=language)
    assert graph.entities.label(graph.entities.find(HERE + "Wien") or 0) == expected
    assert graph.relations.label(graph.relations.find(HERE + "bornIn") or 0) == "born in"


def test_a_label_is_better_the_nearer_its_language() -> None:
    spoken = ["de", "de-AT", None, "en", "en-GB", "fr"]
    ranks = [label_rank("http://www.w3.org/2000/01/rdf-schema#label", language, "de") for language in spoken]
    assert ranks == sorted(ranks)
    assert ranks[2] < label_rank("https://schema.org/name", None, "de") < ranks[3]


def test_schema_statements_are_learnt_when_asked(tmp_path: Path) -> None:
    graph = made(tmp_path, WILD, "ttl", schema="use")
    assert graph.relations.find(SUB_CLASS_OF) is not None
    assert graph.relations.find(TYPE) is None
    assert made(tmp_path, WILD, "ttl").relations.find(SUB_CLASS_OF) is None
