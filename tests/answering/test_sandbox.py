"""A confined process opens no sockets and runs no programs, and takes no more memory than it may."""

import subprocess
import sys

import pytest

ASKING = """
import socket, subprocess
from halfgraph.answering.sandbox import bound_memory, confine
from pyoxigraph import Store
assert confine()
"""


def tried(script: str) -> str:
    """Output of a script in the sandbox."""
    found = subprocess.run([sys.executable, "-c", ASKING + script], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.mark.parametrize(
    "deed",
    [
        "socket.socket()",
        "socket.create_connection(('127.0.0.1', 9))",
        "subprocess.run(['true'])",
        "list(Store().query('SELECT * { SERVICE <http://127.0.0.1:8000/> { ?s ?p ?o } }'))",
    ],
)
def test_a_confined_process_is_refused_the_network_and_other_programs(deed):
    assert tried(f"try: {deed}\nexcept PermissionError: print('refused')") == "refused"


def test_a_confined_process_still_reads_and_answers():
    assert tried("print(bool(Store().query('ASK {}')), open('/proc/self/comm').read() != '')") == "True True"


def test_memory_beyond_the_bound_is_refused():
    script = "bound_memory(200); a = bytearray(100_000_000)"
    assert tried(f"{script}\ntry: b = bytearray(200_000_000)\nexcept MemoryError: print('no')") == "no"
