"""A server in a process of its own, for tests that speak HTTP."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PROGRAM = Path(sys.executable).parent / "halfgraph"


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    process: "subprocess.Popen[str]"
    address: str
    log: IO[str]

    def logged(self) -> str:
        """Output on stderr so far."""
        self.log.seek(0)
        return self.log.read()

    def workers(self) -> list[int]:
        """The process numbers of its workers."""
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in pids if "halfgraph.answering.workers" in _command(pid)]

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 60.0) -> int:
        """The exit code, after a signal."""
        self.process.send_signal(number)
        return self.process.wait(seconds)


def _command(pid: str) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


@contextlib.contextmanager
def running(run: Path, *options: str) -> Iterator[Running]:
    """A server of a run, ready to answer, and ended afterwards."""
    command = [str(PROGRAM), "serve", str(run), "--port", "0", *options]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            if found is None:  # the log is read only then: the server shares its position, and would write over it
                log.seek(0)
                raise AssertionError(log.read())
            yield Running(process, found.group().rstrip("/"), log)
        finally:
            process.kill()
            process.communicate()
