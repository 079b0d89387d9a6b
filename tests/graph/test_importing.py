import gzip
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, RdfFormat

from halfgraph.errors import FolderError, InputError, SettingError
from halfgraph.graph.demo import NamedTriples
from halfgraph.graph.importing import ImportOptions, import_graph, import_named
from halfgraph.graph.inspection import inspect
from halfgraph.graph.splitting import Shares
from halfgraph.graph.statistics import statistics
from halfgraph.graph.store import open_store
from imported_graphs import choices_of, made, nt, report_of, short_lived, stored, triples_by_name, tsv, types_by_name
from oracles import Named, entities
from strategies import named_triples
from wild_graphs import EX, company

SPLIT = {
    "train": [("a", "r", "b"), ("b", "r", "c"), ("a", "r", "b")],
    "valid": [("c", "s", "a")],
    "test": [("x", "r", "y"), ("a", "r", "b")],
}


def published(folder: Path, ending: str = "tsv", **others: str) -> Path:
    """A folder with a split, and other files by stem."""
    folder.mkdir()
    for name, triples in SPLIT.items():
        (folder / f"{name}.{ending}").write_text(tsv(triples).replace("\t", "," if ending == "csv" else "\t"))
    for stem, text in others.items():
        (folder / f"{stem}.tsv").write_text(text)
    return folder


@pytest.mark.parametrize("ending", ["tsv", "txt", "csv"])
def test_a_published_split_is_kept_as_it_is(tmp_path: Path, ending: str) -> None:
    graph = import_graph([published(tmp_path / "split", ending)], tmp_path / "graph", ImportOptions())
    for name, triples in SPLIT.items():
        assert set(triples_by_name(graph, getattr(graph, name))) == set(triples)
    assert graph.description["counts"]["triples"] == {"train": 2, "valid": 1, "test": 2}
    assert report_of(graph)["duplicates"] == 1
    assert report_of(graph)["triples in more than one split"] == 1
    assert graph.whole.triple_count == 4


