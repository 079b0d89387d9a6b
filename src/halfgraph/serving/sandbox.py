"""What a worker is kept from: the network, other programs, and all of the memory.

A query text that calls another server is refused before the store sees it. This holds even if that check is wrong.
Linux only (seccomp, which needs no rights); elsewhere nothing is done.
"""

import ctypes
import multiprocessing
import os
import platform
import re
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

# The numbers of socket, execve and execveat, and of the architecture as the kernel's audit knows it.
CALLS = {"x86_64": (0xC000003E, (41, 59, 322)), "aarch64": (0xC00000B7, (198, 221, 281))}
OTHER_NUMBERS = 0x40000000  # x86's second set of numbers for the same calls
NO_NEW_PRIVILEGES, SECCOMP, FILTER, PARENT_DEATH = 38, 22, 2, 1
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # of Berkeley's packet filter
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 13  # with EACCES


def confine() -> bool:
    """Whether this process, and all that it starts, can from now on neither open sockets nor run programs."""
    if sys.platform != "linux" or platform.machine() not in CALLS:
        return False
    audit, refused = CALLS[platform.machine()]
    program = _program(audit, refused)
    buffer = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    kernel = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if kernel.prctl(NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero):
        return False
    return bool(kernel.prctl(SECCOMP, ctypes.c_ulong(FILTER), ctypes.c_char_p(described), zero, zero) == 0)


def _program(audit: int, refused: Sequence[int]) -> bytes:
    """The filter: another architecture's calls and some of ours are refused, the rest is allowed."""
    count = len(refused)
    lines = [(LOAD, 0, 0, 4), (EQUAL, 0, count + 3, audit), (LOAD, 0, 0, 0), (AT_LEAST, count + 1, 0, OTHER_NUMBERS)]
    lines += [(EQUAL, count - place, 0, number) for place, number in enumerate(refused)]
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def end_with_parent() -> None:
    """Nothing; when the process that started this one is killed, this one is too, whatever it works on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH, ctypes.c_ulong(signal.SIGKILL))
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid != os.getppid():  # it was killed before the kernel was told
        os._exit(1)


def bound_memory(megabytes: int) -> None:
    """Nothing; this process may take so much memory more than it has; the store aborts when it is refused any."""
    status = Path("/proc/self/status")
    found = re.search(r"VmData:\s+(\d+) kB", status.read_text()) if status.is_file() else None
    if found is not None:
        most = int(found[1]) * 1024 + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
