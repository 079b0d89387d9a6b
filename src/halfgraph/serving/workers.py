"""The workers as the server sees them: jobs wait for a free one; one that takes too long is killed and replaced."""

import asyncio
import json
import multiprocessing
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from halfgraph.errors import HalfgraphError
from halfgraph.serving.limits import Limits
from halfgraph.serving.problems import Problem, Reply, busy, too_much
from halfgraph.serving.worker import BEGUN, LENGTHS, Load, work

SPAWN = multiprocessing.get_context("spawn")
SPARE = 1  # a worker more than work at the same time, so that a killed one is replaced at once
RISKED = 2  # workers that a query may end, whoever ended them
PAUSE = 1.0  # seconds between attempts to start a worker that does not start
ABORTED = {-signal.SIGABRT, -signal.SIGSEGV}  # what the store does when it is refused memory, or out of stack
GONE = (asyncio.IncompleteReadError, ConnectionError)


class Worker:
    """A process with a socket to it."""

    def __init__(self, load: Load, limits: Limits) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = SPAWN.Process(target=work, args=(load, limits, theirs), daemon=True)
            self.process.start()
        self.link = ours
        self.writer: asyncio.StreamWriter | None = None
        self.begun = False  # whether it works, or has worked, on the job it was given last

    async def start(self) -> Reply:
        """What the process says when it is ready, or why it cannot be."""
        self.reader, self.writer = await asyncio.open_connection(sock=self.link)
        return await self._receive()

    async def ask(self, job: Mapping[str, Any]) -> Reply:
        """The reply to a job."""
        assert self.writer is not None
        self.begun = False
        head = json.dumps(job).encode()
        self.writer.write(LENGTHS.pack(len(head), 0) + head)
        await self.writer.drain()
        await self.reader.readexactly(len(BEGUN))
        self.begun = True
        return await self._receive()

    async def _receive(self) -> Reply:
        """The next reply; an error where the process has died."""
        lengths = LENGTHS.unpack(await self.reader.readexactly(LENGTHS.size))
        status, media, headers = json.loads(await self.reader.readexactly(lengths[0]))
        return Reply(await self.reader.readexactly(lengths[1]), media, status, headers)

    def fault(self) -> int | None:
        """How a process that has hung up has ended."""
        self.process.join(1.0)
        return self.process.exitcode

    def kill(self) -> None:
        """Nothing; the process is ended, and its socket closed."""
        self.process.kill()
        if self.writer is None:
            self.link.close()
        else:
            self.writer.close()


class Workers:
    """Some workers, and the jobs that wait for them."""

    def __init__(self, load: Load, limits: Limits) -> None:
        self.load, self.limits = load, limits
        self.idle: asyncio.Queue[Worker] = asyncio.Queue()
        self.slots = asyncio.Semaphore(limits.workers)
        self.waiting = self.replaced = 0
        self.alive: set[Worker] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.running: set[asyncio.Task[Any]] = set()

    @property
    def ready(self) -> int:
        """How many workers have opened the run and are alive, as far as is known."""
        return self.idle.qsize() + len(self.running)

    async def start(self) -> Path:
        """The graph's folder, when one worker is ready and the others begin; the first builds the store if need be."""
        reply = await self._start()
        if reply.status != 200:
            raise HalfgraphError(_message(reply))
        for _ in range(self.limits.workers + SPARE - 1):
            self._in_background(self._start_again())
        return Path(reply.body.decode())

    async def _start(self) -> Reply:
        """What a new worker says when it is ready, or why it is not."""
        worker = Worker(self.load, self.limits)
        self.alive.add(worker)
        try:
            reply = await worker.start()
        except GONE:
            reply = Problem(500, "a worker process ended while it opened the run").reply()
        if reply.status == 200:
            self.idle.put_nowait(worker)
        else:
            self._end(worker)
        return reply

    async def _start_again(self) -> None:
        """Nothing; tries until there is one more worker."""
        while (reply := await self._start()).status != 200:
            sys.stderr.write(f"halfgraph: a worker did not start: {_message(reply)}\n")
            await asyncio.sleep(PAUSE)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _end(self, worker: Worker) -> None:
        """Nothing; a worker is no more."""
        worker.kill()
        self.alive.discard(worker)

    def _replace(self, worker: Worker) -> None:
        """Nothing; a worker is ended and a new one begins."""
        self._end(worker)
        self.replaced += 1
        self._in_background(self._start_again())

    async def ask(self, job: Mapping[str, Any]) -> Reply:
        """The reply to a job; if the asker leaves, it is taken back while it waits, and else ends by itself."""
        if self.slots.locked() and self.waiting >= self.limits.queue:
            raise busy(f"{self.waiting} queries are waiting already")
        self.waiting += 1
        try:
            async with asyncio.timeout(self.limits.time):
                await self.slots.acquire()
        except TimeoutError:
            raise busy("the query has waited as long as it may run") from None
        finally:
            self.waiting -= 1
        task = asyncio.create_task(self._run(job))
        self.running.add(task)
        task.add_done_callback(self._ran)
        return await asyncio.shield(task)

    def _ran(self, task: "asyncio.Task[Reply]") -> None:
        """Nothing; the place of a job is free again, whether or not somebody still waits for its reply."""
        self.running.discard(task)
        self.slots.release()
        if not task.cancelled():
            task.exception()  # looked at here, since nobody else may

    async def _run(self, job: Mapping[str, Any]) -> Reply:
        """The reply of a free worker, within the time limit; if somebody kills the worker, that of another one.

        A worker may have been killed before it took the job, which is then as good as new; one that has begun
        may have died of the job, so that only one more is put at risk.
        """
        risked = 0
        for _ in range(self.limits.workers + SPARE + RISKED):  # all that wait may have been killed at once
            worker = await self._free()
            try:
                async with asyncio.timeout(self.limits.time):
                    reply = await worker.ask(job)
            except TimeoutError:
                self._replace(worker)
                advice = "Tie more of its variables to known entities, or add a LIMIT."
                raise Problem(504, f"the query was stopped after {self.limits.time:g} s", advice=advice) from None
            except GONE:
                fault = await asyncio.to_thread(worker.fault)
                self._replace(worker)
                if fault in ABORTED:
                    raise too_much() from None
            else:
                self.idle.put_nowait(worker)
                return reply
            risked += worker.begun
            if risked == RISKED:
                break
        raise busy("the processes that worked on this query have ended")

    async def _free(self) -> Worker:
        """A worker that has nothing to do; dead ones are replaced."""
        try:
            async with asyncio.timeout(self.limits.time):
                while not (worker := await self.idle.get()).process.is_alive():
                    self._replace(worker)
                return worker
        except TimeoutError:
            raise busy("no worker is ready") from None

    async def close(self) -> None:
        """Nothing; what runs is finished, then every worker is ended."""
        if self.running:
            await asyncio.wait(self.running)
        for task in self.tasks:
            task.cancel()
        for worker in list(self.alive):
            self._end(worker)
            worker.process.join()


def _message(reply: Reply) -> str:
    """What a reply says is wrong."""
    return str(json.loads(reply.body)["error"]["message"])
