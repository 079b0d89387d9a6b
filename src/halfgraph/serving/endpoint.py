"""The two SPARQL endpoints: /sparql answers exactly, /sparql/predict adds predicted answers."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from halfgraph.prediction.modes import MODES
from halfgraph.serving.api import AppContext, response, run_job
from halfgraph.serving.description import service_description
from halfgraph.serving.negotiation import wants_page
from halfgraph.serving.problems import Problem
from halfgraph.serving.protocol import read_request
from halfgraph.serving.schema import Limits

VARY = {"Vary": "Accept"}


def routes(context: AppContext) -> list[Route]:
    """The routes of the endpoints."""
    tasks = {"/sparql": "sparql", "/sparql/predict": "predict"}
    return [Route(path, _handler(task, context), methods=["GET", "POST"]) for path, task in tasks.items()]


def _handler(task: str, context: AppContext) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        accept = ", ".join(request.headers.getlist("accept"))
        query = await read_request(request)
        if query is None:
            return await _describe(request, context, accept)
        options = _prediction_options(query.parameters, context.limits) if task == "predict" else {}
        return response(await run_job(context.workers, query.job(task, accept, **options), request), VARY)

    return handle


async def _describe(request: Request, context: AppContext, accept: str) -> Response:
    """Answer a request without a query: the page for a browser, else the service description."""
    if wants_page(accept):
        return RedirectResponse("/", status_code=303, headers=VARY)
    counts = json.loads((await run_job(context.workers, {"task": "counts"}, request)).body)
    address = str(request.url.replace(query="", fragment=""))
    return response(service_description(address, counts, accept, request.query_params.get("format")), VARY)


def _prediction_options(parameters: Mapping[str, str], limits: Limits) -> dict[str, Any]:
    top = _number(parameters, "top", int, 10)
    confidence = _number(parameters, "min-confidence", float, None)
    mode = parameters.get("mode")
    if not 1 <= top <= limits.top:
        raise Problem(400, f"top must be from 1 to {limits.top:,}, found {top}")
    if confidence is not None and not 0 <= confidence <= 1:
        raise Problem(400, f"min-confidence must be from 0 to 1, found {confidence:g}")
    if mode is not None and mode not in MODES:
        raise Problem(400, f"no mode {mode[:50]}", advice=f"Choose one of {', '.join(MODES)}.")
    return {"top": top, "min_confidence": confidence, "mode": mode}


def _number(parameters: Mapping[str, str], name: str, convert: Callable[[str], Any], default: Any) -> Any:
    try:
        return convert(parameters[name]) if name in parameters else default
    except ValueError as error:
        raise Problem(400, f"{name} must be a number, found {parameters[name][:50]}") from error
