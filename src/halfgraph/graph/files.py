"""Files: reading bytes and lines, gzipped or not, with errors that say where; writing whole files or none."""

import codecs
import contextlib
import errno
import gzip
import io
import os
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, cast

from halfgraph.errors import FolderError, InputError, printable
from halfgraph.graph.names import DEFAULT_BASE, Namer

STANDARD_INPUT = Path("-")
PART = ".part-"  # in the name of an incomplete file or folder, before the process and thread that write it
GZIPPED = b"\x1f\x8b"
UNPACK = "Unpack it first; only gzip is read directly."
# First bytes of files that are recognised but not read: the problem and what to do.
REFUSED = {
    b"PK\x03\x04": ("is a zip archive", UNPACK),
    b"BZh91AY&SY": ("is compressed with bzip2", UNPACK),
    b"\xfd7zXZ\x00": ("is compressed with xz", UNPACK),
    b"\x28\xb5\x2f\xfd": ("is compressed with zstd", UNPACK),
    codecs.BOM_UTF16_LE: ("is in UTF-16", "Convert the file to UTF-8."),
    codecs.BOM_UTF16_BE: ("is in UTF-16", "Convert the file to UTF-8."),
}
MOST_UNPACKED, UNPACKED_ANYWAY = 200, 64 << 20  # times the packed size; bytes
LONGEST_LINE = 32 << 20  # bytes
BROKEN = (EOFError, OSError, zlib.error)  # raised by a stream that ends too early
UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK)  # some network drives sync and lock no folders
SKIP = "Correct it, or pass --skip-bad to skip such lines."
SKIP_OR_CONVERT = "Convert the file to UTF-8, or pass --skip-bad to skip such lines."


@dataclass(frozen=True)
class ReadOptions:
    """How files are read: format, malformed lines, blank nodes, schema statements."""

    format: str | None = None  # a key of TABLES or RDF_FORMATS (default: by file extension)
    skip_bad: bool = False
    header: bool | None = None  # whether tables begin with a header; None: if it is recognised
    blank_nodes: Literal["keep", "drop"] = "keep"
    schema: Literal["aside", "use"] = "aside"
    base: str = DEFAULT_BASE  # for names that are not IRIs, and for relative IRIs
    one_document: bool = False  # a blank node label means the same node in all files, as in pages of an endpoint
    progress: Callable[[int], None] | None = None  # called with the number of statements read

    def __post_init__(self) -> None:
        Namer(self.base)  # checks the base


def open_input(path: Path, *, may_be_empty: bool = False) -> IO[bytes]:
    """Open a file or standard input as bytes, unzipped if gzipped, without a byte order mark."""
    standard = cast(io.RawIOBase, sys.stdin.buffer)  # wrapped again, so that peek waits for enough of a slow pipe
    raw: io.BufferedReader[Any]
    try:
        raw = io.BufferedReader(standard) if path == STANDARD_INPUT else path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        return _unpacked(raw, path, may_be_empty)
    except BaseException:
        raw.close()
        raise


def _unpacked(raw: "io.BufferedReader[Any]", path: Path, may_be_empty: bool) -> IO[bytes]:
    """Return the stream, unzipped if gzipped, after its byte order mark; refuse other compressions."""
    try:
        beginning = raw.peek(10)
        for magic, (problem, advice) in REFUSED.items():
            if beginning.startswith(magic):
                raise InputError(problem, path=path, advice=advice)
        stream = raw
        if beginning.startswith(GZIPPED):
            stream = io.BufferedReader(_Unpacked(raw, path), 1 << 16)
        if stream.peek(3).startswith(codecs.BOM_UTF8):
            stream.read(3)
        is_empty = not stream.peek(1)
    except BROKEN as error:
        raise broken_off(path, error) from error
    if is_empty and not may_be_empty:
        raise InputError("the file is empty", path=path, advice="Check that it is the file you meant.")
    return cast(IO[bytes], stream)


