"""Shared by all benchmarks: time and memory of functions and child processes, and a verdict for each target.

Only the standard library is imported here. On Linux a child's peak memory counts from its parent's at the fork, so a
benchmark that measures the memory of its children must stay small itself and leave heavy work to other children.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

MB = 1_000_000
SHORT = 3  # exit code; a traceback gives 1
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Child:
    """Measurements of a child process."""

    seconds: float  # from start to end, including the start of the interpreter
    peak: int  # bytes: the largest resident set
    output: str


def run_child(command: Sequence[str]) -> Child:
    """Run a command, which must succeed; return its time, peak memory and standard output."""
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, list(command))
        output.seek(0)
        # Linux counts ru_maxrss in kibibytes, macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        return Child(seconds, usage.ru_maxrss * unit, output.read())


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds that one call of a function takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(rounds: int, work: Callable[[], object]) -> float:
    """Return the shortest time of several calls."""
    return min(seconds_of(work) for _ in range(rounds))


def interleave(rounds: int, works: Mapping[str, Callable[[], Outcome]]) -> dict[str, list[Outcome]]:
    """Call the functions in turns, so that a busy machine slows all of them; return their results."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            outcomes[name].append(work())
    return outcomes


def race(rounds: int, works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the shortest time of each function, called in turns."""
    timed = {name: lambda work=work: seconds_of(work) for name, work in works.items()}
    return {name: min(times) for name, times in interleave(rounds, timed).items()}


@dataclass
class Verdicts:
    """Compare figures with their targets and print them."""

    title: str
    short: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(f"== {self.title}", flush=True)

    def at_most(self, what: str, figures: str, ratio: float, target: float) -> None:
        """Print a ratio that must not exceed the target."""
        self._judge(what, figures, f"ratio {ratio:.2f}, target at most {target:g}", ratio <= target)

    def at_least(self, what: str, figures: str, ratio: float, target: float) -> None:
        """Print a ratio that must reach the target."""
        self._judge(what, figures, f"ratio {ratio:.2f}, target at least {target:g}", ratio >= target)

    def note(self, what: str, figures: str, ratio: float) -> None:
        """Print a ratio without a target."""
        print(f"{what}: {figures}, ratio {ratio:.2f}, no target", flush=True)

    def _judge(self, what: str, figures: str, held: str, ok: bool) -> None:
        print(f"{what}: {figures}, {held}: {'ok' if ok else 'SHORT'}", flush=True)
        if not ok:
            self.short.append(what)

    def leave(self) -> NoReturn:
        """Exit; the code tells whether a target was missed."""
        sys.exit(SHORT if self.short else 0)
