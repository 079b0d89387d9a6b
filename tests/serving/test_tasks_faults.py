"""Faults and limits: a slow query is cut while others go on, a killed worker is replaced, a queue has an end."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from server_process import Running, running

SLOW = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
QUICK = "ASK { ?s ?p ?o }"
LIMIT = 4.0  # seconds


@pytest.fixture(scope="module")
def strict(run_folder) -> Iterator[Running]:
    """A server with little patience: two queries at a time, and one that waits."""
    with running(run_folder, "--time-limit", f"{LIMIT:g}", "--queue", "1", "--memory", "300") as found:
        yield found


@pytest.fixture(autouse=True)
def all_ready(strict: Running) -> None:
    until(lambda: httpx.get(strict.address + "/api/health").json().get("workers") == 3)


def ask(server: Running, query: str, path: str = "/sparql") -> httpx.Response:
    return httpx.get(server.address + path, params={"query": query}, timeout=60)


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_slow_query_is_cut_at_its_limit_while_others_go_on(strict):
    with ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        slow = pool.submit(ask, strict, SLOW)
        quick = 0
        while not slow.done():
            assert ask(strict, QUICK).status_code == 200
            quick += 1
        taken = time.monotonic() - begun
    assert slow.result().status_code == 504
    assert slow.result().json()["error"]["advice"]
    assert taken >= LIMIT
    assert quick > 1  # hundreds on an idle machine
    assert ask(strict, QUICK).status_code == 200


def test_queries_beyond_the_queue_get_503_with_retry_after(strict):
    with ThreadPoolExecutor(6) as pool:
        codes = [one.status_code for one in pool.map(lambda _: ask(strict, SLOW), range(6))]
    assert set(codes) == {503, 504}
    assert codes.count(503) >= 3
    with ThreadPoolExecutor(6) as pool:
        refused = [one for one in pool.map(lambda _: ask(strict, SLOW), range(6)) if one.status_code == 503]
    assert all(int(one.headers["retry-after"]) >= 1 for one in refused)


def test_a_worker_killed_while_it_waits_is_replaced_unnoticed(strict):
    killed = strict.workers()[:2]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert [ask(strict, QUICK).status_code for _ in range(5)] == [200] * 5
    until(lambda: len(strict.workers()) == 3 and not set(killed) & set(strict.workers()))


def test_a_query_that_no_worker_has_begun_is_asked_until_one_does(strict):
    """Two of the three workers stand still; whoever is given to them is passed on as they are killed."""
    killed = strict.workers()[-2:]
    for pid in killed:
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, strict, QUICK) for _ in range(2)]
        for pid in killed:
            time.sleep(LIMIT / 8)
            os.kill(pid, signal.SIGKILL)
    assert [one.result().status_code for one in asked] == [200, 200]


def processor_time(pid: int) -> int:
    """CPU time of a process, in ticks."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


def test_a_query_whose_worker_is_killed_is_asked_again_of_another(strict):
    before = {pid: processor_time(pid) for pid in strict.workers()}
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask, strict, SLOW)
        time.sleep(LIMIT / 2)
        os.kill(max(before, key=lambda pid: processor_time(pid) - before[pid]), signal.SIGKILL)
        killed = time.monotonic()
        assert slow.result().status_code == 504
    assert time.monotonic() - killed >= LIMIT
    assert ask(strict, QUICK).status_code == 200


def test_a_query_that_would_take_all_memory_ends_alone(strict):
    doubled = " ".join(f"BIND(CONCAT(?t{n}, ?t{n}) AS ?t{n + 1})" for n in range(45))
    answer = ask(strict, f"SELECT (STRLEN(?t45) AS ?n) {{ BIND('abcdefgh' AS ?t0) {doubled} }}")
    assert answer.status_code == 400
    assert "memory" in answer.json()["error"]["message"]
    assert ask(strict, QUICK).status_code == 200


@pytest.mark.parametrize(
    ("form", "part", "count"),
    [("ASK { FILTER(%s true) }", "!", 4900), ("ASK { FILTER(1 %s) }", "+1 ", 2000), ("ASK { ?s :a%s ?o }", "/:a", 100)],
)
def test_a_long_expression_does_not_end_a_worker(strict, form, part, count):
    before = strict.workers()
    assert ask(strict, form.replace("%s", part * count)).status_code == 200
    assert strict.workers() == before


def test_a_client_that_leaves_takes_its_waiting_query_back(strict):
    busy = [threading.Thread(target=ask, args=(strict, SLOW)) for _ in range(2)]
    for thread in busy:
        thread.start()
    time.sleep(0.5)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(strict.address + "/sparql", params={"query": QUICK}, timeout=0.3)
    figures = httpx.get(strict.address + "/metrics").text
    assert "halfgraph_waiting 0" in figures
    for thread in busy:
        thread.join()


def test_a_client_with_runaway_queries_does_not_keep_others_out(strict):
    stopped = threading.Event()

    def run_away() -> None:
        while not stopped.is_set():
            ask(strict, SLOW)

    greedy = [threading.Thread(target=run_away) for _ in range(6)]
    for thread in greedy:
        thread.start()
    transport = httpx.HTTPTransport(local_address="127.0.0.2")
    with httpx.Client(transport=transport, base_url=strict.address, timeout=60) as other:
        end = time.monotonic() + 2 * LIMIT  # in which the workers of the first client are replaced
        codes = []
        while time.monotonic() < end:
            codes.append(other.get("/sparql", params={"query": QUICK}).status_code)
            time.sleep(0.05)
    stopped.set()
    for thread in greedy:
        thread.join()
    assert set(codes) == {200}
    assert len(codes) > 1
