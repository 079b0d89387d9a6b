"""Let each write of a command fail once, by a library that is loaded before the system's (failing_writes.c).

`outcomes` starts this file as a program with that library: it runs a command again and again, each time in a new
process and in a fresh copy of a folder, and prints what came of it as a line of JSON.
"""

import errno
import json
import mmap
import os
import shutil
import struct
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from halfgraph.cli import main as halfgraph

ERRORS = (errno.ENOSPC, errno.EIO)
SOURCE = Path(__file__).with_suffix(".c")
STATE = struct.Struct("lll")
TENSORS = ("model.safetensors", "links.safetensors")


@dataclass(frozen=True)
class Attempt:
    """What a command did when one of its writes failed, and what the same command did afterwards."""

    at: int
    error: str
    code: int
    said: str
    damaged: list[str]  # files that do not fit their manifest
    left: list[str]  # hidden files
    made: bool  # whether the folder that the command makes or changes exists
    again: int  # the exit code of the same command afterwards
    equal: bool  # whether its files are then those of a command without a failure


def outcomes(folder: Path, place: Path, made: str, arguments: list[str], most: int) -> list[Attempt]:
    """Run a command in at most `most` copies of a folder, and let one write fail in each, from the first to the last.

    `made` is the folder that the command makes or changes.
    """
    library, state = place / "failing_writes.so", place / "state"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    state.write_bytes(STATE.pack(0, 0, 0))
    names = {"LD_PRELOAD": library, "FAIL_STATE": state, "FAIL_UNDER": place / "copy"}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **{name: str(value) for name, value in names.items()}}
    command = [sys.executable, __file__, *map(str, (folder, place, made, most)), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [Attempt(**json.loads(line)) for line in done.stdout.splitlines()]


def main(folder: Path, place: Path, made: str, most: int, arguments: list[str]) -> None:
    """Print an attempt for each of the writes that fail."""
    with (place / "state").open("r+b") as file:
        state = mmap.mmap(file.fileno(), STATE.size)
    copy = place / "copy"

    def attempt(words: list[str], at: int = 0, error: int = 0) -> tuple[int, str]:
        state[:] = STATE.pack(0, at, error)
        return _run(copy, words)

    def renew() -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)

    renew()
    code, said = attempt(arguments)
    assert code == 0, said
    total, whole = STATE.unpack(state[:])[0], _content(copy / made)
    assert whole, "the command makes nothing"
    chosen = sorted({1 + number * (total - 1) // max(most - 1, 1) for number in range(min(most, total))})
    for number, at in enumerate(chosen):
        renew()
        error = ERRORS[number % 2]
        code, said = attempt(arguments, at, error)
        left = [str(path.relative_to(copy)) for path in copy.rglob(".*")]
        exists = (copy / made).exists()
        fresh = "--out" not in arguments or "--resume" in arguments
        again = 0 if exists and not fresh else attempt(arguments)[0]
        damaged = _damaged(copy / made) if exists else []
        result = Attempt(
            at, os.strerror(error), code, said, damaged, left, exists, again, _content(copy / made) == whole
        )
        sys.stdout.write(json.dumps(asdict(result)) + "\n")


def _run(folder: Path, arguments: list[str]) -> tuple[int, str]:
    """Run a command in a child process; return its exit code and what it printed on stderr."""
    ours, theirs = os.pipe()
    if not (child := os.fork()):
        try:
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(theirs, 2)
            os.close(ours)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
            halfgraph(arguments)
        except SystemExit as leaving:
            sys.stderr.flush()
            os._exit(int(leaving.code or 0))
        except BaseException as error:
            sys.stderr.write(f"Traceback: {error!r}\n")
            sys.stderr.flush()
        finally:
            os._exit(99)
    os.close(theirs)
    with os.fdopen(ours) as stream:
        said = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def _content(folder: Path) -> dict[str, Any]:
    """The content of the files that have no times; tensors and metadata, since their order in a file is by chance."""
    from safetensors import safe_open

    content: dict[str, Any] = {path.name: path.read_bytes() for path in folder.glob("*.npy")}
    content |= {path.name: b"" for path in folder.glob("*.sst")}
    for path in (folder / name for name in TENSORS):
        if path.is_file():
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name).numpy().tobytes() for name in file.keys()}  # noqa: SIM118
                content[path.name] = (tensors, file.metadata())
    return content


def _damaged(folder: Path) -> list[str]:
    from halfgraph.graph.inspection import _inspect

    return [f"{file.path}: {file.problem}" for file in _inspect(folder, True, True) if file.problem]


def small_models() -> None:
    """Load everything; make training and link models small, and let checkpoints be written at every step."""
    import halfgraph.api  # noqa: F401
    from halfgraph.prediction import predictors
    from halfgraph.training import link_training, loop

    link_training.RANK, link_training.LEAST_RANK, link_training.EPOCHS = 4, 4, 2
    link_training.CHECKPOINT_SECONDS = 0.0
    predictors.PAIRS = 50
    given: Any = loop.Budget.__init__
    loop.Budget.__init__ = lambda self, *args, **named: given(self, *args, **{**named, "checkpoint_seconds": 0.0})  # type: ignore[method-assign]


if __name__ == "__main__":
    small_models()
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
