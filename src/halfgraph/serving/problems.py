"""Errors over HTTP: one JSON body for all of them, and the status code of each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from halfgraph.answering.schema import to_json
from halfgraph.answering.workers import Message, OutOfMemory, PoolBusy
from halfgraph.errors import HalfgraphError, SettingError, SparqlError, TimeLimit, UnknownName
from halfgraph.serving.schema import ErrorBody, Fault

JSON = "application/json"
REFUSED = {"SERVICE": 403, "update": 403, "length": 413}
STATUS: dict[type[HalfgraphError], int] = {TimeLimit: 504, SettingError: 422}
RETRY = {"Retry-After": "1"}
INTERNAL = "Internal error; see the server log"


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
    """A request that fails, with its HTTP status."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        nearest: Sequence[str] = (),
        advice: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status, self.headers = status, dict(headers or {})
        self.fault = Fault(message, line, column, list(nearest), advice or None)
        super().__init__(message)

    def reply(self) -> Reply:
        """Return the error as a response."""
        return Reply(as_json(ErrorBody(self.fault)), JSON, self.status, self.headers)


def as_json(value: Any) -> bytes:
    """Write a value of the schema as JSON in UTF-8; a lone surrogate, which has no UTF-8, becomes a question mark."""
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def problem_of(error: HalfgraphError) -> Problem:
    """Return the HTTP problem of an error."""
    if isinstance(error, OutOfMemory):
        return Problem(400, str(error), advice="Ask for less, or add a LIMIT.")
    if isinstance(error, PoolBusy):
        return Problem(503, str(error), advice="Try again in a second.", headers=RETRY)
    return Problem(
        _status(error),
        str(error),
        line=getattr(error, "line", None),
        column=getattr(error, "column", None),
        nearest=getattr(error, "nearest", ()),
        advice=getattr(error, "advice", None),
    )


def _status(error: HalfgraphError) -> int:
    if isinstance(error, SparqlError):
        return REFUSED.get(error.feature, 400)
    if isinstance(error, UnknownName):
        return 404 if error.line is None else 400
    return STATUS.get(type(error), 400)
