"""Limits on connections: a client that keeps the server waiting is dropped.

uvicorn limits neither the time that the head of a request takes nor the time that a client takes to read an answer.
"""

import asyncio
import ctypes
import os
import resource
import signal
import socket
import struct
from collections.abc import Iterable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from halfgraph.answering.pool import WorkerPool

MOST_CONNECTIONS = 1000  # beyond it, the one that has waited longest for its client is dropped
MOST_FILES = 4096  # open files: connections, workers and what they need
HEAD_SECONDS = 15.0  # for the head of a request, from the connection or from the last answer on
READ_SECONDS = 15.0  # for a client to read PACE bytes of an answer, or its rest
PACE = 65_536
KERNEL_BUFFER = 4 * PACE  # of unread bytes; the default grows to megabytes, within which reading cannot be noticed
MMAP_THRESHOLD = -3  # option of malloc
NO_LINGER = struct.pack("ii", 1, 0)
MOST_HELD = 200_000_000  # bytes of unfinished requests and unread answers, of all connections
FINISH_SECONDS, DROP_SECONDS = 6.0, 7.5  # after SIGTERM: until queries are stopped, and connections dropped


class GuardedProtocol(H11Protocol):
    """A connection that knows since when it has waited for its client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)
        self.since = self.moved = self.loop.time()  # of the last answer, and of the last PACE bytes that were read
        self.received = self.left = 0  # bytes of an unanswered request, and of an unread answer
        self.deferred = False
        if len(self.connections) > MOST_CONNECTIONS:
            make_room(self)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        super().data_received(data)
        if self.received > PACE:
            bound_held(_guarded(self.connections))

    def on_response_complete(self) -> None:
        self.since, self.received = self.loop.time(), 0
        self.deferred = self.flow.write_paused  # a next request waits until this answer is read
        if not self.deferred:
            super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        bound_held(_guarded(self.connections))

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.deferred:
            self.on_response_complete()

    @property
    def held(self) -> int:
        """Bytes of memory that this connection holds."""
        return self.received + self.transport.get_write_buffer_size()

    def waiting(self) -> tuple[float, float] | None:
        """Since when this connection has waited for its client and how long it may, or None if the client waits."""
        if self.transport.get_write_buffer_size():
            return self.moved, READ_SECONDS
        if self.cycle is None or self.cycle.response_complete:
            return self.since, HEAD_SECONDS
        return (self.since, float("inf")) if self.cycle.more_body else None  # BodyLimit knows the time of a body

    def note_progress(self) -> None:
        left = self.transport.get_write_buffer_size()
        if not left or left <= self.left - PACE:
            self.left, self.moved = left, self.loop.time()
        self.left = max(left, self.left)

    def drop(self) -> None:
        """End this connection at once; what its client has not read is given up, by the kernel too."""
        self.connections.discard(self)
        if self.transport.get_write_buffer_size():
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.transport.abort()


def make_room(newest: GuardedProtocol) -> None:
    """Drop the connection that has waited longest for its client, or the newest one if none waits."""
    found = _longest_waiting(other for other in _guarded(newest.connections) if other is not newest)
    (found[0] if found else newest).drop()


def drop_stalled(connections: Iterable[GuardedProtocol]) -> None:
    """Drop the connections that have waited for their clients as long as they may."""
    for connection in connections:
        connection.note_progress()
        waiting = connection.waiting()
        if waiting is not None and connection.loop.time() - waiting[0] > waiting[1]:
            connection.drop()


def bound_held(connections: list[GuardedProtocol]) -> None:
    """Drop connections, the longest-waiting first, until the others hold no more than they may."""
    held = sum(connection.held for connection in connections)
    if held > MOST_HELD:
        for connection in _longest_waiting(connections):
            if held > MOST_HELD:
                held -= connection.held
                connection.drop()


def _longest_waiting(connections: Iterable[GuardedProtocol]) -> list[GuardedProtocol]:
    """The connections that wait for their clients, the longest-waiting first."""
    times = ((waiting[0], connection) for connection in connections if (waiting := connection.waiting()) is not None)
    return [connection for _, connection in sorted(times, key=lambda pair: pair[0])]


def _guarded(connections: Iterable[Any]) -> list[GuardedProtocol]:
    return [connection for connection in connections if isinstance(connection, GuardedProtocol)]


class GuardedServer(uvicorn.Server):
    """A server that drops stalled connections, and that ends within ten seconds of a signal."""

    def __init__(self, config: uvicorn.Config, workers: WorkerPool) -> None:
        super().__init__(config)
        self.workers = workers
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, MOST_FILES)), hard))
        if set_option := getattr(ctypes.CDLL(None), "mallopt", None):  # glibc would keep the memory of large answers
            set_option(MMAP_THRESHOLD, 1_000_000)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # once a second
            drop_stalled(_guarded(self.server_state.connections))
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the requests under way finish; then answer them with 503, and drop clients that do not read that."""
        loop = asyncio.get_running_loop()
        loop.call_later(FINISH_SECONDS, self.workers.stop)
        loop.call_later(DROP_SECONDS, self._drop_all)
        await super().shutdown(sockets)

    def _drop_all(self) -> None:
        for connection in _guarded(self.server_state.connections):
            connection.drop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop at the first signal, and end at once at the second."""
        if self.should_exit:
            self.workers.kill()
            os._exit(128 + sig)
        super().handle_exit(signal.Signals(sig), frame)
