"""A pool of worker processes that can be killed: neither pyoxigraph nor torch knows a time limit.

`WorkerProcess` is one process that answers one job at a time; a time limit of `ask` uses it alone. `WorkerPool` keeps
several for a server: jobs wait for a free worker, and a worker that was killed is replaced.
"""

import asyncio
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
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from halfgraph.answering.sandbox import bound_memory, confine, end_with_parent
from halfgraph.errors import HalfgraphError, TimeLimit

BEGUN = b"+"  # sent before work on a job starts: only a job that was begun can have killed its worker
LENGTHS = struct.Struct(">QQ")  # of a message's head and of its body
STACK = 512 * 1024 * 1024  # the store recurses into long expressions; unused pages cost nothing
SPARE = 1  # workers beyond those that work at the same time, so that a killed one is replaced at once
MOST_KILLED = 2  # workers that one job may take down
PAUSE = 1.0  # seconds between attempts to start a worker
ABORTED = {-signal.SIGABRT, -signal.SIGSEGV}  # how the store ends when memory or stack run out
TOO_LARGE = "the query needs more memory than allowed"
ADVICE = "Tie more of its variables to known entities, or add a LIMIT."
T = TypeVar("T")


class Message(NamedTuple):
    """What processes send each other: a head that is written as JSON, and bytes."""

    head: Any
    body: bytes = b""


Handler = Callable[[Any], Message]
Load = Callable[[], tuple[Any, Handler]]  # runs in the worker: what it tells the parent, and what answers jobs


class WorkerDied(Exception):
    """The process of a worker has ended."""


class PoolBusy(HalfgraphError):
    """No worker can take a job in time."""

    advice = "Try again in a second."


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
            raise WorkerDied from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def exit_code(self) -> int | None:
        """The exit code of a process that is ending; a negative one is a signal's."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(1.0)
        return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._link.close()


class WorkerPool:
    """Workers of one kind, and the jobs that wait for them."""

    def __init__(self, load: Load, *, size: int, queue: int, seconds: float, memory: int | None) -> None:
        self.load, self.size, self.queue, self.seconds, self.memory = load, size, queue, seconds, memory
        self.waiting = self.replaced = 0
        self.running: set[asyncio.Task[Any]] = set()
        self._idle: asyncio.Queue[WorkerProcess] = asyncio.Queue()
        self._slots = asyncio.Semaphore(size)
        self._alive: set[WorkerProcess] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads = ThreadPoolExecutor(2 * (size + SPARE) + 1)

    @property
    def ready(self) -> int:
        return self._idle.qsize() + len(self.running)

    async def start(self) -> Any:
        """Return what the first worker tells when it is ready; the others start in the background."""
        ready = await self._start()
        for _ in range(self.size + SPARE - 1):
            self._start_in_background()
        return ready

    async def _start(self) -> Any:
        worker = WorkerProcess(self.load, self.memory)
        self._alive.add(worker)
        try:
            ready = await self._in_thread(worker.start)
        except HalfgraphError:
            self._alive.discard(worker)
            raise
        self._idle.put_nowait(worker)
        return ready

    async def _start_until_ready(self) -> None:
        while True:
            try:
                await self._start()
                return
            except HalfgraphError as error:
                sys.stderr.write(f"halfgraph: a worker did not start: {error}\n")
                await asyncio.sleep(PAUSE)

    def _start_in_background(self) -> None:
        task = asyncio.create_task(self._start_until_ready())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _in_thread(self, call: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    async def _replace(self, worker: WorkerProcess) -> None:
        self.replaced += 1
        self._alive.discard(worker)
        self._start_in_background()
        await self._in_thread(worker.kill)

    async def ask(self, job: Mapping[str, Any]) -> Message:
        """Return the answer to a job; if the caller is cancelled, a waiting job is dropped and a running one ends."""
        if self._slots.locked() and self.waiting >= self.queue:
            raise PoolBusy(f"{self.waiting} queries are waiting already")
        self.waiting += 1
        try:
            async with asyncio.timeout(self.seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise PoolBusy("the query waited as long as it may run") from None
        finally:
            self.waiting -= 1
        task = asyncio.create_task(self._run(job))
        self.running.add(task)
        task.add_done_callback(self._finish)
        return await asyncio.shield(task)

    def _finish(self, task: "asyncio.Task[Message]") -> None:
        self.running.discard(task)
        self._slots.release()
        if not task.cancelled():
            task.exception()  # retrieved here, since the caller may have left

    async def _run(self, job: Mapping[str, Any]) -> Message:
        """Ask a free worker within the time limit, and another one if that worker is killed.

        A worker that died before it began the job did not die of it; one that had begun may have.
        """
        killed = 0
        for _ in range(self.size + SPARE + MOST_KILLED):  # all idle workers may have been killed at once
            worker = await self._free()
            try:
                message = await self._in_thread(worker.ask, job, self.seconds)
            except TimeoutError:
                await self._replace(worker)
                raise TimeLimit(self.seconds, advice=ADVICE) from None
            except WorkerDied:
                code = await self._in_thread(worker.exit_code)
                await self._replace(worker)
                if code in ABORTED:
                    raise OutOfMemory(TOO_LARGE) from None
            else:
                self._idle.put_nowait(worker)
                return message
            killed += worker.begun
            if killed == MOST_KILLED:
                break
        raise PoolBusy("the processes that worked on this query have ended")

    async def _free(self) -> WorkerProcess:
        try:
            async with asyncio.timeout(self.seconds):
                while not (worker := await self._idle.get()).is_alive:
                    await self._replace(worker)
                return worker
        except TimeoutError:
            raise PoolBusy("no worker is ready") from None

    async def close(self) -> None:
        """Finish the running jobs, then end every worker."""
        if self.running:
            await asyncio.wait(self.running)
        for task in self._tasks:
            task.cancel()
        for worker in list(self._alive):
            worker.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)


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
        except HalfgraphError as error:
            _send(link, Message({"error": str(error)}))
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
