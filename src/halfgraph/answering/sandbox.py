"""The sandbox of a worker: no network, no other programs, bounded memory.

A query that calls another server is refused before the store sees it; the sandbox holds even if that check fails.
Linux only (seccomp, which needs no privileges); elsewhere the functions do nothing.
"""

import ctypes
import os
import platform
import re
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

# By machine: the audit number of the architecture, and the system calls socket, execve and execveat.
CALLS = {"x86_64": (0xC000003E, (41, 59, 322)), "aarch64": (0xC00000B7, (198, 221, 281))}
OTHER_NUMBERS = 0x40000000  # the x32 numbers of the same calls
NO_NEW_PRIVILEGES, SECCOMP, FILTER, PARENT_DEATH = 38, 22, 2, 1
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of a packet filter
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 13  # with EACCES


def confine() -> bool:
    """Forbid this process to open sockets and to run programs; return whether that worked."""
    if sys.platform != "linux" or platform.machine() not in CALLS:
        return False
    audit, refused = CALLS[platform.machine()]
    program = _program(audit, refused)
    buffer = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    kernel = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if kernel.prctl(NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero):
        return False
    return bool(kernel.prctl(SECCOMP, ctypes.c_ulong(FILTER), ctypes.c_char_p(description), zero, zero) == 0)


def _program(audit: int, refused: Sequence[int]) -> bytes:
    """The filter program: refuse the given calls and those of another architecture, allow the rest."""
    count = len(refused)
    lines = [(LOAD, 0, 0, 4), (EQUAL, 0, count + 3, audit), (LOAD, 0, 0, 0), (AT_LEAST, count + 1, 0, OTHER_NUMBERS)]
    lines += [(EQUAL, count - index, 0, number) for index, number in enumerate(refused)]
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, whatever it is working on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH, ctypes.c_ulong(signal.SIGKILL))
    if parent != os.getppid():  # it ended before the kernel was asked
        os._exit(1)


def bound_memory(megabytes: int) -> None:
    """Let this process allocate at most so many megabytes more; the store aborts when it is refused memory."""
    status = Path("/proc/self/status")
    data = re.search(r"VmData:\s+(\d+) kB", status.read_text()) if status.is_file() else None
    if data is not None:
        most = int(data[1]) * 1024 + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
