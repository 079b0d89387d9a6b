"""A pool of worker processes for a server: jobs wait in a fair queue by client, and a killed worker is replaced.

One client can hold `size` workers at most, and there is one worker more, so that another client always has one. A
worker that was killed because of a client's job counts as held by it until its replacement is ready.
"""

import asyncio
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from halfgraph.answering.workers import TOO_LARGE, Load, Message, OutOfMemory, WorkerDied, WorkerProcess
from halfgraph.errors import HalfgraphError, TimeLimit

SPARE = 1  # workers beyond those that one client can hold, unless a pool has one client only
MOST_KILLED = 2  # workers that one job may take down
LEAST_WAIT = 15.0  # seconds that a job may wait, if its time limit is shorter: workers may have to start
PAUSE = 1.0  # seconds between attempts to start a worker
ABANDONED = 0.5  # seconds that a job goes on after its caller has left; to replace a worker takes longer
ABORTED = {-signal.SIGABRT, -signal.SIGSEGV}  # how the store ends when memory or stack run out
NOT_STARTED = "the server cannot open its run or graph at the moment; its log says why"
ADVICE = "Tie more of its variables to known entities, or add a LIMIT."
T = TypeVar("T")
Turn = asyncio.Future[WorkerProcess]


class PoolBusy(HalfgraphError):
    """No worker can take a job in time."""

    advice = "Try again in a second."


