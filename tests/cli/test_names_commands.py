"""The commands relations, types, describe and prefixes: names as a query can use them, of a graph or a run."""

import json
from pathlib import Path

import pytest

import halfgraph
from command_line import Run, refused

PEOPLE = """
@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:Person rdfs:label "person" ; rdfs:subClassOf ex:Agent .
ex:ada a ex:Person, ex:Author ; rdfs:label "Ada" ; ex:livesIn ex:london ; ex:age 36 .
ex:bob a ex:Person ; ex:livesIn ex:paris, ex:london ; ex:knows ex:ada .
ex:london a ex:City . ex:paris a ex:City .
<http://other.org/a> <http://other.org/r(1)> ex:ada .
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    (folder / "people.ttl").write_text(PEOPLE, encoding="utf-8")
    graph = halfgraph.Graph.read(folder / "people.ttl", folder / "people")
    lines = [
        f"<http://example.org/p{i}> <http://example.org/livesIn> <http://example.org/c{i % 4}> ." for i in range(60)
    ]
    more = "\n".join([*lines, *(line.replace("livesIn", "worksIn") for line in lines)])
    (folder / "more.nt").write_text(more, encoding="utf-8")
    large = halfgraph.Graph.read([folder / "people.ttl", folder / "more.nt"], folder / "large", split="60/30/10")
    assert len(graph.entities) < len(large.entities)
    halfgraph.train(large, folder / "run", steps=3, dim=8, heads=2)
    return folder


def test_relations_have_names_counts_and_types(run: Run) -> None:
    found = json.loads(run("relations", "people", "--json").out)
    lives = found["relations"][0]
    assert (lives["name"], lives["triples"], lives["heads"], lives["tails"]) == ("ex:livesIn", 3, 2, 2)
    assert [(row["name"], row["count"]) for row in lives["domains"]] == [("ex:Person", 2)]
    assert [(row["name"], row["count"]) for row in lives["ranges"]] == [("ex:City", 2)]
    assert [row["name"] for row in found["relations"]][1:] == ["ex:knows", "<http://other.org/r(1)>"]
    assert {(row["name"], row["literals"]) for row in found["literals"]} == {("ex:age", 1), ("rdfs:label", 2)}
    table = run("relations", "people").out
    assert "person → City" in table
    assert "2 properties with literals" in table


def test_every_name_can_be_typed_in_a_query(run: Run) -> None:
    names = [row["name"] for row in json.loads(run("relations", "people", "--json").out)["relations"]]
    for name in names:
        assert json.loads(run("query", "people", f"SELECT ?x ?y {{ ?x {name} ?y }}", "--json").out)["answers"]


def test_types_are_those_of_the_store_and_the_main_ones(run: Run) -> None:
    rows = {row["name"]: row for row in json.loads(run("types", "people", "--json").out)["types"]}
    assert {name: row["stated"] for name, row in rows.items()} == {"ex:Person": 2, "ex:City": 2, "ex:Author": 1}
    assert rows["ex:City"]["main"] == 2
    assert rows["ex:Person"]["label"] == "person"


def test_prefixes_are_those_of_the_graph_then_common_ones(run: Run) -> None:
    rows = json.loads(run("prefixes", "people", "--json").out)["prefixes"]
    assert {"prefix": "ex:", "namespace": "http://example.org/", "source": "the graph"} in rows
    assert [row["source"] == "common" for row in rows] == sorted(row["source"] == "common" for row in rows)
    assert "http://halfgraph.local/" in run("prefixes", "people").out


@pytest.mark.parametrize("name", ["ex:ada", "<http://example.org/ada>", "http://example.org/ada", "Ada"])
def test_an_entity_is_described_by_all_its_types_and_statements(run: Run, name: str) -> None:
    found = json.loads(run("describe", "people", name, "--json").out)
    assert (found["name"], found["label"]) == ("ex:ada", "Ada")
    assert {row["name"] for row in found["types"]} == {"ex:Person", "ex:Author"}
    statements = {row["name"]: [value["value"] for value in row["values"]] for row in found["statements"]}
    assert statements == {"ex:livesIn": ["http://example.org/london"], "ex:age": ["36"], "rdfs:label": ["Ada"]}
    assert {row["name"]: row["count"] for row in found["incoming"]} == {"ex:knows": 1, "<http://other.org/r(1)>": 1}
    assert "predicted" not in found


def test_a_description_is_cut_at_top_values_and_says_so(run: Run) -> None:
    found = json.loads(run("describe", "people", "ex:london", "--top", "1", "--json").out)
    assert [(row["count"], len(row["values"])) for row in found["incoming"]] == [(2, 1)]
    assert "..." in run("describe", "people", "ex:london", "--top", "1").out


def test_a_run_also_predicts(run: Run) -> None:
    found = json.loads(run("describe", "run", "ex:p1", "--top", "3", "--json", "--view", "train").out)
    assert 0 < len(found["predicted"]) <= 3
    confidences = [row["confidence"] for row in found["predicted"]]
    assert confidences == sorted(confidences, reverse=True)
    ends = [(row["subject"]["entity"], row["object"]["entity"]) for row in found["predicted"]]
    assert all("http://example.org/p1" in pair for pair in ends)
    assert "Predicted" in run("describe", "run", "ex:p1", "--view", "train").out
    assert run("relations", "run").out.startswith("4 relations")


def test_an_unknown_entity_or_folder_gets_one_line(run: Run) -> None:
    refused(run("describe", "people", "ex:adda"), "no entity ex:adda")
    refused(run("types", "nowhere"), "no such folder")
