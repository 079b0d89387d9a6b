"""The command serve: what the server knows of the run that its workers have opened."""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from halfgraph.answering.pool import WorkerPool
from halfgraph.cli.serve import _context
from halfgraph.serving.access import AccessRules
from halfgraph.serving.schema import Limits
from halfgraph.training.run_folder import PROVENANCE, provenance
from imported_graphs import made
from server_process import running
from small_runs import people


def test_a_server_describes_the_triples_that_its_run_was_trained_on(tmp_path: Path) -> None:
    graph = people(tmp_path, split=None).with_held_out(20, 0)
    (tmp_path / PROVENANCE).write_text(json.dumps(provenance(graph, 0)))
    ready: dict[str, Any] = {"graph": str(graph.path), "held_out": graph.held_out, "modes": ["embedding"], "served": ""}
    context = _context(
        cast(WorkerPool, SimpleNamespace()), partial(dict), tmp_path, "train", Limits(), AccessRules(), ready
    )  # type: ignore[arg-type]
    assert context.info.graph["served_triples"] == graph.train.triple_count == graph.whole.triple_count - 20


@pytest.mark.parametrize("text", ['<http://a.org/a> <http://a.org/age> "3" .', ""])
def test_a_graph_without_a_run_is_served_with_exact_answers(tmp_path: Path, text: str) -> None:
    graph = made(tmp_path, text, "nt")
    query = "SELECT ?age { <http://a.org/a> <http://a.org/age> ?age }"
    with running(graph.path) as server, httpx.Client(base_url=server.address, timeout=60) as client:
        for door in ("/sparql", "/sparql/predict"):
            rows = client.get(door, params={"query": query}).json()["results"]["bindings"]
            assert [row["age"]["value"] for row in rows] == ["3"] * bool(text)
        answers = client.post("/api/ask", json={"query": query}).json()
        assert (len(answers["known"]), answers["predicted"]) == (bool(text), [])
        assert "without a trained run" in answers["notes"][0]
        assert client.get("/api/info").json()["modes"] == []
        assert client.get("/api/examples").json() == {"examples": []}
        assert client.get("/api/complete", params={"text": "a"}).status_code == 200
        assert client.get("/sparql", params={"query": "ASK { }"}).json()["boolean"]
        assert client.post("/api/explain", json={"query": query, "entity": "x"}).status_code in (400, 422)
