"""Errors over HTTP: one JSON body for all of them, and the status code of each."""

import json
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from halfgraph.answering.cells import to_json
from halfgraph.answering.pool import PoolBusy
from halfgraph.answering.workers import Message
from halfgraph.errors import (
    FolderError,
    HalfgraphError,
    SettingError,
    SparqlError,
    TimeLimit,
    UnknownName,
    without_dashes,
)
from halfgraph.serving.schema import ErrorBody, Fault

JSON = "application/json"
REFUSED = {"SERVICE": 403, "update": 403, "length": 413}
STATUS: dict[type[HalfgraphError], int] = {TimeLimit: 504, SettingError: 422, PoolBusy: 503}
DAMAGED = "a file of the run or the graph cannot be read"
RETRY = {"Retry-After": "1"}


@dataclass(frozen=True)
class Reply:
    """An HTTP response: body, media type, status and headers."""

    body: bytes
    media: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def message(self) -> Message:
        """Return the reply as a worker sends it."""
        return Message([self.media, self.status, dict(self.headers)], self.body)

    @classmethod
    def of(cls, message: Message) -> "Reply":
        """Return the reply that a worker has sent."""
        return cls(message.body, *message.head)


class Problem(Exception):
    """A request that fails, with its HTTP status; its source may know line, column and nearest names."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        advice: str | None = None,
        headers: Mapping[str, str] | None = None,
        source: Exception | None = None,
    ) -> None:
        self.status, self.headers = status, dict(headers or {})
        line, column, nearest = (getattr(source, name, None) for name in ("line", "column", "nearest"))
        self.fault = Fault(message, line, column, list(nearest or ()), advice or None)
        super().__init__(message)

    def reply(self) -> Reply:
        return Reply(as_json(ErrorBody(self.fault)), JSON, self.status, self.headers)


def as_json(value: Any) -> bytes:
    """Write a value of the schema as JSON in UTF-8; a lone surrogate, which has no UTF-8, becomes a question mark."""
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def problem_of(error: Exception) -> Problem:
    """Return the HTTP problem of an error; one that is not ours is a bug, which the client learns nothing of."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, FolderError):  # of the run or the graph; clients learn no path
        sys.stderr.write(f"halfgraph: {error}\n")
        return Problem(503, DAMAGED, advice="Ask whoever runs the server; its log names the file.", headers=RETRY)
    if isinstance(error, HalfgraphError):
        headers = RETRY if isinstance(error, PoolBusy) else None
        advice = without_dashes(getattr(error, "advice", None) or "")
        return Problem(_status(error), str(error), advice=advice, headers=headers, source=error)
    traceback.print_exception(error, file=sys.stderr)
    return Problem(500, "Internal error; see the server log")


def _status(error: HalfgraphError) -> int:
    if isinstance(error, SparqlError):
        return REFUSED.get(error.feature, 400)
    if isinstance(error, UnknownName):
        return 404 if error.line is None else 400
    return STATUS.get(type(error), 400)
