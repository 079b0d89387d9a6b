"""The SPARQL 1.1 Protocol, query part: what a request asks, however it says so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from halfgraph.serving.problems import Problem

FORM, DIRECT, UPDATE = "application/x-www-form-urlencoded", "application/sparql-query", "application/sparql-update"
MOST_PARAMETERS = 100
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Asked:
    """A query with the graphs that the request chooses, None where it does not, and its other parameters."""

    query: str
    default: list[str] | None
    named: list[str] | None
    parameters: dict[str, str]

    def job(self, task: str, accept: str, **more: Any) -> dict[str, Any]:
        """The request as a job for a worker."""
        chosen = {"query": self.query, "default": self.default, "named": self.named}
        return {"task": task, **chosen, "accept": accept, "format": self.parameters.get("format"), **more}


async def asked(request: Request) -> Asked | None:
    """What a request asks; None for a GET without any parameter that asks, which is answered by a description."""
    address = _pairs(request.url.query.encode("ascii", "surrogateescape"), "the address")
    if request.method in ("GET", "HEAD"):
        names = {name for name, _ in address}
        return None if not names & {"query", "update"} else _asked(address)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if media == FORM:
        return _asked([*_dataset(address), *_pairs(body, "the form")])
    if media == UPDATE:
        raise _no_updates()
    if media != DIRECT:
        found = f"Content-Type {media[:100]}" if media else "no Content-Type"
        raise Problem(415, f"a POST with {found} is no query", advice=f"Send it as {DIRECT} or {FORM}.")
    return _asked([*address, ("query", _utf8(body, "the query"))])


def _dataset(pairs: Pairs) -> Pairs:
    """The parameters of an address that a form may be completed by; a query must be in the form itself."""
    if any(name in ("query", "update") for name, _ in pairs):
        raise Problem(400, "the address has a query, and so may the form", advice="Put the query in one place.")
    return pairs


def _asked(pairs: Pairs) -> Asked:
    """What parameters ask: exactly one query."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    if "update" in values:
        raise _no_updates()
    queries = values.pop("query", [])
    if len(queries) != 1:
        raise Problem(400, f"expected one query, found {len(queries)}", advice="Pass the parameter query once.")
    default, named = values.pop("default-graph-uri", None), values.pop("named-graph-uri", None)
    return Asked(queries[0], default, named, {name: found[-1] for name, found in values.items()})


def _no_updates() -> Problem:
    return Problem(403, "the graph is served for reading, and updates are refused", advice="Ask with a query.")


def _pairs(text: bytes, where: str) -> Pairs:
    """The parameters of an encoded text, in UTF-8."""
    try:
        ascii_text = _utf8(text, where)
        return parse_qsl(ascii_text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except UnicodeDecodeError as error:
        raise Problem(400, f"{where} is not UTF-8: {error.reason}", advice="Encode it as UTF-8.") from error
    except ValueError as error:
        raise Problem(400, f"{where} has more than {MOST_PARAMETERS} parameters") from error


def _utf8(text: bytes, where: str) -> str:
    """A text in UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, f"{where} is not UTF-8 (byte {error.start})", advice="Encode it as UTF-8.") from error