class _Unpacked(io.RawIOBase):
    """The content of a gzipped stream, refused if it is far larger than the stream itself."""

    def __init__(self, raw: "io.BufferedReader[Any]", path: Path) -> None:
        self.raw, self.path, self.packed, self.unpacked = raw, path, 0, 0
        self.content = gzip.GzipFile(fileobj=cast(IO[bytes], self), mode="rb")

    def read(self, size: int = -1) -> bytes:
        """Return packed bytes, for the unpacking."""
        piece = self.raw.read(size)
        self.packed += len(piece)
        return piece

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with unpacked bytes."""
        count = self.content.readinto(buffer)
        self.unpacked += count
        if self.unpacked > MOST_UNPACKED * self.packed + UNPACKED_ANYWAY:
            problem = f"unpacks to more than {MOST_UNPACKED} times its size, which is the limit"
            raise InputError(problem, path=self.path, advice="Unpack it first if you trust it.")
        return count

    def close(self) -> None:
        self.raw.close()
        super().close()


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error for a file that cannot be opened."""
    problem = {
        FileNotFoundError: "no such file",
        IsADirectoryError: "is a folder, not a file",
        PermissionError: "permission denied",
    }.get(type(error), str(error.strerror or error))
    return InputError(problem, path=path, advice="Check the path.")


def broken_off(path: Path, error: Exception, line: int | None = None) -> InputError:
    """Return the error for a stream that ends or fails too early."""
    return InputError(f"is incomplete: {error}", path=path, line=line, advice="Download the file again.")


def is_full(error: OSError) -> bool:
    """Return whether an error means a full disk; RocksDB says it only in the message."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error)


def excerpt(text: str, most: int = 120) -> str:
    """Return the beginning of a text as one line that is safe to print."""
    return printable(text, most)


def read_text(path: Path, most: int, advice: str) -> str:
    """Read a text file of at most `most` bytes."""
    try:
        with path.open("rb") as stream:
            content = stream.read(most + 1)
        text = content[:most].decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path, advice=advice) from error
    if len(content) > most:
        problem = f"is longer than {most:,} bytes, which is the limit"
        raise InputError(problem, path=path, advice=advice)
    return text


def raw_lines(stream: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each line; raise InputError for one that is too long."""
    for number, raw in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), 1):
        if len(raw) == LONGEST_LINE:
            problem = f"the line is longer than {LONGEST_LINE >> 20} MB, which is the limit"
            raise InputError(problem, path=path, line=number, advice="Check that it is the file you meant.")
        yield number, raw


def lines_of(stream: IO[bytes], path: Path, counts: Counter[str], skip_bad: bool) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line; with skip_bad, count undecodable lines and skip them."""
    number = 0
    try:
        for number, raw in raw_lines(stream, path):
            try:
                line = raw.decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                if not skip_bad:
                    problem = f"not UTF-8: byte 0x{raw[error.start]:02x}"
                    raise InputError(
                        problem, path=path, line=number, column=error.start + 1, advice=SKIP_OR_CONVERT
                    ) from error
                counts["malformed"] += 1
                continue
            yield number, line
    except BROKEN as error:
        raise broken_off(path, error, number + 1) from error


@contextlib.contextmanager
def atomic_path(path: Path, *, advice: str = "Choose another place.") -> Iterator[Path]:
    """Path of a temporary file that takes the name `path` if the block ends without an error.

    It is on the disk before it takes the name, so that not even a power failure leaves a part of it. Its permissions
    are those of any new file, whatever a library gives it.
    """
    part = part_path(path)
    try:
        part.touch()
        mode = part.stat().st_mode
        yield part
        part.chmod(mode)
        sync(part)
        part.replace(path)
        sync(path.parent)
    except OSError as error:
        raise FolderError(path, f"cannot be written: {error.strerror or error}", advice=advice) from error
    finally:
        with contextlib.suppress(OSError):  # it is not there, or neither is its folder
            part.unlink()


def write_atomically(path: Path, content: str | bytes, *, advice: str = "Choose another place.") -> None:
    """Write a file so that it has the old content or the new one, never a part of it."""
    with atomic_path(path, advice=advice) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSUPPORTED or not path.is_dir():
            raise
    finally:
        os.close(handle)


def part_path(path: Path) -> Path:
    """Return the name under which this thread writes a file or folder before it is complete."""
    return path.parent / f".{path.name}{PART}{os.getpid()}-{threading.get_native_id()}"
