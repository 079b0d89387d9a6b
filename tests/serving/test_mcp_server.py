"""The MCP server with the protocol package's own client, over stdio and over HTTP."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from halfgraph.graph.folder import Graph
from halfgraph.serving.agent_schema import MEANING
from server_process import PROGRAM
from small_links import link_models

EX = "http://example.org/"
TOOLS = {"search", "describe", "ask", "explain", "complete"}
LIVES = f"SELECT ?x {{ ?x <{EX}livesIn> <{EX}city3> }}"
ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o }"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
Session = Callable[[Client], Awaitable[None]]


def over_stdio(run: Path, session: Session, *options: str) -> None:
    """Hold a session with a server that the client starts."""
    command = StdioServerParameters(command=str(PROGRAM), args=["mcp", str(run), *options], env=ENVIRONMENT)

    async def hold() -> None:
        async with Client(stdio_client(command)) as client:
            await session(client)

    asyncio.run(hold())


@pytest.fixture(scope="module")
def linked_run(run_folder: Path, graph_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with link models that nobody trained, so that predictions have a confidence."""
    run = tmp_path_factory.mktemp("linked") / "run"
    shutil.copytree(run_folder, run)
    link_models(Graph.open(graph_folder).train).save(run)
    return run


@pytest.fixture(scope="module")
def address(linked_run: Path) -> Iterator[str]:
    """The address of a server over HTTP."""
    command = [str(PROGRAM), "mcp", str(linked_run), "--view", "train", "--http", "0", "--characters", "4000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        yield found.group()
        process.terminate()
        assert process.wait(30) == 0


def called(address: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool over HTTP; the text is the same as the data."""

    async def call() -> dict[str, Any]:
        async with Client(address) as client:
            result = await client.call_tool(tool, arguments)
            (content,) = result.content
            assert content.type == "text"
            if result.is_error:
                return {"error": content.text}
            assert json.loads(content.text) == result.structured_content
            return dict(result.structured_content or {})

    return asyncio.run(call())


def test_tools_and_their_schemas_are_listed_over_stdio(run_folder: Path) -> None:
    async def session(client: Client) -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == TOOLS
        for tool in listed.values():
            assert tool.description
            assert tool.output_schema is not None
            assert "meaning" in tool.output_schema["properties"]
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
        assert listed["ask"].input_schema["required"] == ["query"]
        assert listed["ask"].input_schema["properties"]["top"]["maximum"] == 100
        answer = await client.call_tool("ask", {"query": LIVES})
        assert not answer.is_error
        assert len((answer.structured_content or {})["known"]) > 0

    over_stdio(run_folder, session, "--view", "train")


def test_a_call_is_stopped_at_its_time_limit_and_the_next_one_answered(run_folder: Path) -> None:
    async def session(client: Client) -> None:
        stopped = await client.call_tool("ask", {"query": ENDLESS})
        assert stopped.is_error
        (content,) = stopped.content
        assert content.type == "text"
        assert "stopped after 8 s" in content.text
        assert "Traceback" not in content.text
        assert not (await client.call_tool("search", {"text": "city"})).is_error
        answer = await client.call_tool("ask", {"query": LIVES})
        assert not answer.is_error

    over_stdio(run_folder, session, "--time-limit", "8")


def test_names_are_found_by_label(address: str) -> None:
    found = called(address, "search", text="Müller", limit=3)
    assert [match["what"] for match in found["matches"]] == ["entity"] * 3
    assert called(address, "search", text="person", kind="type")["matches"][0]["iri"] == f"{EX}Person"
    assert called(address, "search", text="lives", kind="relation")["matches"][0]["insert"]


def test_an_entity_is_described_with_known_and_predicted_statements(address: str) -> None:
    found = called(address, "describe", entity=f"{EX}person5", predictions=4)
    assert found["label"] == "Pérson 5 Müller"
    assert [one["entity"] for one in found["types"]] == [f"{EX}Person"]
    assert {"relation": f"{EX}age", "value": "25"} in found["literals"]
    assert {one["status"] for one in found["known"]} == {"known"}
    assert {one["status"] for one in found["predicted"]} == {"predicted"}
    assert all(f"{EX}person5" in (one["subject"]["entity"], one["object"]["entity"]) for one in found["known"])
    assert all(0 < one["confidence"] <= 1 for one in found["predicted"])
    assert called(address, "describe", entity="pérson 5 müller")["entity"] == f"{EX}person5"


def test_a_query_is_answered_with_known_rows_before_predicted_ones(address: str) -> None:
    found = called(address, "ask", query=LIVES, top=3, rows=2)
    assert [row["status"] for row in found["known"]] == ["known"] * 2
    assert [row["status"] for row in found["predicted"]] == ["predicted"] * 3
    assert f"Only 2 of {found['known_count']} known rows" in found["notes"][0]
    confidences = [row["confidence"] for row in found["predicted"]]
    assert confidences == sorted(confidences, reverse=True)
    assert not called(address, "ask", query=LIVES, min_confidence=1.0)["predicted"]


def test_an_answer_is_explained_by_known_and_predicted_triples(address: str) -> None:
    answers = called(address, "ask", query=LIVES, top=1)
    known, predicted = (answers[key][0]["row"]["x"]["entity"] for key in ("known", "predicted"))
    reason = called(address, "explain", query=LIVES, entity=known)
    assert reason["status"] == "known"
    assert [triple["status"] for triple in reason["triples"]] == ["known"]
    reason = called(address, "explain", query=LIVES, entity=predicted)
    assert reason["status"] == "predicted"
    assert [triple["status"] for triple in reason["triples"]] == ["predicted"]
    assert reason["confidence"] == answers["predicted"][0]["confidence"]


def test_missing_statements_are_given_for_an_entity_and_a_relation(address: str) -> None:
    found = called(address, "complete", entity=f"{EX}person5", limit=3)["predicted"]
    assert len(found) == 3
    for relation in ("livesIn", f"<{EX}livesIn>", f"{EX}livesIn"):
        found = called(address, "complete", relation=relation, limit=3)["predicted"]
        assert {one["predicate"]["entity"] for one in found} == {f"{EX}livesIn"}
    assert "not both" in called(address, "complete")["error"]
    assert "not both" in called(address, "complete", entity="a", relation="b")["error"]


def test_ask_and_construct_tell_known_from_predicted(address: str) -> None:
    pattern = f"<{EX}person5> <{EX}livesIn> <{EX}city6>"
    answer = called(address, "ask", query=f"ASK {{ {pattern} }}")
    assert answer["truth"]["known"] is False
    assert 0 < answer["truth"]["probability"] < 1
    triples = called(address, "ask", query=f"CONSTRUCT {{ ?x <{EX}at> ?y }} WHERE {{ ?x <{EX}livesIn> ?y }}")["triples"]
    assert {one["status"] for one in triples} <= {"known", "predicted"}
    assert all(("confidence" in one) == (one["status"] == "predicted") for one in triples)


def test_a_row_of_several_variables_is_explained(address: str) -> None:
    query = f"SELECT ?x ?y {{ ?x <{EX}livesIn> ?y . ?y <{EX}inCountry> <{EX}country1> }}"
    first = called(address, "ask", query=query, top=1)["predicted"][0]
    row = {name: cell["entity"] for name, cell in first["row"].items()}
    reason = called(address, "explain", query=query, row=row)
    assert reason["status"] == "predicted"
    assert "predicted" in {triple["status"] for triple in reason["triples"]}
    assert "not both" in called(address, "explain", query=query)["error"]


def test_a_graph_is_served_without_predictions(graph_folder: Path) -> None:
    async def session(client: Client) -> None:
        answer = (await client.call_tool("ask", {"query": LIVES})).structured_content or {}
        assert answer["known"]
        assert (answer["predicted"], "without a trained run" in answer["notes"][0]) == ([], True)
        described = (await client.call_tool("describe", {"entity": f"{EX}person5"})).structured_content or {}
        assert (described["predicted"], "halfgraph train" in described["notes"][0]) == ([], True)
        assert (await client.call_tool("complete", {"entity": f"{EX}person5"})).is_error

    over_stdio(graph_folder, session)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("ask", {"query": "SELECT ?x { ?x"}, "line 1, column 11"),
        ("ask", {"query": LIVES, "top": 0}, "greater than or equal to 1"),
        ("describe", {"entity": f"{EX}persn5"}, "Did you mean"),
        ("complete", {"relation": "livesInn"}, "Did you mean"),
        ("explain", {"query": LIVES, "entity": "Nobody at all"}, "no entity Nobody at all"),
        ("ask", {"query": "DELETE WHERE { ?a ?b ?c }"}, "read-only"),
    ],
)
def test_errors_are_errors_of_the_tool(address: str, tool: str, arguments: dict[str, Any], message: str) -> None:
    error = called(address, tool, **arguments)["error"]
    assert message in error
    assert "Traceback" not in error


def test_every_result_says_what_known_and_predicted_mean_and_is_short(address: str) -> None:
    query = f"SELECT ?x ?y {{ ?x <{EX}knows> ?y }}"
    arguments: dict[str, dict[str, Any]] = {
        "search": {"text": "person", "limit": 100},
        "describe": {"entity": f"{EX}city3", "limit": 100, "predictions": 100},
        "ask": {"query": query, "rows": 1000},
        "explain": {"query": LIVES, "entity": f"{EX}person3"},
        "complete": {"relation": "knows", "limit": 100},
    }
    assert set(arguments) == TOOLS
    for tool, given in arguments.items():
        result = called(address, tool, **given)
        assert result["meaning"] == MEANING
        assert len(json.dumps(result, ensure_ascii=False, separators=(",", ":"))) <= 4_000


def test_a_foreign_host_is_refused(address: str) -> None:
    headers = {"Host": "evil.example", "Accept": "application/json, text/event-stream"}
    assert httpx.post(address, headers=headers, json={}).status_code in (403, 421)


def test_without_the_package_one_line_says_how_to_install_it(run_folder: Path) -> None:
    script = (
        "import sys; sys.modules['mcp'] = None; import importlib.util as u; find = u.find_spec; "
        "u.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest); "
        "from halfgraph.cli import main; main()"
    )
    command = [sys.executable, "-c", script, "mcp", str(run_folder)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 1
    assert outcome.stdout == ""
    assert outcome.stderr.count("\n") == 1
    assert "pip install 'halfgraph[mcp]'" in outcome.stderr
