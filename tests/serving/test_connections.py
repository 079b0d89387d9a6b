"""Connections: those that keep the server waiting are dropped, others are served, and a signal ends the server."""

import asyncio
import contextlib
import re
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
import uvicorn

from halfgraph.answering.pool import ABANDONED, WorkerPool
from halfgraph.serving import connections
from halfgraph.serving.connections import GuardedProtocol, GuardedServer
from halfgraph.serving.middleware import BODY_SECONDS
from server_process import running

SLOW = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
DOUBLED = " ".join(f"BIND(CONCAT(?t{n}, ?t{n}) AS ?t{n + 1})" for n in range(19))
LARGE = f"SELECT ?t19 {{ BIND('abcdefgh' AS ?t0) {DOUBLED} }}"  # 4 MB
GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"
MB = 1_000_000


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """An application that reads a body and answers with as many bytes as its path says."""
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        pass
    count = int(scope["path"].strip("/") or 0)
    length = [(b"content-length", str(count).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": bytes(count)})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[GuardedServer, Callable[[bytes], socket.socket]]]:
    """A server in this process with small limits, and what opens a connection to it and sends some bytes."""
    limits = {"MOST_CONNECTIONS": 20, "HEAD_SECONDS": 2.0, "READ_SECONDS": 2.0, "MOST_HELD": 60 * MB}
    for name, value in limits.items():
        monkeypatch.setattr(connections, name, value)
    config = uvicorn.Config(answer, http=GuardedProtocol, lifespan="off", log_config=None, access_log=False)
    server = GuardedServer(config, WorkerPool(lambda: None, size=1, queue=1, seconds=1, memory=None))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    opened: list[socket.socket] = []

    def connect(request: bytes) -> socket.socket:
        link = socket.create_connection(listener.getsockname(), timeout=30)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100_000)
        opened.append(link)
        link.sendall(request)
        return link

    until(lambda: server.started)
    yield server, connect
    for link in opened:
        link.close()
    server.should_exit = True
    thread.join()


def is_dropped(link: socket.socket) -> bool:
    """Whether the server has ended a connection; what it sent before is read."""
    link.setblocking(False)
    try:
        while link.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def test_a_head_that_does_not_come_ends_the_connection(small):
    links = [small[1](text) for text in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n", GET % b"1" + b"G")]
    until(lambda: all(map(is_dropped, links)), 30)


def test_a_client_that_sends_a_byte_now_and_then_gains_no_time(small):
    link = small[1](b"GET / HTTP/1.1\r\n")
    begun = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while time.monotonic() - begun < 30:
            link.sendall(b"x")
            time.sleep(0.1)
    assert time.monotonic() - begun < 30


def test_a_client_that_does_not_read_is_dropped_and_one_that_reads_slowly_is_not(small):
    server, connect = small
    still, slow = (connect(GET % b"9000000") for _ in range(2))
    got = 0
    for _ in range(40):  # 4 s and more
        got += len(slow.recv(100_000))
        time.sleep(0.1)
    until(lambda: len(server.server_state.connections) == 1)
    while got < 9_000_000 and (part := slow.recv(MB)):
        got += len(part)
    assert got > 9_000_000
    assert still.recv(1, socket.MSG_PEEK)  # what the kernel had, before it was dropped


def test_a_next_request_waits_until_the_answer_before_it_is_read(small):
    server, connect = small
    link = connect(5 * (GET % b"9000000"))
    until(lambda: any(one.deferred for one in server.server_state.connections))
    time.sleep(0.3)
    assert server.server_state.total_requests == 0
    got = 0
    while got < 5 * 9_000_000:
        got += len(link.recv(MB))
    until(lambda: server.server_state.total_requests == 5)


def test_beyond_the_most_connections_the_one_that_waited_longest_makes_room(small):
    server, connect = small
    links = [connect(b"") for _ in range(30)]
    until(lambda: sum(map(is_dropped, links)) >= 10)
    assert all(map(is_dropped, links[:10]))
    assert connect(GET % b"5").recv(100).startswith(b"HTTP/1.1 200")
    assert len(server.server_state.connections) <= 20


def test_answers_that_nobody_reads_are_bounded_together(small):
    server, connect = small
    links = [connect(GET % b"9000000") for _ in range(12)]
    until(lambda: all(link.recv(1, socket.MSG_PEEK) for link in links[-3:]))
    held = sum(one.held for one in server.server_state.connections)
    assert held <= 60 * MB
    assert len(server.server_state.connections) < 12


def memory(pid: int, field: str) -> int:
    """Memory of a process in bytes: VmRSS is what it has now, VmHWM the most that it has had."""
    text = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+) kB", text)[1])


def growth(at_rest: dict[int, int]) -> int:
    """How much more memory processes have had, each at its peak, than at rest."""
    return sum(memory(pid, "VmHWM") - least for pid, least in at_rest.items())


@pytest.mark.slow
def test_a_thousand_idle_clients_and_four_hundred_slow_ones_do_not_keep_others_out(run_folder: Path) -> None:
    """All are dropped after the limits of docs/http.md."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    half = b"POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\nASK"
    large = GET % b"sparql?query=%b" % quote(LARGE).encode()
    with running(run_folder, "--log", "none") as server, contextlib.ExitStack() as stack:
        place = urlsplit(server.address)

        def connect(request: bytes) -> socket.socket:
            link = stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=30))
            link.sendall(request)
            return link

        until(lambda: httpx.get(server.address + "/api/health").json()["workers"] == 3)
        another = stack.enter_context(
            httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.2"), timeout=15)
        )
        at_rest = {pid: memory(pid, "VmRSS") for pid in (server.process.pid, *server.workers())}
        for pid in at_rest:
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # VmHWM begins again at VmRSS
        links = [connect(request) for request in [b""] * 1000 + [b"GET /", half] * 100]
        unread = [connect(large) for _ in range(200)]
        for _ in range(5):
            assert another.get(server.address + "/sparql?query=ASK%7B%7D").status_code == 200
        ends = select.poll()
        for link in [*links, *unread]:
            ends.register(link, select.POLLRDHUP)
        until(lambda: len(ends.poll(0)) == 1400, 90)
        assert set(at_rest) == {server.process.pid, *server.workers()}, "a worker was replaced"
        sys.stdout.write(f"peak: server {growth({server.process.pid: at_rest[server.process.pid]}) // MB} MB, ")
        sys.stdout.write(f"server and workers {growth(at_rest) // MB} MB more than at rest\n")
        assert growth(at_rest) < 500 * MB
        assert "Traceback" not in server.logged()


def test_a_signal_ends_runaway_queries_within_ten_seconds_with_503(run_folder: Path) -> None:
    with running(run_folder, "--time-limit", "60") as server, ThreadPoolExecutor(6) as pool:
        asked = [
            pool.submit(httpx.get, server.address + "/sparql", params={"query": SLOW}, timeout=60) for _ in range(6)
        ]
        until(lambda: "halfgraph_waiting 4" in httpx.get(server.address + "/metrics").text)
        begun = time.monotonic()
        assert server.stop(seconds=30) == 0  # 6 s on an idle machine
        assert time.monotonic() - begun < 10
        assert [one.result().status_code for one in asked] == [503] * 6
        assert "Traceback" not in server.logged()


def test_a_query_is_stopped_when_its_client_leaves_and_a_second_signal_ends_the_server(run_folder: Path) -> None:
    with running(run_folder, "--time-limit", "600") as server, ThreadPoolExecutor(2) as pool:
        figures = lambda: httpx.get(server.address + "/metrics").text  # noqa: E731
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(server.address + "/sparql", params={"query": SLOW}, timeout=1)
        until(lambda: "halfgraph_running 0" in figures() and "halfgraph_workers_replaced_total 1" in figures())
        for _ in range(2):
            pool.submit(httpx.get, server.address + "/sparql", params={"query": SLOW}, timeout=60)
        until(lambda: "halfgraph_running 2" in figures())
        workers = server.workers()
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        begun = time.monotonic()
        assert server.stop(signal.SIGINT) == 130
        assert time.monotonic() - begun < 5  # without the second signal, six
        assert "Traceback" not in server.logged()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_the_documentation_states_the_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
    limits = page[page.index("## Limits") :]
    assert connections.HEAD_SECONDS == connections.READ_SECONDS == BODY_SECONDS == 15
    assert limits.count("15 s") == 4
    assert f"| {connections.MOST_CONNECTIONS:,} |" in limits
    assert f"| {connections.MOST_HELD // MB} MB |" in limits
    assert f"for {connections.FINISH_SECONDS:g} s" in limits
    assert f"| {ABANDONED:g} s |" in limits
