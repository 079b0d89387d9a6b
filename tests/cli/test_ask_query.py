"""halfgraph query: what a SPARQL query asks, and its exact answers."""

import json

import pytest
from pyoxigraph import RdfFormat, parse

from halfgraph.cli import main
from halfgraph.graph.importing import ImportOptions, import_graph

TRIPLES = """<http://e/ada> <http://e/knows> <http://e/bob> .
<http://e/bob> <http://e/knows> <http://e/cyd> .
<http://e/ada> <http://e/livesIn> <http://e/rome> .
<http://e/cyd> <http://e/livesIn> <http://e/rome> .
<http://e/ada> <http://www.w3.org/2000/01/rdf-schema#label> "Ada" .
<http://e/ada> <http://e/age> "36" .
<http://e/ada> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Poet> .
<http://e/ada> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Writer> .
<http://e/bob> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Poet> .
<http://e/cyd> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Poet> .
"""


@pytest.fixture
def graph(tmp_path):
    source = tmp_path / "people.nt"
    source.write_text(TRIPLES)
    import_graph([source], tmp_path / "graph", ImportOptions())
    return str(tmp_path / "graph")


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0


def test_the_exact_answers_are_printed_with_their_labels(graph, capsys):
    run("query", graph, "SELECT ?x { ?x <http://e/livesIn> <http://e/rome> }")
    shown = capsys.readouterr()
    assert "2 exact answers to a query of structure 1-chain" in shown.out
    assert "Ada" in shown.out
    assert "http://e/cyd" in shown.out
    assert "?x" in shown.err


def test_json_has_the_structure_the_sparql_and_the_answers_within_limit_and_offset(graph, capsys):
    query = "PREFIX e: <http://e/> SELECT ?x { e:ada e:knows/e:knows ?x } LIMIT 1"
    run("query", graph, query, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["structure"] == "2-chain"
    assert found["answers"] == [{"x": {"type": "uri", "value": "http://e/cyd", "label": "cyd"}}]
    assert "SELECT" in found["sparql"]


def test_the_rows_are_those_of_the_store_with_every_type_and_duplicate(graph, capsys):
    run("query", graph, "PREFIX e: <http://e/> SELECT ?x { ?x a e:Writer ; e:livesIn e:rome }", "--json")
    assert [row["x"]["label"] for row in json.loads(capsys.readouterr().out)["answers"]] == ["Ada"]
    run("query", graph, "PREFIX e: <http://e/> SELECT ?city { ?x e:livesIn ?city }", "--json")
    assert [row["city"]["label"] for row in json.loads(capsys.readouterr().out)["answers"]] == ["rome", "rome"]


def test_every_selected_variable_is_a_column(graph, capsys):
    run("query", graph, "PREFIX e: <http://e/> SELECT ?y ?x { ?x e:knows ?y . ?x e:livesIn e:rome }")
    assert capsys.readouterr().out.splitlines()[1].split() == ["?y", "?x"]


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("SELECT ?x ?n { ?x e:age ?n }", ""),
        ("SELECT ?x { ?x e:livesIn e:rome ; a e:Writer , e:Poet }", "?x : Poet\n└─ livesIn⁻¹ ← rome\n"),
        (
            "SELECT ?x ?y { ?x e:livesIn ?y . ?y e:livesIn+ ?x } ORDER BY ?x",
            "?x\n├─ livesIn⁻¹ ← ?y\n└─ (livesIn)+ ← ?y",
        ),
    ],
)
def test_a_query_that_is_no_tree_is_drawn_as_far_as_it_has_links(graph, capsys, text, drawn):
    run("query", graph, f"PREFIX e: <http://e/> {text}")
    shown = capsys.readouterr()
    assert "exact answer" in shown.out
    assert shown.err.startswith(drawn)


def test_a_query_may_come_from_a_file(graph, tmp_path, capsys):
    file = tmp_path / "query.rq"
    file.write_text("SELECT ?x { <http://e/ada> <http://e/knows> ?x }")
    run("query", graph, str(file), "--json")
    assert json.loads(capsys.readouterr().out)["answers"][0]["x"]["label"] == "bob"


@pytest.mark.parametrize("form", ["SELECT ?x", "ASK", "CONSTRUCT { ?x a <http://e/New> }", "DESCRIBE ?x"])
def test_a_misspelt_relation_is_a_warning_with_the_nearest_name(graph, capsys, form):
    text = f"{form} {{ ?x <http://e/liveIn> <http://e/rome> }}"
    run("query", graph, text)
    said = capsys.readouterr().err
    assert f"column {text.index('<http://e/liveIn') + 1}: no relation" in said
    assert "Did you mean <http://e/livesIn>?" in said
    assert "New" not in said
    run("query", graph, text, "--json")
    shown = capsys.readouterr()
    assert "livesIn" in json.loads(shown.out)["notes"][0]
    assert not shown.err


def test_ask_prints_true_or_false(graph, capsys):
    for name, answer in (("ada", True), ("bob", False)):
        run("query", graph, f"ASK {{ <http://e/{name}> <http://e/age> ?age }}")
        assert capsys.readouterr().out == f"{answer}\n".lower()
        run("query", graph, f"ASK {{ <http://e/{name}> <http://e/age> ?age }}", "--json")
        assert json.loads(capsys.readouterr().out) == {"answer": answer, "notes": []}


@pytest.mark.parametrize("text", ["CONSTRUCT WHERE { ?s ?p ?o }", "DESCRIBE ?s { ?s ?p ?o }"])
def test_triples_are_printed_as_turtle(graph, capsys, text):
    run("query", graph, text)
    shown = capsys.readouterr()
    assert set(parse(shown.out, RdfFormat.TURTLE)) == set(parse(TRIPLES, RdfFormat.N_TRIPLES))
    assert "10 triples" in shown.err
    run("query", graph, text, "--json")
    triples = json.loads(capsys.readouterr().out)["triples"]
    assert sorted(" ".join([*triple, "."]) for triple in triples) == sorted(TRIPLES.splitlines())


def test_the_label_service_is_answered_from_the_graph(graph, capsys):
    service = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "de" }'
    run("query", graph, f"SELECT ?x ?xLabel {{ ?x <http://e/livesIn> <http://e/rome> {service} }}", "--json")
    rows = json.loads(capsys.readouterr().out)["answers"]
    assert sorted(row["xLabel"]["value"] for row in rows) == ["Ada", "cyd"]


def test_turtle_on_a_terminal_has_no_control_characters(tmp_path, capsys):
    (tmp_path / "a.nt").write_text('<http://e/a> <http://e/p> "\\u001b[31m\\u2028\\ttab" .')
    graph = import_graph([tmp_path / "a.nt"], tmp_path / "graph", ImportOptions())
    run("query", str(graph.path), "CONSTRUCT WHERE { ?s ?p ?o }")
    shown = capsys.readouterr().out
    assert not {"\x1b", "\u2028"} & set(shown)
    assert next(parse(shown, RdfFormat.TURTLE)).object.value == "\x1b[31m\u2028\ttab"
