"""New folders that appear when they are complete, and locks that say who is at work on a folder."""

import contextlib
import fcntl
import glob
import os
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from halfgraph.errors import FolderError
from halfgraph.graph.files import PART, UNSUPPORTED, excerpt, is_full, part_path, sync
from halfgraph.graph.manifest import write_manifest

LOCK = ".lock"
LONGEST_COMMAND = 200  # characters of a command line in a lock


def refuse_existing(path: Path, *, made_by: str) -> None:
    """Raise FolderError if the path exists."""
    if os.path.lexists(path):
        raise FolderError(path, "exists already", advice=f"Remove it, or write {made_by} to another --out.")


@contextlib.contextmanager
def new_folder(path: Path, *, made_by: str, wait: bool = False) -> Iterator[Path]:
    """Temporary folder that takes the name `path` if the block ends without an error, and is removed otherwise.

    Its files are on the disk before it takes the name, the manifest of their checksums last. Only one process makes a
    folder at a time; another one is refused, or waits.
    """
    part = part_path(path)
    missing: list[Path] = []
    try:
        refuse_existing(path, made_by=made_by)
        missing = [parent for parent in path.parents if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent / f".{path.name}{LOCK}", path, wait=wait):
            refuse_existing(path, made_by=made_by)
            _remove_stale(path)
            part.mkdir()
            try:
                yield part
                write_manifest(part)
                sync(part)
                part.rename(path)
                for parent in (path.parent, *(parent.parent for parent in missing)):
                    sync(parent)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        for parent in missing:
            with contextlib.suppress(OSError):  # it has files, or was never made
                parent.rmdir()


def _unwritable(path: Path, error: OSError) -> FolderError:
    advice = "No files were kept. Make room or choose another place." if is_full(error) else "Choose another place."
    return FolderError(path, f"cannot be written: {_reason(error)}", advice=advice)


def _reason(error: OSError) -> str:
    return error.strerror or ("No space left on device" if is_full(error) else str(error))


def _remove_stale(path: Path) -> None:
    """Remove the incomplete folders that killed processes left beside `path`; the lock keeps out all others."""
    for part in path.parent.glob(f".{glob.escape(path.name)}{PART}*"):
        shutil.rmtree(part, ignore_errors=True)


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of an existing folder, for a command that changes its files."""
    try:
        with locked(folder / LOCK, folder):
            yield
    except OSError as error:
        advice = "Make room, and run the command again." if is_full(error) else "Check its permissions and its disk."
        raise FolderError(folder, f"cannot be written: {_reason(error)}", advice=advice) from error


@contextlib.contextmanager
def locked(lock: Path, path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock file, which says who holds it; raise FolderError for `path` if another process does, or wait.

    The system releases the lock when the process ends, however it ends.
    """
    handle = _open_locked(lock, path, wait)
    try:
        os.truncate(handle, 0)
        os.write(handle, _holder().encode(errors="replace"))
        yield
    finally:
        with contextlib.suppress(OSError):  # the folder was removed meanwhile
            lock.unlink()
        os.close(handle)


def _open_locked(lock: Path, path: Path, wait: bool) -> int:
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            _flock(handle, wait)
            if _is_at(lock, handle):  # and was not removed by the process that held it before
                return handle
        except BlockingIOError as error:
            holder = excerpt(os.pread(handle, 4096, 0).decode(errors="replace"), 2 * LONGEST_COMMAND)
            os.close(handle)
            problem = f"is in use by {holder or 'another process'}"
            raise FolderError(path, problem, advice="Wait until it ends, or stop it.") from error
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _flock(handle: int, wait: bool) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _holder() -> str:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:LONGEST_COMMAND]
    since = time.strftime("%F %T UTC", time.gmtime())
    return f"process {os.getpid()} on {socket.gethostname()} since {since}: {command}"
