"""A soak test: clients with mixed queries for an hour, without an error, without growth and without slowing down.

`benchmarks/long/soak.py [MINUTES] [RUN]`, or `make soak MINUTES=60`. The first minute is not judged; then the server is
looked at in six parts. Some of the clients leave before their answers, ask nonsense, or ask for too much.
"""

import http.client
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import MB, Verdicts
from serving import ENDLESS, EXACT, PREDICTED, SEASONS, Request, get, memory, served, trained, wait_for_workers

CLIENTS = 4
PARTS = 6
PAUSE = 0.05  # seconds between the requests of a client: a soak is no race
SLOWER, GROWTH = 1.2, 1.1
ALLOWED = {"/sparql?bad": 400, "/nothing": 404}


@dataclass
class Part:
    """What was seen in one sixth of the time."""

    times: list[float] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    errors: int = 0
    memory: int = 0


def main(minutes: float, run: Path | None) -> None:
    """Run the clients, print the figures and exit by the verdict."""
    verdicts = Verdicts("Soak")
    with tempfile.TemporaryDirectory() as folder, served(run or trained(Path(folder))) as (address, process):
        wait_for_workers(address)
        rows = json.loads(get(http.client.HTTPConnection(address), ("/sparql", SEASONS))[1])["results"]["bindings"]
        seasons = [row["s"]["value"] for row in rows]
        forms = (("/sparql/predict", PREDICTED), ("/sparql", EXACT), ("/api/ask", PREDICTED))
        requests = [(path, form.format(season=season)) for season in seasons for path, form in forms]
        load(address, requests, min(60.0, 12 * minutes), Part())
        parts = [Part() for _ in range(PARTS)]
        for number, part in enumerate(parts, 1):
            load(address, requests, 60 * minutes / PARTS, part)
            part.memory = memory(process)
            print(f"part {number}: {summary(part)}", flush=True)
    first, last = parts[0], parts[-1]
    errors = sum(part.errors for part in parts)
    count = sum(len(part.times) for part in parts)
    verdicts.at_most("errors", f"{errors} in {count:,} requests", float(errors), 0.0)
    figures = f"{first.memory / MB:.0f} MB, then {last.memory / MB:.0f} MB"
    verdicts.at_most("memory of the last part", figures, last.memory / first.memory, GROWTH)
    figures = f"{1000 * p95(first):.0f} ms, then {1000 * p95(last):.0f} ms"
    verdicts.at_most("95th percentile of the last part", figures, p95(last) / p95(first), SLOWER)
    verdicts.leave()


def p95(part: Part) -> float:
    return statistics.quantiles(part.times, n=20)[-1]


def summary(part: Part) -> str:
    return f"{len(part.times):,} requests, p95 {1000 * p95(part):.0f} ms, {part.memory / MB:.0f} MB, {dict(part.codes)}"


def load(address: str, requests: list[Request], seconds: float, part: Part) -> None:
    """Let the clients ask for a while."""
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=ask, args=(address, requests, end, part, seed)) for seed in range(CLIENTS)]
    threads.append(threading.Thread(target=annoy, args=(address, end, part)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ask(address: str, requests: list[Request], end: float, part: Part, seed: int) -> None:
    """Send one query after another."""
    rng = random.Random(seed)
    link = http.client.HTTPConnection(address, timeout=60)
    while time.monotonic() < end:
        start = time.perf_counter()
        try:
            status, _ = get(link, rng.choice(requests))
        except OSError:
            status = 0
            link = http.client.HTTPConnection(address, timeout=60)
        part.times.append(time.perf_counter() - start)
        part.codes[status] += 1
        part.errors += status != 200
        time.sleep(PAUSE)


def annoy(address: str, end: float, part: Part) -> None:
    """Ask nonsense, leave a runaway query after half a second, and leave a connection open."""
    while time.monotonic() < end:
        for path, expected in ALLOWED.items():
            link = http.client.HTTPConnection(address, timeout=60)
            part.errors += get(link, (path, ""))[0] != expected
        link = http.client.HTTPConnection(address, timeout=0.5)
        try:
            get(link, ("/sparql", ENDLESS))
        except TimeoutError:
            link.close()
        idle = http.client.HTTPConnection(address)
        idle.connect()
        time.sleep(20.0)  # a worker is replaced meanwhile


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
