"""Read foreign files in a child process that may die: a file that needs too much memory or stack ends the child alone.

The child may take LEAST bytes of memory, and GROWTH times the bytes that it has read and found statements in, but for a
block never more than it has taken so far and LEAST; and SECONDS of computing time for each block. Memory is the address
space that the child has beyond the one that it was born with.
"""

import faulthandler
import gc
import io
import os
import pickle
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from halfgraph.errors import HalfgraphError, InputError

LEAST, GROWTH = 256 << 20, 64
BARREN = 16 << 20  # bytes without a statement after which a file is refused
BLOCK = 1 << 20  # bytes read at a time
SECONDS = 20  # of computing time for a block
STATUS = Path("/proc/self/statm")
CHECK = "Check that it is the file you meant."
TOO_LARGE = f"needs more memory than the limit, {LEAST >> 20} MB and {GROWTH} times what was read of it"
TOO_SLOW = f"takes more time than the limit, {SECONDS} s for {BLOCK >> 20} MB"
TOO_DEEP = "is nested too deeply: the parser ran out of stack"
DEATHS = {int(signal.SIGSEGV): TOO_DEEP, int(signal.SIGBUS): TOO_DEEP, int(signal.SIGXCPU): TOO_SLOW}


class _Child:
    """What a child process knows of itself: the connection to its parent, and its address space at the start."""

    link: Connection | None = None
    address_space = 0


def run_isolated(work: Callable[[], object], progress: Callable[[int], None] | None = None) -> None:
    """Do some work in a child process; errors are raised here, and `relayed` progress is shown here."""
    ours, theirs = Pipe(duplex=False)
    if not (child := os.fork()):
        ours.close()
        _work(work, theirs)
    theirs.close()
    path, status = "", None
    try:
        while status is None:
            match _receive(ours):
                case "file", path:
                    pass
                case "progress", count if progress:
                    progress(count)
                case "error", (kind, arguments, fields):
                    raise _error(kind, arguments, fields)
                case "end", _:
                    _, status = os.waitpid(child, 0)
    finally:
        ours.close()
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise InputError(DEATHS.get(os.WTERMSIG(status), TOO_LARGE), path=path, advice=CHECK)


def _receive(link: Connection) -> tuple[str, Any]:
    try:
        return link.recv()  # type: ignore[no-any-return]
    except EOFError:
        return "end", None


def _error(kind: type[BaseException], arguments: tuple[Any, ...], fields: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *arguments)  # not by its __init__, which makes the message from the fields
    error.args = arguments
    error.__dict__.update(fields)
    return error


def _work(work: Callable[[], object], link: Connection) -> None:
    """Do the work of a child process, tell the parent how it ended, and end."""
    try:
        faulthandler.disable()
        gc.freeze()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops the child
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where a crash would be described
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _Child.address_space = _address_space()
        _Child.link = link
        _send_error(link, work)
    finally:
        os._exit(0)


def _send_error(link: Connection, work: Callable[[], object]) -> None:
    try:
        set_limits(0)
        work()
        return
    except MemoryError:
        error: BaseException = InputError(TOO_LARGE, path=_Meter.latest, advice=CHECK)
    except RecursionError:
        error = InputError(TOO_DEEP, path=_Meter.latest, advice=CHECK)
    except Exception as other:
        error = other
    lift_limits()
    try:
        link.send(("error", (type(error), error.args, error.__dict__)))
    except (AttributeError, TypeError, pickle.PicklingError):
        link.send(("error", (HalfgraphError, (repr(error),), {})))


def relayed(progress: Callable[[int], None] | None) -> Callable[[int], None] | None:
    """Return a callback that shows progress in the parent, wherever it is called."""

    def relay(count: int) -> None:
        if _Child.link is not None:
            _Child.link.send(("progress", count))
        elif progress is not None:
            progress(count)

    return progress and relay


def set_limits(count: int) -> None:
    """Set the limits of a child process that has read `count` bytes with statements."""
    if _Child.link is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _set_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + SECONDS)
    if _Child.address_space:
        # Twice: a hash table that grows is copied. Otherwise many statements would allow any one after them to grow.
        taken = max(0, _address_space() - _Child.address_space)
        _set_limit(resource.RLIMIT_AS, _Child.address_space + LEAST + min(GROWTH * count, 2 * taken))


def _address_space() -> int:
    """The address space of this process in bytes; 0 where the system does not say."""
    return int(STATUS.read_text().split()[0]) * resource.getpagesize() if STATUS.is_file() else 0


def lift_limits() -> None:
    """Remove the limits of a child process, when it has read all files."""
    if _Child.link is not None:
        _set_limit(resource.RLIMIT_CPU, None)
        _set_limit(resource.RLIMIT_AS, None)


def _set_limit(what: int, wanted: int | None) -> None:
    _, hard = resource.getrlimit(what)
    soft = hard if wanted is None else wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(what, (soft, hard))


def metered(stream: Any, path: Path, mark: Callable[[], Any], *, barren: int | None = BARREN) -> io.BufferedReader:
    """Return a stream that is refused after `barren` bytes in which `mark` does not change."""
    return io.BufferedReader(_Meter(stream, path, mark, barren), BLOCK)


class _Meter(io.RawIOBase):
    """Counts the bytes of a stream, and compares them with the statements that they gave."""

    latest: Path | None = None  # the file that is read
    total = 0  # bytes with statements, of all files

    def __init__(self, stream: Any, path: Path, mark: Callable[[], Any], barren: int | None) -> None:
        self.stream, self.path, self.mark, self.barren = stream, path, mark, barren
        self.latest_mark, self.count = mark(), 0
        _Meter.latest = path
        if _Child.link is not None:
            _Child.link.send(("file", str(path)))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self.stream.readinto(buffer)
        self.count += count
        mark = self.mark()
        if mark != self.latest_mark or self.barren is None:
            _Meter.total, self.latest_mark, self.count = _Meter.total + self.count, mark, 0
            set_limits(_Meter.total)
        elif self.count > self.barren:
            problem = f"has no statement within {self.barren >> 20} MB, which is the limit"
            raise InputError(problem, path=self.path, advice=CHECK)
        return count
