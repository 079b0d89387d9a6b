"""What goes wrong over HTTP: one JSON shape for every error, and the status that says whose fault it is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from halfgraph.errors import HalfgraphError, SettingError, SparqlError, UnknownName

JSON = "application/json"
REFUSED = {"SERVICE": 403, "update": 403, "length": 413}


@dataclass(frozen=True)
class Reply:
    """An answer over HTTP: its status, headers and body."""

    body: bytes
    media: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Problem(Exception):
    """A request that is not answered as asked, with its status."""

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
        self.told = {
            "message": message,
            "line": line,
            "column": column,
            "nearest": list(nearest),
            "advice": advice or None,
        }
        super().__init__(message)

    def reply(self) -> Reply:
        """The error as the answer."""
        return Reply(as_json({"error": self.told}), JSON, self.status, self.headers)


def as_json(value: Any) -> bytes:
    """A value as JSON in UTF-8; a lone surrogate, which has no UTF-8, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def problem_of(error: HalfgraphError) -> Problem:
    """The problem behind one of our errors."""
    return Problem(
        _status(error),
        str(error),
        line=getattr(error, "line", None),
        column=getattr(error, "column", None),
        nearest=getattr(error, "nearest", ()),
        advice=getattr(error, "advice", None),
    )


def _status(error: HalfgraphError) -> int:
    """400 for a text that cannot be read, 403 for what is never done, 404 for what is not there, 422 for a setting."""
    if isinstance(error, SparqlError):
        return REFUSED.get(error.feature, 400)
    if isinstance(error, UnknownName):
        return 404 if error.line is None else 400
    return 422 if isinstance(error, SettingError) else 400


def busy(message: str, seconds: int = 1) -> Problem:
    """The problem of a server that has too much to do."""
    return Problem(503, message, advice=f"Try again in {seconds} s.", headers={"Retry-After": str(seconds)})


def too_much() -> Problem:
    """The problem of a query that takes more memory than it may, or goes deeper than the stack."""
    return Problem(400, "the query takes more memory than it may", advice="Ask for less, or with a LIMIT.")
