"""Compare this version with an earlier one, both measured in one run and in turns.

    python benchmarks/versions.py --old ../halfgraph-before --run demo/run --graph demo/graph

`--old` is a checkout of the earlier version and `--run` a run that both can open, so one that the earlier version
trained. Each version works in a process of its own that opens the run once. The two take turns, and the median of
their ratios is compared with the target.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

HERE = Path(__file__).resolve()
PROGRAM = str(Path(sys.executable).parent / "halfgraph")
SLOWER = 1.05  # the new version may take this much of the old one's time
FASTER = 0.2  # reading SPARQL must take at most this much of it
TASKS = ("reading", "sampling", "answers", "serving", "training")
QUERIES = (
    "SELECT ?x { ?x :born_in :Mobile_Alabama }",
    "SELECT ?x { ?x :throws :Left_hand ; :won_award :Cy_Young_Award ; :played_for :Los_Angeles_Dodgers_1963 }",
    "SELECT DISTINCT ?t { ?x :born_in :Mobile_Alabama ; :bats :Right_hand . ?x :played_for/:season_of ?t }",
    "SELECT ?x { { ?x :born_in :Mobile_Alabama } UNION { ?x :born_in :Brooklyn_New_York } ?x :throws :Left_hand }",
)


def read_all(graph: object) -> Callable[[], None]:
    """Return a function that reads every query once, by the reader of whichever version this is."""
    try:
        from halfgraph.sparql.read import read
    except ImportError:
        from halfgraph.sparql.reading import read  # type: ignore[import-not-found,no-redef]
    number = count()

    def reading() -> None:
        for text in QUERIES:
            read(f"{text} # {next(number)}", graph)  # type: ignore[arg-type]  # a new text, so that no cache has it

    return reading


def work(graph_path: str, run: str) -> None:
    """Answer the parent's requests: one line with a task and a count, one line back with CPU seconds."""
    import halfgraph

    graph = halfgraph.Graph.open(graph_path)
    engine = halfgraph.load(run, graph, view="train")
    reading = read_all(graph)
    counts = {"two_edges": 60_000, "three_edges": 60_000, "neighbourhoods": 10_000, "valid": 0, "test": 1_000}

    def sampling() -> None:
        with tempfile.TemporaryDirectory() as folder:
            halfgraph.sample(graph, Path(folder) / "questions", **counts)

    tasks: dict[str, Callable[[], object]] = {
        "reading": reading,
        "sampling": sampling,
        "answers": lambda: [engine.ask(text, 10) for text in QUERIES],
    }
    for line in sys.stdin:
        task, rounds = line.split()
        begun = time.process_time()
        for _ in range(int(rounds)):
            tasks[task]()
        print(time.process_time() - begun, flush=True)


class Version:
    """One version's process, server and commands."""

    def __init__(self, source: Path, graph: Path, run: Path) -> None:
        # One thread, because the CPU time of two that wait for each other varies more than what is compared.
        fixed = {"PYTHONPATH": str(source / "src"), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        self.environment = os.environ | fixed
        self.graph = graph
        self.run = run
        command = [sys.executable, str(HERE), "--work", str(graph), str(run)]
        self.process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, task: str, rounds: int) -> float:
        """Return the CPU seconds that a task took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{task} {rounds}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def training(self, steps: int) -> float:
        """Return the seconds for each training step, without validation and calibration."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            command = [PROGRAM, "train", str(self.graph), "--steps", str(steps), "--out", str(out)]
            subprocess.run(command, env=self.environment, check=True, capture_output=True)
            lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        rates = [float(json.loads(line).get("questions_per_second") or 0) for line in lines]
        return 1.0 / max(rates)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve the run for the duration of the block; yield its address."""
        command = [PROGRAM, "serve", str(self.run), "--graph", str(self.graph), "--port", "0"]
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
            try:
                yield self._address(log, process)
            finally:
                process.terminate()
                process.wait()

    def _address(self, log: object, process: "subprocess.Popen[bytes]") -> str:
        for _ in range(600):
            log.seek(0)  # type: ignore[attr-defined]
            if match := re.search(r"http://127\.0\.0\.1:\d+", log.read()):  # type: ignore[attr-defined]
                return match.group()
            assert process.poll() is None, "the server ended"
            time.sleep(0.1)
        raise TimeoutError("the server did not start")


def request(address: str, rounds: int) -> float:
    """Return the seconds that a number of requests took."""
    begun = time.perf_counter()
    for number in range(rounds):
        query = urllib.parse.urlencode({"query": QUERIES[number % len(QUERIES)]})
        with urllib.request.urlopen(f"{address}/sparql/predict?{query}") as answer:
            answer.read()
    return time.perf_counter() - begun


def ratios(rounds: int, old: Callable[[], float], new: Callable[[], float]) -> list[float]:
    """Return new / old of each round; the two take turns at going first."""
    old(), new()  # caches, compiled code
    found = []
    for number in range(rounds):
        if number % 2:
            before, after = old(), new()
        else:
            after, before = new(), old()
        found.append(after / before)
    return found


def verdict(name: str, found: list[float], target: float) -> bool:
    """Print one comparison and return whether it meets its target."""
    middle = statistics.median(found)
    good = middle <= target
    spread = f"{min(found):.3f} to {max(found):.3f}"
    print(f"{name:<10} new / old {middle:.3f} ({spread}), target {target:.2f}: {'ok' if good else 'SHORT'}", flush=True)
    return good


def main() -> None:
    """Measure every task on both versions."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("old", "run", "graph"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", nargs="*", default=TASKS, choices=TASKS)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(given.run, folder / "run")  # neither version changes what was given
    old, new = (Version(path, given.graph.resolve(), folder / "run") for path in (given.old, HERE.parents[1]))
    good = []
    for task, rounds, target in (("reading", 20, FASTER), ("sampling", 1, SLOWER), ("answers", 10, SLOWER)):
        if task in given.only:
            times = ratios(given.rounds, partial(old.seconds, task, rounds), partial(new.seconds, task, rounds))
            good.append(verdict(task, times, target))
    for version in (old, new):
        version.process.terminate()
    if "serving" in given.only:
        with old.serving() as before, new.serving() as after:
            times = ratios(given.rounds, partial(request, before, 40), partial(request, after, 40))
            good.append(verdict("serving", times, SLOWER))
    if "training" in given.only:
        good.append(verdict("training", ratios(3, partial(old.training, 60), partial(new.training, 60)), SLOWER))
    shutil.rmtree(folder)
    sys.exit(0 if all(good) else 3)


if __name__ == "__main__":
    work(*sys.argv[2:]) if sys.argv[1:2] == ["--work"] else main()