@given(named_triples(), named_triples(), named_triples())
def test_any_published_split_is_kept_as_it_is(train: list[Named], valid: list[Named], test: list[Named]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "split"
        folder.mkdir()
        parts = {"train": train, "valid": valid, "test": test}
        for name, triples in parts.items():
            (folder / f"{name}.nt.gz").write_bytes(gzip.compress(nt(triples).encode()))
        graph = import_graph([folder], Path(place) / "graph", ImportOptions())
        assert all(set(triples_by_name(graph, getattr(graph, name))) == set(parts[name]) for name in parts)
        report = Counter(report_of(graph))
        assert report["statements read"] == report["triples of the graph"] + report["duplicates"]


def test_a_published_split_may_lack_valid(tmp_path: Path) -> None:
    (published(tmp_path / "split") / "valid.tsv").unlink()
    graph = import_graph([tmp_path / "split"], tmp_path / "graph", ImportOptions())
    assert graph.has_split
    assert graph.description["counts"]["triples"] == {"train": 2, "valid": 0, "test": 2}


def test_a_published_split_is_replaced_only_on_request(tmp_path: Path) -> None:
    folder = published(tmp_path / "split")
    graph = import_graph([folder], tmp_path / "graph", ImportOptions(split=Shares(90, 5, 5)))
    everything = {triple for triples in SPLIT.values() for triple in triples}
    assert set(triples_by_name(graph, graph.whole)) == everything
    assert set(triples_by_name(graph, graph.train)) >= {("x", "r", "y"), ("c", "s", "a")}
    assert report_of(graph)["duplicates"] == 2


def test_a_training_file_of_literals_alone_loses_no_test_triple(tmp_path: Path) -> None:
    folder = tmp_path / "split"
    folder.mkdir()
    (folder / "train.nt").write_text('<http://a.org/a> <http://a.org/age> "3" .\n')
    (folder / "test.nt").write_text("<http://a.org/a> <http://a.org/r> <http://a.org/b> .\n")
    graph = import_graph([folder], tmp_path / "graph", ImportOptions())
    assert graph.description["counts"]["triples"] == {"train": 0, "valid": 0, "test": 1}


def test_files_beside_a_split_give_types_and_labels(tmp_path: Path) -> None:
    types = "".join(f"{name}\tLetter\n" for name in "abcxy")
    folder = published(tmp_path / "split", types=types, labels="a\tThe A\tmore\nb\tThe B\n", relations="r\tis near\n")
    graph = import_graph([folder], tmp_path / "graph", ImportOptions())
    assert set(types_by_name(graph).values()) == {"Letter"}
    assert graph.entities.label(graph.entities.find("a") or 0) == "The A"
    assert graph.relations.label(graph.relations.find("r") or 0) == "is near"
    assert set(types_by_name(import_graph([folder], tmp_path / "one", ImportOptions(types="one"))).values()) == {
        "Entity"
    }


def test_two_files_for_one_part_of_a_split_are_refused(tmp_path: Path) -> None:
    (published(tmp_path / "split") / "train.nt").touch()
    with pytest.raises(InputError, match=r"both train\.nt and train\.tsv"):
        import_graph([tmp_path / "split"], tmp_path / "graph", ImportOptions())


def test_a_folder_without_train_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file named train"):
        import_graph([tmp_path / "empty"], tmp_path / "graph", ImportOptions())


@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_types_come_from_a_file_of_two_columns(tmp_path: Path, ending: str) -> None:
    types = tmp_path / f"types.{ending}"
    types.write_text("a\tA\nb\tB\n" if ending == "tsv" else 'a,"A"\n\nb,B\n')
    graph = made(tmp_path, "a\tr\tb\nb\tr\tc\n", types_file=types)
    assert types_by_name(graph) == {"a": "A", "b": "B", "c": "Untyped"}
    assert report_of(graph)["types in a file"] == 2
    assert graph.description["types"]["ways"] == {"only stated type": 2, "Untyped: no type": 1}


def test_a_types_file_that_names_an_unknown_entity_is_refused_or_counted(tmp_path: Path) -> None:
    types = tmp_path / "types.tsv"
    types.write_text("alpha\tA\nalpa\tA\nunheard of\tB\n")
    with pytest.raises(InputError, match=r"line 2: no entity alpa .*did you mean alpha.*skip_bad") as refusal:
        made(tmp_path, "alpha\tr\tbeta\n", types_file=types)
    assert refusal.value.path == types
    graph = made(tmp_path, "alpha\tr\tbeta\n", types_file=types, skip_bad=True)
    assert report_of(graph)["types of unknown entities"] == 2
    assert types_by_name(graph) == {"alpha": "A", "beta": "Untyped"}


def test_a_types_file_of_one_column_is_refused_or_counted(tmp_path: Path) -> None:
    types = tmp_path / "types.tsv"
    types.write_text("a\tA\nb\n")
    with pytest.raises(InputError, match="line 2: expected 2 tab-separated columns"):
        made(tmp_path, "a\tr\tb\n", types_file=types)
    assert report_of(made(tmp_path, "a\tr\tb\n", types_file=types, skip_bad=True))["malformed"] == 1


@given(named_triples(), st.booleans())
def test_self_loops_are_counted_and_kept_or_dropped(triples: list[Named], keep: bool) -> None:
    kept = {triple for triple in triples if keep or triple[0] != triple[2]} | {("a", "r", "b")}
    with short_lived(tsv([*triples, ("a", "r", "b")]), self_loops="keep" if keep else "drop") as graph:
        assert set(triples_by_name(graph, graph.train)) == kept
        assert set(graph.entities.names) == entities(kept)
        assert Counter(report_of(graph))["self-loops"] == sum(head == tail for head, _, tail in triples)


def test_a_graph_of_self_loops_alone_is_empty_when_they_are_dropped(tmp_path: Path) -> None:
    graph = made(tmp_path, "a\tr\ta\n", self_loops="drop")
    assert (len(graph.entities), graph.train.triple_count, report_of(graph)["self-loops"]) == (0, 0, 1)


def test_several_sources_become_one_graph(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("http://a.org/a\thttp://a.org/r\thttp://a.org/b\n")
    (tmp_path / "b.nt").write_text("<http://a.org/b> <http://a.org/r> <http://a.org/c> .\n")
    graph = import_graph([tmp_path / "a.tsv", tmp_path / "b.nt"], tmp_path / "graph", ImportOptions())
    assert graph.train.triple_count == 2
    assert len(graph.entities) == 3
    assert graph.description["provenance"]["sources"] == [str(tmp_path / "a.tsv"), str(tmp_path / "b.nt")]


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("/a\tr\tb\na\tr\tb\n", "http://halfgraph.local/"),
        ("a\tr\tb\nhttp://halfgraph.local/a\tr\tc\n", "http://halfgraph.local/"),
        ("a\tr\tb\na\thttp://a.org/ns#r\tc\n", "http://a.org/ns#"),
        ("two words\tr\tb\nhttp://halfgraph.local/two%20words\tr\tc\n", "http://halfgraph.local/"),
    ],
)
def test_two_names_for_one_iri_are_refused(tmp_path: Path, text: str, base: str) -> None:
    with pytest.raises(InputError, match="would both be <http"):
        made(tmp_path, text, base=base)


