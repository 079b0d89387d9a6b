"""Examples: of a file, or made from what is held out; each can be asked, and says whether something is missing."""

import json

import pytest

from halfgraph.errors import InputError
from halfgraph.graph.folder import Graph
from halfgraph.query.exact import Exact
from halfgraph.serving.examples import _generate, demo_queries, from_file
from halfgraph.serving.schema import Example
from halfgraph.sparql.read import read
from small_runs import people


def test_examples_are_made_from_held_out_triples(client, graph_folder):
    examples = client.get("/api/examples").json()["examples"]
    graph = Graph.open(graph_folder)
    assert 1 <= len(examples) <= 6
    for one in examples:
        query = read(one["query"], graph).query
        missing = len(Exact(graph.whole).answers(query)) - len(Exact(graph.train).answers(query))
        assert one["missing"] == (missing > 0)
        assert "?" in one["title"]
        answer = client.post("/api/ask", json={"query": one["query"]})
        assert answer.status_code == 200
        assert answer.json()["predicted"]
    assert any(one["missing"] for one in examples)


def test_a_file_of_examples_comes_first(tmp_path):
    one = {"title": "Who?", "query": "SELECT ?x { ?x ?y ?z }", "missing": False}
    (tmp_path / "examples.json").write_text(json.dumps({"examples": [one]}))
    assert from_file(tmp_path / "examples.json") == [Example(**one)]


@pytest.mark.parametrize("text", ["", "[]", '{"examples": [{"title": "x"}]}', "\xff"])
def test_an_unreadable_file_is_reported(tmp_path, text):
    (tmp_path / "examples.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match="examples"):
        from_file(tmp_path / "examples.json")


def test_there_are_six_questions_about_the_demo_graph():
    queries = demo_queries()
    assert len(queries) == 6
    assert all(title.endswith("?") and title[0].isupper() for title in queries)
    assert all(text.startswith("SELECT ") and text.endswith("}") for text in queries.values())


def test_examples_are_made_of_validation_triples_if_there_are_no_test_triples(tmp_path):
    graph = people(tmp_path, split=None).with_held_out(20, 0)
    examples = list(_generate(graph, graph.train))
    assert any(one.missing for one in examples)
