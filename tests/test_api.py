"""The front door: from a file to answers in Python, with pages for notebooks."""

import json
import subprocess
import sys
from inspect import signature

import numpy as np
import pytest

import halfgraph
from halfgraph.graph.manifest import write_manifest
from small_runs import people

QUERY = "SELECT ?x { ?x <livesIn> <city1> ; <speaks> <language1> }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return people(tmp_path_factory.mktemp("people"), count=120)


@pytest.fixture(scope="module")
def run(graph, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    halfgraph.train(graph, out, steps=5, dim=8, heads=2)
    return out


def test_a_graph_is_read_from_a_file_and_opened_again(tmp_path):
    source = tmp_path / "people.tsv"
    source.write_text("".join(f"a{i}\tknows\ta{(i * 7 + 1) % 40}\n" for i in range(40)))
    graph = halfgraph.Graph.read(source, tmp_path / "graph", split="80/10/10")
    assert graph.has_split
    opened = halfgraph.Graph.open(tmp_path / "graph")
    assert opened.fingerprint == graph.fingerprint
    assert "40" in opened._repr_html_()


def test_questions_are_sampled(graph, tmp_path):
    made = halfgraph.sample(
        graph, tmp_path / "questions", two_edges=20, three_edges=20, valid=5, test=5, neighbourhoods=3
    )
    assert {"train", "valid", "test"} <= set(made.description["questions"])


def test_a_trained_run_is_asked_and_explains_with_confidence(run):
    engine = halfgraph.load(run)
    answers = engine.ask(QUERY, top=3)
    assert len(answers.predicted) == 3
    assert all(0 < one.confidence < 1 for one in answers.predicted)
    assert json.loads(json.dumps(answers.to_dict()))["predicted"][0]["confidence"] == answers.predicted[0].confidence
    page = answers._repr_html_()
    assert all(f"<td>{one.label}</td>" in page for one in (*answers.known, *answers.predicted))
    witness = halfgraph.explain(run, QUERY, answers.predicted[0].entity)
    missing = [triple for triple in witness.triples if not triple.known]
    assert missing
    assert all(0 < triple.confidence < 1 for triple in missing)
    assert "missing" in witness._repr_html_()
    sure = answers.predicted[1].confidence
    surest = halfgraph.ask(run, QUERY, 3, min_confidence=sure).predicted
    assert [one.entity for one in surest] == [one.entity for one in answers.predicted if one.confidence >= sure]


def test_a_run_is_evaluated(run):
    found = halfgraph.evaluate(run, limit=20)
    assert "1-chain" in found._repr_html_()
    assert found.to_dict()["auc"]["1-chain"] > 0


def test_a_graph_without_a_split_is_trained_with_confidence(tmp_path):
    graph = people(tmp_path, count=120, split=None)
    engine = halfgraph.train(graph, tmp_path / "run", steps=5, dim=8, heads=2)
    opened = halfgraph.load(tmp_path / "run", view="train")
    assert np.array_equal(opened.graph.valid.triples(), engine.graph.valid.triples())
    assert opened.known.triple_count < graph.whole.triple_count == engine.known.triple_count
    assert all(0 <= one.confidence <= 1 for one in engine.ask(QUERY, top=3).predicted)
    head, relation, tail = engine.graph.valid.triples()[0].tolist()
    name, iri = engine.graph.entities.name, engine.graph.relations.name(relation // 2)
    held_out = f"SELECT ?x {{ <{name(head)}> <{iri}> ?x }}"
    assert name(tail) in [row.label for row in engine.ask(held_out).known]
    assert name(tail) not in [row.label for row in opened.ask(held_out).known]
    with pytest.raises(halfgraph.HalfgraphError, match="has no test triples"):
        halfgraph.evaluate(tmp_path / "run")


def test_a_run_whose_graph_has_moved_says_what_to_pass(run, graph, tmp_path):
    import shutil

    other = tmp_path / "run"
    shutil.copytree(run, other)
    provenance = json.loads((other / "provenance.json").read_text())
    (other / "provenance.json").write_text(json.dumps(provenance | {"graph_path": str(tmp_path / "gone")}))
    write_manifest(other)
    with pytest.raises(halfgraph.HalfgraphError, match="Pass its folder as graph"):
        halfgraph.load(other)
    assert halfgraph.load(other, graph.path).ask(QUERY).predicted


def test_answers_engines_and_graphs_are_shown_in_a_few_lines(run, graph):
    engine = halfgraph.load(run, view="train")
    answers = engine.ask(QUERY, top=3)
    assert repr(answers).startswith(f"Answers: {len(answers.known)} known, 3 predicted\n")
    assert len(answers) == len(list(answers)) == len(answers.to_pandas())
    for value in (graph, engine, halfgraph.Graph.open(graph.path)):
        assert "\n" not in repr(value)
        assert f"{graph.whole.triple_count:,} triples" in repr(value)
    assert f"{engine.known.triple_count:,} known triples; modes links, embedding, ensemble" in repr(engine)
    assert sorted(graph.relations) == ["citizenOf", "inCountry", "livesIn", "roots", "speaks", "spokenIn"]


@pytest.mark.parametrize("view", ["all", "valid", ""])
def test_an_unknown_view_is_refused_with_the_known_ones(run, graph, view):
    with pytest.raises(halfgraph.HalfgraphError, match=r"^view: there is no view .*Known: whole, known, train\."):
        halfgraph.load(run, view=view)
    with pytest.raises(halfgraph.HalfgraphError, match=r"^view: there is no view"):
        graph.view("all")


def test_a_name_in_the_place_of_a_graph_is_refused(tmp_path):
    for call in (halfgraph.train, halfgraph.sample):
        with pytest.raises(halfgraph.HalfgraphError, match=r"must be a halfgraph.Graph, found 'world'.*Graph.open"):
            call("world", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_choices_are_keywords_that_the_options_have():
    from dataclasses import fields

    from halfgraph.graph.files import ReadOptions
    from halfgraph.graph.importing import ImportOptions
    from halfgraph.workload.folder import Counts

    reading = {field.name for field in fields(ReadOptions)} - {"one_document", "progress"}
    options = {field.name for field in fields(ImportOptions)} - {"reading"}
    assert set(signature(halfgraph.Graph.read).parameters) == {"source", "out"} | reading | options
    counts = {field.name for field in fields(Counts)}
    assert set(signature(halfgraph.sample).parameters) == {"graph", "out", "seed"} | counts


def test_choices_reach_the_import(tmp_path):
    (tmp_path / "a.tsv").write_text("from\tby\tto\na\tr\tb\na\tr\ta\nbad\n")
    (tmp_path / "types.tsv").write_text("a\tT\nb\tU\n")
    choices = {"header": True, "skip_bad": True, "self_loops": "drop", "types_file": tmp_path / "types.tsv"}
    graph = halfgraph.Graph.read(tmp_path / "a.tsv", tmp_path / "graph", base="http://b.org/", **choices)
    assert graph.whole.triple_count == 1
    assert (set(graph.types.names), graph.namer.base) == ({"T", "U"}, "http://b.org/")


def test_a_run_is_resumed_only_when_this_is_asked_for(graph, tmp_path):
    few = {"steps": 2, "dim": 8, "heads": 2}
    halfgraph.train(graph, tmp_path / "run", **few)
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    with pytest.raises(halfgraph.HalfgraphError, match="pass resume to continue it"):
        halfgraph.train(graph, tmp_path / "run", **few)
    halfgraph.train(graph, tmp_path / "run", **few, resume=True)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


def test_training_shows_a_bar_in_a_terminal_and_nothing_otherwise(graph, tmp_path, capsys, monkeypatch):
    halfgraph.train(graph, tmp_path / "quiet", steps=2, dim=8, heads=2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    halfgraph.train(graph, tmp_path / "shown", steps=2, dim=8, heads=2)
    assert "step" in capsys.readouterr().err


def test_all_public_names_are_there_and_no_others():
    assert all(hasattr(halfgraph, name) for name in halfgraph.__all__)
    assert set(halfgraph.__all__) < set(dir(halfgraph))
    with pytest.raises(AttributeError):
        _ = halfgraph.nothing


def test_the_front_door_loads_nothing_until_it_is_used():
    script = "import sys, halfgraph; assert 'torch' not in sys.modules; halfgraph.load; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
