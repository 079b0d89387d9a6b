"""What every benchmark uses: times and memory of functions and of child processes, and a verdict on each target.

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
    """How a child process fared."""

    seconds: float  # from its start to its end, the interpreter's start included
    peak: int  # bytes: the largest resident set
    output: str


def run_child(command: Sequence[str]) -> Child:
    """The time, peak memory and standard output of a command, which must succeed."""
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
    """How long a function takes, once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(rounds: int, work: Callable[[], object]) -> float:
    """The shortest time of several."""
    return min(seconds_of(work) for _ in range(rounds))


def interleave(rounds: int, works: Mapping[str, Callable[[], Outcome]]) -> dict[str, list[Outcome]]:
    """What each function gave in each round; they take turns, so that a busy minute falls on all of them."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            outcomes[name].append(work())
    return outcomes


def race(rounds: int, works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The shortest time of each function, taking turns."""
    timed = {name: lambda work=work: seconds_of(work) for name, work in works.items()}
    return {name: min(times) for name, times in interleave(rounds, timed).items()}


@dataclass
class Verdicts:
    """Figures held against their targets, printed as they come."""

    title: str
    short: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(f"== {self.title}", flush=True)

    def at_most(self, what: str, figures: str, ratio: float, target: float) -> None:
        """Nothing; the ratio is printed and should not be above the target."""
        self._judge(what, figures, f"ratio {ratio:.2f}, target at most {target:g}", ratio <= target)

    def at_least(self, what: str, figures: str, ratio: float, target: float) -> None:
        """Nothing; the ratio is printed and should not be below the target."""
        self._judge(what, figures, f"ratio {ratio:.2f}, target at least {target:g}", ratio >= target)

    def note(self, what: str, figures: str, ratio: float) -> None:
        """Nothing; a ratio without a target is printed."""
        print(f"{what}: {figures}, ratio {ratio:.2f}, no target", flush=True)

    def _judge(self, what: str, figures: str, held: str, ok: bool) -> None:
        """Nothing; one line is printed, and what falls short is kept."""
        print(f"{what}: {figures}, {held}: {'ok' if ok else 'SHORT'}", flush=True)
        if not ok:
            self.short.append(what)

    def leave(self) -> NoReturn:
        """Never returns: the exit code tells whether anything fell short."""
        sys.exit(SHORT if self.short else 0)
