"""The application: the page or how to build it, shutdown, and errors at the start."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from halfgraph.answering.pool import WorkerPool
from halfgraph.errors import SettingError
from halfgraph.serving.api import AppContext
from halfgraph.serving.app import address, application, listening
from halfgraph.serving.schema import Limits
from server_process import PROGRAM, running

A_SECOND = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g <http://example.org/inCountry> ?i }"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_after_the_running_requests(run_folder, number):
    with running(run_folder, "--log", "json", "--view", "train") as server, ThreadPoolExecutor(1) as pool:
        query = {"query": A_SECOND}
        asked = pool.submit(lambda: httpx.get(f"{server.address}/sparql", params=query, timeout=60))
        while "halfgraph_running 1" not in httpx.get(f"{server.address}/metrics").text and not asked.done():
            time.sleep(0.02)
        assert server.stop(number) == 0
        assert asked.result().status_code == 200
        lines = [json.loads(line) for line in server.logged().splitlines()]
        assert set(lines[0]) == {"time", "message"}
        assert set(lines[-1]) == {"time", "method", "path", "status", "ms", "bytes", "client"}
        assert next(line for line in lines if line.get("path") == "/sparql")["status"] == asked.result().status_code


def started(*options: str) -> "subprocess.CompletedProcess[str]":
    """Exit code and output of a server that cannot start."""
    return subprocess.run([PROGRAM, "serve", *options], capture_output=True, text=True, timeout=100)


def test_an_error_at_the_start_is_one_line(run_folder, tmp_path):
    ended = started(str(tmp_path), "--port", "0")
    assert ended.returncode == 1
    assert "no run here" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert "--workers" in started(str(run_folder), "--workers", "0").stderr


def test_a_worker_that_cannot_open_the_run_is_reported(run_folder, tmp_path):
    broken = tmp_path / "run"
    broken.mkdir()
    for name in ("config.toml", "provenance.json"):
        (broken / name).write_bytes((run_folder / name).read_bytes())
    ended = started(str(broken), "--port", "0")
    assert ended.returncode == 1
    assert "manifest.json" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("module", ["app", "mcp_server"])
def test_the_server_itself_does_without_torch(module):
    script = f"import sys, halfgraph.serving.{module}; print('torch' in sys.modules, 'numba' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_a_port_in_use_is_reported():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SettingError, match="cannot listen"):
            listening("127.0.0.1", taken.getsockname()[1])


def test_a_free_port_is_in_the_address():
    with listening("127.0.0.1", 0) as listener:
        assert address(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}/"


class Broken(WorkerPool):
    """A pool with a bug."""

    async def ask(self, job, client=""):  # noqa: ARG002
        raise KeyError(job["task"])


def got(page: Path, *paths: str) -> list[httpx.Response]:
    """The responses of an application with a bug, with or without a page."""

    async def ask() -> list[httpx.Response]:
        pool = Broken(lambda: None, size=1, queue=1, seconds=1, memory=None)
        app = application(AppContext(pool, Limits(), None, None), "none", page)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return [await client.get(path) for path in paths]

    return asyncio.run(ask())


def test_the_page_is_served_if_it_is_built(tmp_path):
    (tmp_path / "index.html").write_text("<!doctype html><title>halfgraph</title>")
    (tmp_path / "page.js").write_text("1")
    first, script, outside, nothing = got(tmp_path, "/", "/page.js", "/..%2f..%2fetc/passwd", "/nothing")
    assert "<title>halfgraph" in first.text
    assert "javascript" in script.headers["content-type"]
    assert (outside.status_code, nothing.status_code) == (404, 404)
    assert nothing.json()["error"]["message"]


def test_without_a_page_it_says_how_to_build_it(tmp_path):
    assert "make web" in got(tmp_path, "/")[0].text


def test_a_bug_is_reported_in_plain_words_and_its_traceback_stays_in_the_log(tmp_path, capsys):
    (answer,) = got(tmp_path, "/api/examples")
    assert answer.status_code == 500
    assert set(answer.json()["error"]) == {"message", "line", "column", "nearest", "advice"}
    assert answer.json()["error"]["message"] == "Internal error; see the server log"
    assert "KeyError" not in answer.text
    assert "KeyError" in capsys.readouterr().err


def test_a_server_without_workers_is_alive_but_not_ready(tmp_path, client):
    ready, alive = got(tmp_path, "/api/health", "/api/health/live")
    assert (ready.status_code, alive.status_code) == (503, 200)
    assert "no worker is ready" in ready.json()["error"]["message"]
    assert client.get("/api/health").json()["status"] == "ready"