class WorkerPool:
    """Workers of one kind, and the jobs that wait for them."""

    def __init__(
        self, load: Load, *, size: int, queue: int, seconds: float, memory: int | None, spare: int = SPARE
    ) -> None:
        self.load, self.size, self.queue, self.seconds, self.memory = load, size, queue, seconds, memory
        self.spare = spare
        self.replaced = 0
        self.running: set[asyncio.Task[Message]] = set()
        self._idle: deque[WorkerProcess] = deque()
        self._waiting: dict[str, deque[Turn]] = {}  # by client; the client that was served last is the last
        self._held: Counter[str] = Counter()  # workers by client
        self._alive: set[WorkerProcess] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads = ThreadPoolExecutor(2 * (size + spare) + 1)
        self._stopped = False
        self._problem = ""  # why no worker can start at the moment

    @property
    def ready(self) -> int:
        return len(self._idle) + len(self.running)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def start(self) -> Any:
        """Return what the first worker tells when it is ready; the others start in the background."""
        ready = await self._start()
        for _ in range(self.size + self.spare - 1):
            self._in_background(self._start_until_ready())
        return ready

    async def _start(self) -> Any:
        worker = WorkerProcess(self.load, self.memory)
        self._alive.add(worker)
        try:
            ready = await self._in_thread(worker.start)
        except HalfgraphError:
            self._alive.discard(worker)
            raise
        self._problem = ""
        self._idle.append(worker)
        self._dispatch()
        return ready

    async def _start_until_ready(self) -> None:
        while True:
            try:
                await self._start()
                return
            except HalfgraphError as error:
                self._note(str(error))
                await asyncio.sleep(PAUSE)

    def _note(self, problem: str) -> None:
        """Log once why workers do not start, and refuse the waiting jobs if there are no others."""
        if problem != self._problem:
            sys.stderr.write(f"halfgraph: a worker did not start: {problem}\n")
            self._problem = problem
        if not self.ready:
            self._refuse_waiting(NOT_STARTED)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _in_thread(self, call: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    async def ask(self, job: Mapping[str, Any], client: str = "") -> Message:
        """Return the answer to a job; if the caller is cancelled, the job is dropped or stopped."""
        waiting = len(self._waiting.get(client, ()))
        if self._stopped:
            raise PoolBusy("the server is stopping")
        if self._problem and not self.ready:
            raise PoolBusy(NOT_STARTED)
        if waiting + self._held[client] >= self.queue + self.size:
            raise PoolBusy(f"{waiting} queries from here are waiting already")
        worker = await self._turn(client)
        task = asyncio.create_task(self._run(job, client, worker))
        self.running.add(task)
        task.add_done_callback(self._finish)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise PoolBusy("the server is stopping") from None
            asyncio.get_running_loop().call_later(ABANDONED, task.cancel)
            raise

    def _finish(self, task: "asyncio.Task[Message]") -> None:
        self.running.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved here, since the caller may have left

    async def _turn(self, client: str) -> WorkerProcess:
        """Wait for a worker."""
        turn: Turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._dispatch()
        try:
            async with asyncio.timeout(max(self.seconds, LEAST_WAIT)):
                return await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            self._withdraw(client, turn)
            if isinstance(error, TimeoutError):
                raise PoolBusy("no worker was free in time") from None
            raise

    def _withdraw(self, client: str, turn: Turn) -> None:
        """Take a job out of the queue, or give back the worker that it got at the same moment."""
        if turn.done() and not turn.cancelled():
            if turn.exception() is None:
                self._release(client, turn.result())
            return
        turns = self._waiting.pop(client, deque())
        if rest := [other for other in turns if other is not turn]:
            self._waiting[client] = deque(rest)

    def _dispatch(self) -> None:
        """Give idle workers to waiting jobs, first to the client that holds the fewest."""
        while self._idle and (able := [client for client in self._waiting if self._may_hold(client)]):
            worker = self._idle.popleft()
            if not worker.is_alive:
                self._replace(worker)
                continue
            client = min(able, key=lambda client: self._held[client])
            turns = self._waiting.pop(client)
            turn = turns.popleft()
            if turns:
                self._waiting[client] = turns
            if turn.cancelled():
                self._idle.appendleft(worker)
                continue
            self._held[client] += 1
            turn.set_result(worker)

    def _may_hold(self, client: str) -> bool:
        return self._held[client] < self.size

    def _release(self, client: str | None, worker: WorkerProcess | None = None) -> None:
        """End a client's hold on a worker, which may be idle now."""
        if client is not None:
            self._held[client] -= 1
            if not self._held[client]:
                del self._held[client]
        if worker is not None:
            self._idle.append(worker)
        self._dispatch()

    def _replace(self, worker: WorkerProcess, client: str | None = None) -> None:
        """Kill a worker and start another one, which the client holds until then."""
        self.replaced += 1
        if not self._stopped:
            self._in_background(self._restart(worker, client))

    async def _restart(self, worker: WorkerProcess, client: str | None) -> None:
        await self._in_thread(worker.kill)
        self._alive.discard(worker)
        await self._start_until_ready()
        self._release(client)

    async def _run(self, job: Mapping[str, Any], client: str, worker: WorkerProcess) -> Message:
        """Ask a worker within the time limit, and another one if that worker is killed.

        A worker that died before it began the job did not die of it; one that had begun may have.
        """
        killed = 0
        for _ in range(self.size + self.spare + MOST_KILLED):  # all idle workers may have been killed at once
            try:
                message = await self._in_thread(worker.ask, job, self.seconds)
            except TimeoutError:
                self._replace(worker, client)
                raise TimeLimit(self.seconds, advice=ADVICE) from None
            except asyncio.CancelledError:
                self._replace(worker, client)
                raise
            except WorkerDied as error:
                if worker.begun:
                    self._replace(worker, client)
                else:
                    self._release(client)
                    self._replace(worker)
                if error.code in ABORTED:
                    raise OutOfMemory(TOO_LARGE) from None
            else:
                self._release(client, worker)
                return message
            killed += worker.begun
            if killed == MOST_KILLED:
                break
            worker = await self._turn(client)
        raise PoolBusy("the processes that worked on this query have ended")

    def stop(self) -> None:
        """Refuse all jobs from now on, the waiting and the running ones too."""
        self._stopped = True
        self._refuse_waiting("the server is stopping")
        for task in [*self._tasks, *self.running]:
            task.cancel()

    def _refuse_waiting(self, reason: str) -> None:
        for turn in [turn for turns in self._waiting.values() for turn in turns if not turn.done()]:
            turn.set_exception(PoolBusy(reason))
        self._waiting.clear()

    def kill(self) -> None:
        """End every worker at once."""
        for worker in list(self._alive):
            worker.kill()

    async def close(self) -> None:
        """Stop all jobs and end every worker."""
        self.stop()
        if self.running:
            await asyncio.wait(self.running)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)
