"""Folders that are removed, replaced or cut while they are served: an answer or 503, and one line in the log."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from halfgraph.graph.manifest import write_manifest
from server_process import Running, running
from serving.test_tasks_faults import until

QUERY = {"query": "SELECT ?x { ?x <http://example.org/livesIn> <http://example.org/city1> }"}
REQUESTS = (
    *(("/sparql", QUERY), ("/sparql/predict", QUERY), ("/api/ask", QUERY), ("/sparql", {}), ("/api/examples", {})),
    *(
        ("/api/complete", {"text": "Pérson"}),
        ("/api/complete", {"text": "Persn"}),
        ("/api/info", {}),
        ("/api/health", {}),
    ),
    ("/api/entity", {"iri": "http://example.org/person1"}),
)


@pytest.fixture
def served(graph_folder: Path, run_folder: Path, tmp_path: Path) -> Iterator[Running]:
    """A server of copies of a graph and a run, with two workers."""
    shutil.copytree(graph_folder, tmp_path / "graph")
    shutil.copytree(run_folder, tmp_path / "run")
    options = ("--graph", str(tmp_path / "graph"), "--workers", "1", "--log", "none")
    with running(tmp_path / "run", *options) as server:
        until(lambda: workers(server) == 2)
        yield server


def workers(server: Running) -> int:
    return int(httpx.get(server.address + "/api/health").json().get("workers", 0))


def answers(server: Running) -> list[httpx.Response]:
    return [httpx.get(server.address + path, params=given, timeout=60) for path, given in REQUESTS]


def kill_workers(server: Running) -> None:
    killed = server.workers()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not set(killed) & set(server.workers()))


def notes(server: Running) -> list[str]:
    """What the server has logged about its folders."""
    log = server.logged()
    assert "Traceback" not in log
    return [line for line in log.splitlines() if "opening" not in line]


def check(server: Running, folder: Path) -> list[int]:
    """The statuses of all requests: each is an answer or a clear error without a path."""
    replies = answers(server)
    assert {reply.status_code for reply in replies} <= {200, 503}, [reply.text[:200] for reply in replies]
    for reply in replies:
        assert str(folder) not in reply.text
        assert reply.status_code == 200 or reply.json()["error"]["message"]
    assert server.process.poll() is None
    return [reply.status_code for reply in replies]


def test_removed_folders_are_served_as_long_as_workers_live_and_again_when_they_are_back(
    served: Running, tmp_path: Path
) -> None:
    before = [reply.text for reply in answers(served)[:2]]
    for name in ("graph", "run"):
        (tmp_path / name).rename(tmp_path / f"{name}-away")
    assert check(served, tmp_path)[:4] == [200] * 4
    kill_workers(served)
    statuses = check(served, tmp_path)
    assert set(statuses[:5]) == {503}
    assert statuses[5:8] == [200] * 3
    lines = [line for line in notes(served) if "did not start" in line]
    assert len(lines) == 1, lines
    assert "no such folder" in lines[0] or "is not there" in lines[0]
    for name in ("graph", "run"):
        (tmp_path / f"{name}-away").rename(tmp_path / name)
    until(lambda: workers(served) == 2)
    assert [reply.text for reply in answers(served)[:2]] == before


def test_another_run_in_its_place_is_not_mixed_with_the_first(served: Running, tmp_path: Path) -> None:
    path = tmp_path / "run" / "provenance.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"begun": "2020-01-01T00:00:00Z"}))
    write_manifest(tmp_path / "run")
    assert check(served, tmp_path)[:4] == [200] * 4
    kill_workers(served)
    assert check(served, tmp_path)[:4] == [503] * 4
    assert len(notes(served)) == 1
    assert "replaced since the server was started, or its graph has. Restart the server." in notes(served)[0]


def test_files_that_are_cut_end_workers_and_not_the_server(served: Running, tmp_path: Path) -> None:
    for path in [*(tmp_path / "graph").glob("*"), *(tmp_path / "run").glob("*")]:
        if path.is_file():
            os.truncate(path, 0)
    check(served, tmp_path)
    kill_workers(served)
    statuses = check(served, tmp_path)
    assert set(statuses[:4]) == {503}
    assert statuses[5:8] == [200] * 3
    assert served.stop() == 0
