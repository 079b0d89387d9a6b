"""A worker process, which can be killed: neither pyoxigraph nor torch knows a time limit.

It answers one job at a time. A time limit of `ask` uses one worker; a server has a pool of them (pool.py).
"""

import contextlib
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from halfgraph.answering.sandbox import bound_memory, confine, end_with_parent
from halfgraph.errors import HalfgraphError

BEGUN = b"+"  # sent before work on a job starts: only a job that was begun can have killed its worker
LENGTHS = struct.Struct(">QQ")  # of a message's head and of its body
STACK = 512 * 1024 * 1024  # the store recurses into long expressions; unused pages cost nothing
TOO_LARGE = "the query needs more memory than allowed"


class Message(NamedTuple):
    """What processes send each other: a head that is written as JSON, and bytes."""

    head: Any
    body: bytes = b""


Handler = Callable[[Any], Message]
Load = Callable[[], tuple[Any, Handler]]  # runs in the worker: what it tells the parent, and what answers jobs


class WorkerDied(Exception):
    """The process of a worker has ended, with this exit code; a negative one is a signal's."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        super().__init__(code)


class OutOfMemory(HalfgraphError):
    """A job needs more memory than it may have."""

    advice = "Ask for less, or add a LIMIT."


class WorkerProcess:
    """A process that answers one job at a time; after its start it is confined by the sandbox."""

    def __init__(self, load: Load, memory: int | None = None) -> None:
        self._link, theirs = socket.socketpair()
        with theirs:
            # Not multiprocessing: its spawn would run the caller's main module again.
            code = f"import sys; sys.path[:] = {sys.path!r}; from halfgraph.answering.workers import main; main()"
            command = [sys.executable, "-c", code, str(theirs.fileno()), str(os.getpid())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        _send(self._link, Message(None, pickle.dumps((load, memory))))
        self.begun = False  # whether work on the latest job has begun

    def start(self) -> Any:
        """Return what the worker tells once it is loaded; raise HalfgraphError if it cannot load."""
        try:
            head = _receive(self._link).head
        except ConnectionError:
            head = {"error": "a worker process ended while it loaded"}
        if "error" in head:
            self.kill()
            raise HalfgraphError(head["error"])
        return head["ready"]

    def ask(self, job: Any, seconds: float) -> Message:
        """Return the answer to a job; raise TimeoutError when the time is over, WorkerDied if the process ends."""
        deadline = time.monotonic() + seconds
        self.begun = False
        self._link.settimeout(seconds)
        try:
            _send(self._link, Message(job))
            _read(self._link, len(BEGUN), deadline)
            self.begun = True
            return _receive(self._link, deadline)
        except ConnectionError as error:
            raise WorkerDied(self._exit_code()) from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def _exit_code(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(1.0)
        return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._link.close()


def main() -> None:
    """Run a worker: load what the parent sends, then answer its jobs until it closes the connection."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to the parent too
        signal.signal(number, signal.SIG_IGN)
    end_with_parent(int(sys.argv[2]))
    threading.stack_size(STACK)
    thread = threading.Thread(target=_serve, args=(socket.socket(fileno=int(sys.argv[1])),))
    thread.start()
    thread.join()


def _serve(link: socket.socket) -> None:
    """Load and answer in this one thread: results of pyoxigraph must not leave it."""
    with contextlib.suppress(ConnectionError), link:
        load, memory = pickle.loads(_receive(link).body)
        try:
            ready, handle = load()
        except (HalfgraphError, OSError) as error:  # OSError: a folder that is removed meanwhile
            message = error.for_command_line if isinstance(error, HalfgraphError) else str(error)
            _send(link, Message({"error": message}))
            return
        if memory is not None:
            bound_memory(memory)
        confine()
        _send(link, Message({"ready": ready}))
        while True:
            job = _receive(link).head
            link.sendall(BEGUN)
            _send(link, handle(job))


def _send(link: socket.socket, message: Message) -> None:
    head = json.dumps(message.head).encode()
    link.sendall(LENGTHS.pack(len(head), len(message.body)) + head)
    link.sendall(message.body)


def _receive(link: socket.socket, deadline: float | None = None) -> Message:
    lengths = LENGTHS.unpack(_read(link, LENGTHS.size, deadline))
    head, body = (_read(link, length, deadline) for length in lengths)
    return Message(json.loads(head), body)


def _read(link: socket.socket, count: int, deadline: float | None) -> bytes:
    """Read so many bytes; raise TimeoutError after the deadline, ConnectionError at the end of the stream."""
    buffer, done = bytearray(count), 0
    while done < count:
        if deadline is not None:
            link.settimeout(max(deadline - time.monotonic(), 1e-3))
        received = link.recv_into(memoryview(buffer)[done:])
        if not received:
            raise ConnectionError("the other process has closed the connection")
        done += received
    return bytes(buffer)
