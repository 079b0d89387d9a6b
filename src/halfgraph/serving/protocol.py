"""The SPARQL 1.1 Protocol for queries: GET, POST with a form, and POST with the query itself."""

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
class ProtocolRequest:
    """A query, the graphs that the request selects (None if it does not), and the other parameters."""

    query: str
    default: list[str] | None
    named: list[str] | None
    parameters: dict[str, str]

    def job(self, task: str, accept: str, **more: Any) -> dict[str, Any]:
        """Return the request as a job for a worker."""
        dataset = {"query": self.query, "default": self.default, "named": self.named}
        return {"task": task, **dataset, "accept": accept, "format": self.parameters.get("format"), **more}


async def read_request(request: Request) -> ProtocolRequest | None:
    """Read the query of a request; None for a GET without a query, which asks for the service description."""
    address = _pairs(request.url.query.encode("ascii", "surrogateescape"), "the address")
    if request.method in ("GET", "HEAD"):
        names = {name for name, _ in address}
        return None if not names & {"query", "update"} else _parse(address)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if media == FORM:
        return _parse([*_dataset(address), *_pairs(body, "the form")])
    if media == UPDATE:
        raise _no_updates()
    if media != DIRECT:
        media = f"Content-Type {media[:100]}" if media else "no Content-Type"
        raise Problem(415, f"a POST with {media} is not a query", advice=f"Send it as {DIRECT} or {FORM}.")
    return _parse([*address, ("query", _utf8(body, "the query"))])


def _dataset(pairs: Pairs) -> Pairs:
    """The parameters of the address that add to a form; the query itself must be in the form."""
    if any(name in ("query", "update") for name, _ in pairs):
        raise Problem(400, "the query is in the address of a POST with a form", advice="Put the query into the form.")
    return pairs


def _parse(pairs: Pairs) -> ProtocolRequest:
    """Read the parameters, among them exactly one query."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    if "update" in values:
        raise _no_updates()
    queries = values.pop("query", [])
    if len(queries) != 1:
        raise Problem(400, f"expected one query, found {len(queries)}", advice="Pass the parameter query once.")
    default, named = values.pop("default-graph-uri", None), values.pop("named-graph-uri", None)
    return ProtocolRequest(queries[0], default, named, {name: given[-1] for name, given in values.items()})


def _no_updates() -> Problem:
    return Problem(403, "the graph is read-only, so updates are refused", advice="Send a query.")


def _pairs(text: bytes, where: str) -> Pairs:
    """Decode URL-encoded parameters."""
    try:
        ascii_text = _utf8(text, where)
        return parse_qsl(ascii_text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except UnicodeDecodeError as error:
        raise Problem(400, f"{where} is not UTF-8: {error.reason}", advice="Encode it as UTF-8.") from error
    except ValueError as error:
        raise Problem(400, f"{where} has more than {MOST_PARAMETERS} parameters") from error


def _utf8(text: bytes, where: str) -> str:
    """Decode UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, f"{where} is not UTF-8 (byte {error.start})", advice="Encode it as UTF-8.") from error
