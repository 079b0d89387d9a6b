"""A process that asks a store and is ended when a query takes too long: pyoxigraph itself knows no time limit."""

import json
import select
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from pyoxigraph import QueryBoolean, QueryResultsFormat, QuerySolutions, RdfFormat, Store

from halfgraph.errors import FolderError, SparqlError, TimeLimit

_SIZE = struct.Struct("!Q")
RESULTS = {
    "json": QueryResultsFormat.JSON,
    "xml": QueryResultsFormat.XML,
    "csv": QueryResultsFormat.CSV,
    "tsv": QueryResultsFormat.TSV,
}
TRIPLES = {
    "turtle": RdfFormat.TURTLE,
    "ntriples": RdfFormat.N_TRIPLES,
    "rdfxml": RdfFormat.RDF_XML,
    "jsonld": RdfFormat.JSON_LD,
}


def answered(store: Store, text: str, form: str = "json", triples: str = "turtle", **options: Any) -> bytes:
    """What a store answers to a query, written out; a graph in the syntax `triples`, all else in the format `form`.

    Used and dropped in one function: a result of pyoxigraph must not leave its thread.
    """
    try:
        found = store.query(text, **options)
    except SyntaxError as error:
        raise SparqlError(str(error.msg), feature="syntax", line=error.lineno, column=error.offset) from error
    if isinstance(found, QueryBoolean | QuerySolutions):
        if form == "csv" and isinstance(found, QueryBoolean):
            return b"true" if found else b"false"
        return bytes(found.serialize(format=RESULTS[form]) or b"")
    return bytes(found.serialize(format=TRIPLES[triples]) or b"")


class Worker:
    """A process with a store, begun when first asked; one query at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._one_at_a_time = threading.Lock()

    def query(self, text: str, *, seconds: float, **options: Any) -> bytes:
        """What the store answers, as of `answered`, or an error once the time is over."""
        with self._one_at_a_time:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                _send(process.stdin, json.dumps({"text": text, **options}).encode(errors="surrogatepass"))
            except BrokenPipeError:
                self.close()
                raise self._died() from None
            # The answer is written at once when it is complete, so that its first byte says that it is there.
            if not select.select([process.stdout], [], [], seconds)[0]:
                self.close()
                raise TimeLimit(seconds)
            received = _receive(process.stdout)
            if received is None:
                self.close()
                raise self._died()
        return _opened(received)

    def close(self) -> None:
        """Nothing; the process is ended."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _started(self) -> "subprocess.Popen[bytes]":
        """The process, started anew if it was ended."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = [sys.executable, "-m", "halfgraph.answering.worker", str(self._folder)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert self._process.stdout is not None
            if _receive(self._process.stdout) is None:  # says that it has opened the store
                self.close()
                raise FolderError(self._folder, "cannot be opened as a store", advice="Remove it, and ask again.")
        return self._process

    def _died(self) -> TimeLimit:
        return TimeLimit(0, advice="The store ended while it answered, most likely for want of memory.")


def _send(pipe: BinaryIO | Any, message: bytes) -> None:
    pipe.write(_SIZE.pack(len(message)) + message)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> bytes | None:
    """The next message, or None where there is no more."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    message: bytes = pipe.read(size)
    return message if len(message) == size else None


def _opened(message: bytes) -> bytes:
    """The answer in a message, or the error in it."""
    if message[:1] == b"+":
        return message[1:]
    said = json.loads(message[1:])
    raise SparqlError(said["problem"], feature=said["feature"], line=said["line"], column=said["column"])


def _serve(folder: str) -> None:
    """Nothing; queries are read from standard input and answered on standard output until it ends."""
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    store = Store.read_only(folder)
    _send(told, b"+")
    while (message := _receive(asked)) is not None:
        try:
            answer = b"+" + answered(store, **json.loads(message))
        except SparqlError as error:
            fields = {name: getattr(error, name) for name in ("problem", "feature", "line", "column")}
            answer = b"-" + json.dumps(fields).encode()
        _send(told, answer)


if __name__ == "__main__":
    _serve(sys.argv[1])
