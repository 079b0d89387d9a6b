"""The server under load on the demo graph, completion of a million names, and the time limit of a query.

The load: predicted queries a second and their 95th percentile with 8 clients, then 32 clients with mixed queries for
two minutes, without an error and without growing memory. And what the limits on connections and the checks of access
cost: the same server with and without them, in turns.

`benchmarks/serving.py [SECONDS] [RUN]`: the duration of the mixed load, and a trained run to serve.
"""

import contextlib
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
from pyoxigraph import NamedNode, Quad, Store

from halfgraph.answering.store_rows import TimedStore
from halfgraph.errors import TimeLimit
from halfgraph.graph.vocabulary import Vocabulary
from halfgraph.serving.completion import CompletionIndex
from measure import MB, Verdicts, interleave

PROGRAM = Path(sys.executable).parent / "halfgraph"
FEW, MANY = 8, 32  # clients
WORKERS = 3  # two and a spare
SHORT_SECONDS = 15.0
WARM = 10.0  # seconds before memory is first looked at
RATE, SLOWEST, GROWTH = 100.0, 0.1, 1.1  # queries a second, seconds, and the growth of memory
NAMES = 1_000_000  # to complete
BY_WORD, BY_SPELLING, STOPPED = 0.05, 0.5, 1.0  # seconds: to complete a name, and to stop a query after its limit
SEASONS = "SELECT ?s { ?s :in_year ?y } LIMIT 300"
PREDICTED = "SELECT ?player {{ ?player :played_for <{season}> . ?player :throws :Left_hand }}"
EXACT = "SELECT ?player ?city {{ ?player :played_for <{season}> ; :born_in ?city }}"
ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
Request = tuple[str, str]  # path and query
SHORT_QUERIES = [
    ("/sparql", f"ASK {{ ?s ?p {number} }}") for number in range(100)
]  # of which the server's share is largest
TURN, TURNS, DEFENDED = 2.0, 15, 0.95  # seconds, and the least share of the throughput
UNGUARDED = """
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from halfgraph.serving import app
app.GuardedProtocol, app.GuardedServer = H11Protocol, lambda config, workers: uvicorn.Server(config)
app.AccessControl = lambda inner, rules: inner
"""


def main(seconds: float, run: Path | None) -> None:
    """Measure, print the figures and exit by the verdict."""
    verdicts = Verdicts("Serving")
    judge_completion(verdicts)
    judge_time_limit(verdicts)
    with tempfile.TemporaryDirectory() as folder:
        path = run or trained(Path(folder))
        judge_defences(verdicts, path)
        judge_load(verdicts, path, seconds)
    verdicts.leave()


def judge_defences(verdicts: Verdicts, run: Path) -> None:
    """Compare the throughput of a server with that of one without its defences, in turns."""
    with served(run) as (guarded, _), served(run, UNGUARDED) as (bare, _):
        for address in (guarded, bare):
            wait_for_workers(address)
            load(address, SHORT_QUERIES, FEW, 2.0)
        works = {
            name: partial(load, address, SHORT_QUERIES, FEW, TURN)
            for name, address in (("with", guarded), ("without", bare))
        }
        rates = {name: [len(times) / TURN for _, times in turns] for name, turns in interleave(TURNS, works).items()}
    medians = {name: statistics.median(values) for name, values in rates.items()}
    figures = f"{medians['with']:.0f} requests a second, without the defences {medians['without']:.0f}"
    ratio = statistics.median(a / b for a, b in zip(rates["with"], rates["without"], strict=True))
    verdicts.at_least("throughput with the defences", figures, ratio, DEFENDED)


def wait_for_workers(address: str) -> None:
    """Wait until every worker of a server is ready."""
    while json.loads(get(http.client.HTTPConnection(address), ("/api/health", ""))[1])["workers"] < WORKERS:
        time.sleep(0.5)


def judge_load(verdicts: Verdicts, run: Path, seconds: float) -> None:
    """Measure predicted queries, and a mixed load of many clients."""
    with served(run) as (address, process):
        listed = get(http.client.HTTPConnection(address), ("/sparql", SEASONS))[1]
        seasons = [row["s"]["value"] for row in json.loads(listed)["results"]["bindings"]]
        predicted = [("/sparql/predict", PREDICTED.format(season=season)) for season in seasons]
        exact = [("/sparql", EXACT.format(season=season)) for season in seasons]
        wait_for_workers(address)
        load(address, predicted, FEW, 5.0)  # every worker has compiled its kernels
        worked = cpu(process)
        codes, times = load(address, predicted, FEW, SHORT_SECONDS)
        each = (cpu(process) - worked) / len(times)
        rate, slow = len(times) / SHORT_SECONDS, statistics.quantiles(times, n=20)[-1]
        figures = f"{rate:.0f}/s with {FEW} clients, answers {dict(codes)}"
        verdicts.at_least("predicted queries a second over HTTP", figures, rate / RATE, 1.0)
        idle = f"{1000 * each:.1f} ms of processor time each, client included; {2 / each:.0f}/s if two cores were idle"
        verdicts.note("what that takes", idle, 2 / each / RATE)
        verdicts.at_most("their 95th percentile", f"{1000 * slow:.0f} ms", slow / SLOWEST, 1.0)
        mixed = [one for pair in zip(predicted, exact, strict=True) for one in pair]
        codes, _ = load(address, mixed, MANY, WARM)
        before = memory(process)
        more, times = load(address, mixed, MANY, seconds)
        after, codes = memory(process), codes + more
        wrong = sum(count for code, count in codes.items() if code != 200)
        figures = f"{len(times):,} answers in {seconds:.0f} s, {dict(codes)}"
        verdicts.at_most(f"errors with {MANY} clients", figures, float(wrong), 0.0)
        verdicts.at_most("memory", f"{before / MB:.0f} MB, then {after / MB:.0f} MB", after / before, GROWTH)


