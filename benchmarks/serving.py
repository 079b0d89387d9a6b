"""The server under load, on the demo graph: predicted queries a second and their slowest twentieth at 8 clients, then
32 clients with mixed queries for two minutes, without an error and without growing.

`benchmarks/serving.py [SECONDS] [RUN]`: how long the mixed load lasts, and a trained run to serve.
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
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from measure import MB, Verdicts

PROGRAM = Path(sys.executable).parent / "halfgraph"
FEW, MANY = 8, 32  # clients
WORKERS = 3  # two and a spare
SHORT_SECONDS = 15.0
WARM = 10.0  # seconds before memory is first looked at
RATE, SLOWEST, GROWTH = 100.0, 0.1, 1.1  # queries a second, seconds, and how much memory may grow
SEASONS = "SELECT ?s { ?s :in_year ?y } LIMIT 300"
PREDICTED = "SELECT ?player {{ ?player :played_for <{season}> . ?player :throws :Left_hand }}"
EXACT = "SELECT ?player ?city {{ ?player :played_for <{season}> ; :born_in ?city }}"
Request = tuple[str, str]  # path and query


def main(seconds: float, run: Path | None) -> None:
    """Never returns; the figures are printed."""
    verdicts = Verdicts("Serving")
    with tempfile.TemporaryDirectory() as folder, served(run or trained(Path(folder))) as (address, process):
        found = get(http.client.HTTPConnection(address), ("/sparql", SEASONS))[1]
        seasons = [row["s"]["value"] for row in json.loads(found)["results"]["bindings"]]
        predicted = [("/sparql/predict", PREDICTED.format(season=season)) for season in seasons]
        exact = [("/sparql", EXACT.format(season=season)) for season in seasons]
        while json.loads(get(http.client.HTTPConnection(address), ("/api/health", ""))[1])["workers"] < WORKERS:
            time.sleep(1.0)
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
    verdicts.leave()


def trained(folder: Path) -> Path:
    """A run on the demo graph, trained for a minute: speed does not depend on how well it predicts."""
    for command in (
        ["import", "demo", "--split", "90/1/9", "--out", str(folder / "graph")],
        ["train", str(folder / "graph"), "--steps", "100", "--out", str(folder / "run")],
    ):
        subprocess.run([PROGRAM, *command, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return folder / "run"


@contextlib.contextmanager
def served(run: Path) -> Iterator[tuple[str, int]]:
    """The address of a server of a run, and its process number."""
    command = [str(PROGRAM), "serve", str(run), "--view", "train", "--port", "0", "--log", "none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None, "the server did not start"
            yield str(urlsplit(found.group()).netloc), process.pid
        finally:
            process.terminate()


def get(link: http.client.HTTPConnection, request: Request) -> tuple[int, bytes]:
    """The status and body of an answer."""
    path, query = request
    link.request("GET", f"{path}?{urlencode({'query': query})}")
    answer = link.getresponse()
    return answer.status, answer.read()


def load(address: str, requests: Sequence[Request], clients: int, seconds: float) -> tuple[Counter[int], list[float]]:
    """The statuses, and how long each answer took, when some clients ask one after another for a while."""
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
    """What one client does: it asks its questions in turn until the end."""

    def asking() -> None:
        link, place = http.client.HTTPConnection(address, timeout=60), 0
        while (begun := time.perf_counter()) < end:
            status, _ = get(link, requests[place % len(requests)])
            times.append(time.perf_counter() - begun)
            codes[status] += 1
            place += 1
        link.close()

    return asking


def cpu(process: int) -> float:
    """The seconds of processor time that a server with its workers, and this client, have had."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in [process, *children]]
    return sum(int(tick) for pair in ticks for tick in pair) / os.sysconf("SC_CLK_TCK") + time.process_time()


def memory(process: int) -> int:
    """The bytes that a process and its children hold, what they share counted once."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return sum(_proportional(pid) for pid in [str(process), *children])


def _proportional(pid: str) -> int:
    """The proportional set of a process."""
    found = re.search(r"Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 120.0, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
