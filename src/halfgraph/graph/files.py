"""Files as bytes and lines: gzipped or not, from disk or standard input, with errors that say where."""

import codecs
import gzip
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from halfgraph.errors import InputError
from halfgraph.graph.names import DEFAULT_BASE

STANDARD_INPUT = Path("-")
SKIP = "Mend it, or pass --skip-bad to set such lines aside."
SKIP_OR_CONVERT = "Convert the file to UTF-8, or pass --skip-bad to set such lines aside."


@dataclass(frozen=True)
class Reading:
    """How to read: what to do with what is malformed, unnamed or about the vocabulary."""

    format: str | None = None  # a key of TABLES or RDF_FORMATS; by the file's ending if not given
    skip_bad: bool = False
    header: bool = False
    blank_nodes: Literal["keep", "drop"] = "keep"
    schema: Literal["aside", "use"] = "aside"
    base: str = DEFAULT_BASE  # what names that are no IRIs, and relative IRIs of a file, are relative to
    one_document: bool = False  # whether a blank node's label means the same in all files, as in pages of an endpoint
    progress: Callable[[int], None] | None = None  # told how many statements were read


def open_input(path: Path) -> IO[bytes]:
    """The bytes of a file or of standard input, unzipped where they are gzipped."""
    if path == STANDARD_INPUT:
        raw: IO[bytes] = io.BufferedReader(sys.stdin.buffer)  # type: ignore[type-var]
    else:
        try:
            raw = path.open("rb")
        except OSError as error:
            raise unreadable(path, error) from error
    peeked = raw.peek(2)[:2] if isinstance(raw, io.BufferedReader) else b""
    return gzip.open(raw) if peeked == b"\x1f\x8b" else raw  # type: ignore[return-value]


def unreadable(path: Path, error: OSError) -> InputError:
    """Why a file cannot be opened, in plain words."""
    problem = {
        FileNotFoundError: "no such file",
        IsADirectoryError: "is a folder, not a file",
        PermissionError: "may not be read",
    }.get(type(error), str(error.strerror or error))
    return InputError(problem, path=path, advice="Check the path.")


def lines_of(stream: IO[bytes], path: Path, counts: Counter[str], skip_bad: bool) -> Iterator[tuple[int, str]]:
    """Each line with its number, without its end; blank lines are passed over, undecodable ones counted if allowed."""
    number = 0
    try:
        for number, raw in enumerate(stream, 1):
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
            if line:
                yield number, line.removeprefix(codecs.BOM_UTF8.decode()) if number == 1 else line
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise InputError(f"breaks off: {error}", path=path, line=number + 1, advice="Fetch the file again.") from error