def judge_completion(verdicts: Verdicts) -> None:
    """Time the completion of a word and of a misspelt word among a million names."""
    rng = np.random.default_rng(0)
    words = ["".join(chr(97 + letter) for letter in rng.integers(0, 26, 7)) for _ in range(5000)]
    texts = [f"{words[a]} {words[b]} {i}" for i, (a, b) in enumerate(rng.integers(0, 5000, (NAMES, 2)).tolist())]
    index = CompletionIndex.of(Vocabulary.of(texts), "entity", rng.integers(1, 1000, len(texts)))
    index.similar("warming", 10)
    start = time.perf_counter()
    assert len(index.with_word(words[0][:4])) > 0
    by_word = time.perf_counter() - start
    index.similar(words[0][:3] + words[0][4:], 10)
    by_spelling = time.perf_counter() - start - by_word
    verdicts.at_most(f"completion among {NAMES:,} names", f"{1000 * by_word:.1f} ms", by_word / BY_WORD, 1.0)
    verdicts.at_most("completion of a misspelt word", f"{1000 * by_spelling:.0f} ms", by_spelling / BY_SPELLING, 1.0)


def judge_time_limit(verdicts: Verdicts) -> None:
    """Time how long after its limit a query is stopped."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.extend(Quad(NamedNode(f"urn:{n}"), NamedNode("urn:p"), NamedNode(f"urn:{n + 1}")) for n in range(1000))
        del store  # closes it
        timed = TimedStore(Path(folder))
        timed.query_json("ASK {}", 60.0)
        start = time.perf_counter()
        with contextlib.suppress(TimeLimit):
            timed.query_json(ENDLESS, 0.5)
        late = time.perf_counter() - start - 0.5
    verdicts.at_most("a query is stopped after its limit", f"{1000 * late:.0f} ms late", late / STOPPED, 1.0)


def trained(folder: Path) -> Path:
    """Train a run on the demo graph for a minute; the speed does not depend on its quality."""
    for command in (
        ["import", "demo", "--split", "90/1/9", "--out", str(folder / "graph")],
        ["train", str(folder / "graph"), "--steps", "100", "--out", str(folder / "run")],
    ):
        subprocess.run([PROGRAM, *command, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return folder / "run"


@contextlib.contextmanager
def served(run: Path, before: str = "") -> Iterator[tuple[str, int]]:
    """Serve a run, after some code; yield the address and the process id."""
    program = [sys.executable, "-c", f"{before}from halfgraph.cli import main; main()"]
    command = [*program, "serve", str(run), "--view", "train", "--port", "0", "--log", "none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None, "the server did not start"
            yield str(urlsplit(address.group()).netloc), process.pid
        finally:
            process.terminate()


def get(link: http.client.HTTPConnection, request: Request) -> tuple[int, bytes]:
    """Return the status and the body of a response."""
    path, query = request
    link.request("GET", f"{path}?{urlencode({'query': query})}" if query else path)
    answer = link.getresponse()
    return answer.status, answer.read()


def load(address: str, requests: Sequence[Request], clients: int, seconds: float) -> tuple[Counter[int], list[float]]:
    """Let clients ask one query after another for a while; return the statuses and the durations."""
    codes: Counter[int] = Counter()
    times: list[float] = []
    end = time.perf_counter() + seconds
    threads = [
        threading.Thread(target=client(address, requests[i::clients], end, codes, times)) for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return codes, times


def client(
    address: str, requests: Sequence[Request], end: float, codes: Counter[int], times: list[float]
) -> Callable[[], None]:
    """Return the loop of one client, which sends its queries in turn until the end."""

    def run() -> None:
        link, turn = http.client.HTTPConnection(address, timeout=60), 0
        while (start := time.perf_counter()) < end:
            status, _ = get(link, requests[turn % len(requests)])
            times.append(time.perf_counter() - start)
            codes[status] += 1
            turn += 1
        link.close()

    return run


def cpu(process: int) -> float:
    """Return the processor time of a server with its workers and of this client, in seconds."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in [process, *children]]
    return sum(int(tick) for pair in ticks for tick in pair) / os.sysconf("SC_CLK_TCK") + time.process_time()


def memory(process: int) -> int:
    """Return the memory of a process and its children in bytes, shared pages counted once."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return sum(_proportional(pid) for pid in [str(process), *children])


def _proportional(pid: str) -> int:
    """Proportional set size of a process."""
    size = re.search(r"Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
    return int(size[1]) * 1024 if size else 0


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 120.0, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
