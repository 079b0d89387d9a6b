"""A worker process: it opens the run once, takes one job at a time from a socket, and ends when the socket closes."""

import contextlib
import json
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from halfgraph.errors import HalfgraphError
from halfgraph.serving.limits import Limits
from halfgraph.serving.problems import Problem, Reply, problem_of, too_much
from halfgraph.serving.sandbox import bound_memory, confine, end_with_parent

if TYPE_CHECKING:
    from halfgraph.answering.engine import Engine
    from halfgraph.serving.tasks import Desk

Load = Callable[[], "Engine"]
BEGUN = b"+"  # what is sent before a job is worked on; one that was not begun is no cause of its worker's end
LENGTHS = struct.Struct(">IQ")  # of the head, which is JSON, and of the body
STACK = 512 * 1024 * 1024  # the store calls itself at each operator of a long expression; pages unused cost nothing


def work(load: Load, limits: Limits, link: socket.socket) -> None:
    """Nothing; answers jobs until the server hangs up. Signals of the terminal are for the server."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()
    threading.stack_size(STACK)
    thread = threading.Thread(target=_work, args=(load, limits, link))
    thread.start()
    thread.join()


def _work(load: Load, limits: Limits, link: socket.socket) -> None:
    """Nothing; everything that touches the store and the model happens in this one thread."""
    from halfgraph.serving.tasks import Desk  # here, since the server itself does without torch

    with contextlib.suppress(ConnectionError), link, link.makefile("rwb") as stream:
        try:
            desk = Desk(_opened(load, limits), limits)
        except HalfgraphError as error:
            _send(stream, problem_of(error).reply())
            return
        _send(stream, Reply(str(desk.engine.graph.path).encode()))
        while head := stream.read(LENGTHS.size):
            length, _ = LENGTHS.unpack(head)
            job = json.loads(stream.read(length))
            stream.write(BEGUN)
            stream.flush()
            _send(stream, answer(desk, job))


def _opened(load: Load, limits: Limits) -> "Engine":
    """The engine on one thread, with its store open; after that, neither network nor programs."""
    import torch

    torch.set_num_threads(1)
    engine = load()
    assert engine.facts.store is not None
    bound_memory(limits.memory)
    confine()
    return engine


def answer(desk: "Desk", job: Mapping[str, Any]) -> Reply:
    """The reply to a job; our own errors are the asker's, any other is ours and is told on stderr."""
    from halfgraph.serving.tasks import TASKS

    try:
        return TASKS[job["task"]](desk, job)
    except Problem as problem:
        return problem.reply()
    except HalfgraphError as error:
        return problem_of(error).reply()
    except (MemoryError, RecursionError):
        return too_much().reply()
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return Problem(500, "halfgraph has made a mistake; its log says more").reply()


def _send(stream: Any, reply: Reply) -> None:
    """Nothing; a reply is sent."""
    head = json.dumps([reply.status, reply.media, dict(reply.headers)]).encode()
    stream.write(LENGTHS.pack(len(head), len(reply.body)) + head)
    stream.write(reply.body)
    stream.flush()
