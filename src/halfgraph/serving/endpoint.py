"""The two SPARQL endpoints: /sparql is exact and standard, /sparql/predict goes on with predicted answers."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from halfgraph.serving.asking import answered, response
from halfgraph.serving.description import description
from halfgraph.serving.limits import Limits
from halfgraph.serving.negotiation import wants_page
from halfgraph.serving.problems import Problem
from halfgraph.serving.protocol import asked
from halfgraph.serving.workers import Workers

VARY = {"Vary": "Accept"}
MODES = ("vector", "scored", "both")
Answering = Callable[[Request], Awaitable[Response]]


def routes(workers: Workers) -> list[Route]:
    """The addresses of the endpoints."""
    methods = ["GET", "POST"]
    return [
        Route("/sparql", _answering("sparql", workers), methods=methods),
        Route("/sparql/predict", _answering("predict", workers), methods=methods),
    ]


def _answering(task: str, workers: Workers) -> Answering:
    """What answers the requests to an endpoint."""

    async def answering(request: Request) -> Response:
        accept = ", ".join(request.headers.getlist("accept"))
        found = await asked(request)
        if found is None:
            return await _described(request, workers, accept)
        more = _predicting(found.parameters, workers.limits) if task == "predict" else {}
        reply = await answered(workers, found.job(task, accept, **more), request)
        return response(reply, VARY)

    return answering


async def _described(request: Request, workers: Workers, accept: str) -> Response:
    """The description of an endpoint; a browser gets the page."""
    if wants_page(accept):
        return RedirectResponse("/", status_code=303, headers=VARY)
    counted = json.loads((await answered(workers, {"task": "counts"}, request)).body)
    address = str(request.url.replace(query="", fragment=""))
    return response(description(address, counted, accept, request.query_params.get("format")), VARY)


def _predicting(parameters: Mapping[str, str], limits: Limits) -> dict[str, Any]:
    """How to predict, from the parameters of a request."""
    top = _number(parameters, "top", int, 10)
    confidence = _number(parameters, "min-confidence", float, None)
    mode = parameters.get("mode")
    if not 1 <= top <= limits.top:
        raise Problem(400, f"top must be from 1 to {limits.top:,}, found {top}")
    if confidence is not None and not 0 <= confidence <= 1:
        raise Problem(400, f"min-confidence must be from 0 to 1, found {confidence:g}")
    if mode is not None and mode not in MODES:
        raise Problem(400, f"there is no mode {mode[:50]}", advice=f"There are: {', '.join(MODES)}.")
    return {"top": top, "min_confidence": confidence, "mode": mode}


def _number(parameters: Mapping[str, str], name: str, convert: Callable[[str], Any], default: Any) -> Any:
    """The number that a parameter gives."""
    try:
        return convert(parameters[name]) if name in parameters else default
    except ValueError as error:
        raise Problem(400, f"{name} must be a number, found {parameters[name][:50]}") from error