def test_types_for_the_iris_of_relative_names_are_not_lost_silently(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Q1\tP1\tQ2\n")
    (tmp_path / "types.ttl").write_text("<http://wd.org/Q1> a <http://wd.org/City> .")
    with pytest.raises(InputError, match=r'"Q1" and "http://wd.org/Q1"'):
        import_graph(
            [tmp_path / "a.tsv", tmp_path / "types.ttl"], tmp_path / "graph", choices_of(base="http://wd.org/")
        )


def test_a_name_may_be_an_entity_and_a_relation(tmp_path: Path) -> None:
    graph = made(tmp_path, "a\ta\ta\nr\ta\ta\n")
    assert graph.train.triple_count == 2


@pytest.mark.parametrize("base", ["nonsense", "http://a.org"])
def test_a_base_that_is_none_is_refused(tmp_path: Path, base: str) -> None:
    with pytest.raises(SettingError):
        made(tmp_path, "a\tr\tb\n", base=base)


NOTHING_TO_LEARN = {
    "": "files without statements",
    "# nothing": "files without statements",
    '<http://a.org/a> <http://a.org/age> "3" .': "literals",
    "<http://a.org/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://a.org/B> .": "schema",
    "<http://a.org/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://a.org/B> .": "types",
    "<http://a.org/a> <http://a.org/says> <<( <http://a.org/a> <http://a.org/r> <http://a.org/b> )>> .": "triple terms",
}


@pytest.mark.parametrize("options", [{}, {"types": "one"}, {"split": Shares(90, 1, 9)}], ids=str)
@pytest.mark.parametrize(("text", "said"), NOTHING_TO_LEARN.items())
def test_a_graph_with_nothing_to_learn_is_imported(tmp_path: Path, text: str, said: str, options: Any) -> None:
    graph = made(tmp_path, text, "ttl", **options)
    assert (len(graph.entities), len(graph.relations), graph.whole.triple_count) == (0, 0, 0)
    assert (graph.valid.triple_count, graph.has_split, report_of(graph)[said]) == (0, False, 1)
    assert set(open_store(graph)) == set(stored(text.encode(), RdfFormat.TURTLE))
    assert statistics(graph)["degrees"]["maximum"] == 0
    assert not any(report.problem for report in inspect(graph.path, whole=True))


def test_a_failed_import_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        made(tmp_path, "a\tb\n")
    assert [path.name for path in tmp_path.iterdir()] == ["source0.tsv"]


def test_an_import_does_not_change_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tr\tb\n")
    with pytest.raises(FolderError, match="exists already"):
        import_graph([tmp_path / "a.tsv"], tmp_path, ImportOptions())
    assert [path.name for path in tmp_path.iterdir()] == ["a.tsv"]


def test_entities_are_numbered_type_by_type_and_by_name(tmp_path: Path) -> None:
    types = tmp_path / "types.tsv"
    types.write_text("d\tA\nb\tA\na\tB\nc\tB\n")
    graph = made(tmp_path, "d\tz\tc\nb\ty\ta\n", types_file=types)
    assert list(graph.entities.names) == ["b", "d", "a", "c"]
    assert list(graph.relations.names) == ["y", "z"]
    assert graph.types.starts.tolist() == [0, 2, 4]
    assert [graph.relation_name(r) for r in range(4)] == ["y", "y^-1", "z", "z^-1"]


def test_a_file_name_that_is_not_utf_8_is_no_obstacle(tmp_path: Path) -> None:
    source = tmp_path / "caf\udce9.tsv"
    source.write_text("a\tr\tb\n")
    graph = import_graph([source], tmp_path / "graph", ImportOptions())
    assert graph.description["provenance"]["sources"] == [f"{tmp_path}/caf\ufffd.tsv"]


def test_triples_in_memory_become_a_graph_with_types_labels_and_attribution(tmp_path: Path) -> None:
    named = NamedTriples(
        triples=[("a", "r", "b")],
        types={"a": "A", "b": "B"},
        labels={"a": "The A", "r": "is near"},
        base="http://demo.example/",
        attribution="by someone",
    )
    graph = import_named(named, tmp_path / "graph", ImportOptions(), "demo")
    assert types_by_name(graph) == {"a": "A", "b": "B"}
    assert graph.description["provenance"]["attribution"] == "by someone"
    assert graph.namer.iri("a") == "http://demo.example/a"
    assert open_store(graph).query("ASK { <http://demo.example/a> a <http://demo.example/A> }")
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    assert open_store(graph).query(f'ASK {{ <http://demo.example/r> <{label}> "is near" }}')


def test_the_report_the_counts_and_the_store_have_the_same_number_of_literals(tmp_path: Path) -> None:
    graph = company(tmp_path)
    literals = sum(isinstance(quad.object, Literal) for quad in open_store(graph))
    report = report_of(graph)
    assert report["literals"] == graph.description["counts"]["literals"] == literals == 60 * 6 + 9 * 2 + 3
    assert report["duplicates"] == 60  # the notes
    used = ("triples of the graph", "duplicates", "literals", "types", "schema")
    assert report["statements read"] == sum(report[name] for name in used)


def test_entities_of_several_types_or_none_get_one_and_keep_their_statements(tmp_path: Path) -> None:
    graph = company(tmp_path)
    types = {name.removeprefix(EX): type_id.removeprefix(EX) for name, type_id in types_by_name(graph).items()}
    assert (types["employee1"], types["employee5"], types["employee6"]) == ("Person", "Person", "Person")
    stated = [graph.is_type_stated(graph.find_entity(f"{EX}employee{number}") or 0) for number in (1, 5, 6)]
    assert stated == [True, True, False]
    assert Counter(types.values()) == {"Person": 60, "City": 9, "Country": 3, "Address": 60}
    assert graph.entities.label(graph.find_entity(EX + "city1") or 0) == "City 1"
    german = company(tmp_path, language="de")
    assert german.entities.label(german.find_entity(EX + "city1") or 0) == "Stadt 1"
