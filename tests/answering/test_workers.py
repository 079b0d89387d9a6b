"""Worker processes: answers, time limits and deaths."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from halfgraph.answering.workers import Message, WorkerDied, WorkerProcess
from halfgraph.errors import FolderError, HalfgraphError


def handle(job):
    match job:
        case {"sleep": seconds}:
            time.sleep(seconds)
        case {"signal": number}:
            os.kill(os.getpid(), number)
            time.sleep(60)
        case {"connect": port}:
            try:
                socket.create_connection(("127.0.0.1", port))
            except PermissionError:
                return Message("refused")
        case {"repeat": count}:
            return Message(None, b"x" * count)
    return Message({"pid": os.getpid(), "job": job}, b"body")


def load():
    return {"hello": 1}, handle


def fail_to_load():
    raise FolderError("here", "is not a store", advice="Choose another.")


@pytest.fixture
def worker():
    process = WorkerProcess(load)
    assert process.start() == {"hello": 1}
    yield process
    process.kill()


def test_a_worker_answers_jobs_with_a_head_and_a_body(worker):
    first, second = (worker.ask({"text": "é\ud800"}, 30) for _ in range(2))
    assert first == second == Message({"pid": first.head["pid"], "job": {"text": "é\ud800"}}, b"body")
    assert first.head["pid"] != os.getpid()
    assert len(worker.ask({"repeat": 5_000_000}, 30).body) == 5_000_000


def test_a_job_beyond_its_time_raises_and_the_worker_can_be_killed(worker):
    with pytest.raises(TimeoutError):
        worker.ask({"sleep": 60}, 0.2)
    assert worker.begun
    worker.kill()
    assert not worker.is_alive


def test_a_worker_that_dies_says_by_which_signal(worker):
    with pytest.raises(WorkerDied) as death:
        worker.ask({"signal": signal.SIGABRT}, 30)
    assert death.value.code == -signal.SIGABRT


def test_a_worker_is_confined(worker):
    assert worker.ask({"connect": 9}, 30).head == "refused"


def test_an_error_while_loading_is_raised_with_its_text():
    process = WorkerProcess(fail_to_load)
    with pytest.raises(HalfgraphError, match="here: is not a store"):
        process.start()
    process.kill()


def test_a_worker_ends_with_its_parent_even_while_it_works(tmp_path):
    script = (
        "import sys; sys.path.append(sys.argv[1]); from test_workers import load\n"
        "from halfgraph.answering.workers import WorkerProcess\n"
        "w = WorkerProcess(load); w.start(); print(w.ask({}, 30).head['pid'], flush=True); w.ask({'sleep': 60}, 60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(Path(__file__).parent)], stdout=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 30
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return
            time.sleep(0.02)
        pytest.fail("the worker is still there")
