"""The two SPARQL endpoints: /sparql answers exactly, /sparql/predict adds predicted answers.

Requests follow the SPARQL 1.1 Protocol: GET, POST with a form, and POST with the query itself.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from halfgraph.prediction.modes import MODES
from halfgraph.serving.api import AppContext, refuse_unknown, response, run_job
from halfgraph.serving.description import service_description
from halfgraph.serving.negotiation import wants_page
from halfgraph.serving.problems import Problem
from halfgraph.serving.schema import Limits

VARY = {"Vary": "Accept"}
FORM, DIRECT, UPDATE = "application/x-www-form-urlencoded", "application/sparql-query", "application/sparql-update"
MOST_PARAMETERS = 100
PROTOCOL = ("query", "default-graph-uri", "named-graph-uri")
FORMAT_NAMES = ("format", "output", "results")  # other spellings of `format`, which SPARQLWrapper sends too
PREDICTION = ("top", "mode", "min_confidence")
Pairs = Sequence[tuple[str, str]]


def routes(context: AppContext) -> list[Route]:
    """The routes of the endpoints."""
    tasks = {"/sparql": "sparql", "/sparql/predict": "predict"}
    return [Route(path, _handler(task, context), methods=["GET", "POST"]) for path, task in tasks.items()]


def _handler(task: str, context: AppContext) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        accept = ", ".join(request.headers.getlist("accept"))
        pairs, is_query = await _read(request)
        known = (*PROTOCOL, *FORMAT_NAMES, *(PREDICTION if task == "predict" else ()))
        refuse_unknown([name for name, _ in pairs if name != "update"], known)
        if not is_query:
            return await _describe(request, context, accept)
        query, parameters = _parse(pairs)
        options = _prediction_options(parameters, context.limits) if task == "predict" else {}
        form = next((parameters[name] for name in FORMAT_NAMES if name in parameters), None)
        job = {"task": task, "accept": accept, "format": form, **query, **options}
        return response(await run_job(context.workers, job, request), VARY)

    return handle


async def _describe(request: Request, context: AppContext, accept: str) -> Response:
    """Answer a request without a query: the page for a browser, else the service description."""
    if wants_page(accept):
        return RedirectResponse("/", status_code=303, headers=VARY)
    reply = await run_job(context.workers, {"task": "counts"}, request)
    if reply.status != 200:
        return response(reply, VARY)
    counts = json.loads(reply.body)
    address = str(request.url.replace(query="", fragment=""))
    return response(service_description(address, counts, accept, request.query_params.get("format")), VARY)


def _prediction_options(parameters: Mapping[str, str], limits: Limits) -> dict[str, Any]:
    top = _number(parameters, "top", int, 10)
    confidence = _number(parameters, "min_confidence", float, None)
    mode = parameters.get("mode")
    if not 1 <= top <= limits.top:
        raise Problem(400, f"top must be from 1 to {limits.top:,}, found {top}")
    if confidence is not None and not 0 <= confidence <= 1:
        raise Problem(400, f"min_confidence must be from 0 to 1, found {confidence:g}")
    if mode is not None and mode not in MODES:
        raise Problem(400, f"no mode {mode[:50]}", advice=f"Choose one of {', '.join(MODES)}.")
    return {"top": top, "min_confidence": confidence, "mode": mode}


def _number(parameters: Mapping[str, str], name: str, convert: Callable[[str], Any], default: Any) -> Any:
    try:
        return convert(parameters[name]) if name in parameters else default
    except ValueError as error:
        raise Problem(400, f"{name} must be a number, found {parameters[name][:50]}") from error


async def _read(request: Request) -> tuple[Pairs, bool]:
    """Read the parameters of a request; a GET without a query, which is False, asks for the service description."""
    address = _pairs(request.url.query.encode("ascii", "surrogateescape"), "the address")
    is_query = any(name in ("query", "update") for name, _ in address)
    if request.method in ("GET", "HEAD"):
        return address, is_query
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if media == FORM:
        if is_query:
            advice = "Put the query into the form."
            raise Problem(400, "the query is in the address of a POST with a form", advice=advice)
        return [*address, *_pairs(body, "the form")], True
    if media == UPDATE:
        raise _no_updates()
    if media != DIRECT:
        media = f"Content-Type {media[:100]}" if media else "no Content-Type"
        raise Problem(415, f"a POST with {media} is not a query", advice=f"Send it as {DIRECT} or {FORM}.")
    try:
        return [*address, ("query", body.decode())], True
    except UnicodeDecodeError as error:
        raise _not_utf8("the query", error) from error


def _parse(pairs: Pairs) -> tuple[dict[str, Any], dict[str, str]]:
    """The one query with the graphs that the request selects (None if it does not), and the other parameters."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    if "update" in values:
        raise _no_updates()
    queries = values.pop("query", [])
    if len(queries) != 1:
        raise Problem(400, f"expected one query, found {len(queries)}", advice="Pass the parameter query once.")
    default, named = values.pop("default-graph-uri", None), values.pop("named-graph-uri", None)
    query = {"query": queries[0], "default": default, "named": named}
    return query, {name: given[-1] for name, given in values.items()}


def _no_updates() -> Problem:
    return Problem(403, "the graph is read-only, so updates are refused", advice="Send a query.")


def _pairs(text: bytes, where: str) -> Pairs:
    """Decode URL-encoded parameters."""
    try:
        return parse_qsl(text.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except UnicodeDecodeError as error:
        raise _not_utf8(where, error) from error
    except ValueError as error:
        raise Problem(400, f"{where} has more than {MOST_PARAMETERS} parameters") from error


def _not_utf8(where: str, error: UnicodeDecodeError) -> Problem:
    return Problem(400, f"{where} is not UTF-8: {error.reason} (byte {error.start})", advice="Encode it as UTF-8.")
