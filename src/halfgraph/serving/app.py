"""The application: endpoints, API, page and what surrounds them; and the server that runs it."""

import asyncio
import logging
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from halfgraph import __version__
from halfgraph.errors import SettingError
from halfgraph.serving import endpoint
from halfgraph.serving.api import Serving, router
from halfgraph.serving.asking import response
from halfgraph.serving.limits import Limits
from halfgraph.serving.metrics import Metrics
from halfgraph.serving.middleware import LOGS, Bounded, Observed
from halfgraph.serving.problems import Problem, Reply
from halfgraph.serving.workers import Workers

PAGE = Path(__file__).parent / "page"
NO_PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>halfgraph</title>
<h1>halfgraph</h1><p>The page is not built here: run <code>make web</code> and start the server again.</p>
<p>What there is without it: <a href="/sparql">/sparql</a>, <a href="/api/info">/api/info</a>,
<a href="/api/openapi.json">/api/openapi.json</a>.</p></html>
"""
MALFORMED = ("json_invalid",)  # not an answer out of range, but no JSON at all
MOST_CONNECTIONS = 1000
GRACE = 5.0  # seconds more than a query may take, for requests to end when the server does


def application(serving: Serving, log: str = "plain", page: Path = PAGE) -> ASGIApp:
    """The whole application."""
    metrics, workers = Metrics(), serving.workers
    app = FastAPI(
        title="halfgraph",
        version=__version__,
        description="Exact and predicted answers to SPARQL queries over an incomplete knowledge graph.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.include_router(router(serving))
    app.router.routes.extend(endpoint.routes(workers))
    app.router.routes.append(Route("/metrics", lambda _: _metrics(metrics, serving)))
    known = frozenset({*app.openapi()["paths"], "/", "/sparql", "/sparql/predict", "/metrics", "/api/openapi.json"})
    if (page / "index.html").is_file():
        app.mount("/", StaticFiles(directory=page, html=True))
    else:
        app.router.routes.append(Route("/", lambda _: response(Reply(NO_PAGE, "text/html; charset=utf-8"))))
    for error_class, handler in HANDLERS.items():
        app.add_exception_handler(error_class, handler)
    bounded = Bounded(GZipMiddleware(app, minimum_size=1000, compresslevel=4), workers.limits.body)
    return Observed(bounded, metrics, LOGS[log], known)


def _metrics(metrics: Metrics, serving: Serving) -> Response:
    """What was counted, and the figures of the moment."""
    workers = serving.workers
    now = {
        "workers": workers.ready,
        "running": len(workers.running),
        "waiting": workers.waiting,
        "workers_replaced_total": workers.replaced,
    }
    return PlainTextResponse(metrics.text(now), media_type="text/plain; version=0.0.4")


def _told(_: Request, error: Any) -> Response:
    """A problem as an answer."""
    return response(error.reply())


def _http(_: Request, error: Any) -> Response:
    """What the framework refuses, in our shape: an address that is not there, a method that it does not take."""
    advice = {404: "The addresses are in /api/openapi.json.", 405: "Use GET or POST."}.get(error.status_code)
    return response(Problem(error.status_code, str(error.detail), advice=advice, headers=error.headers).reply())


def _invalid(_: Request, error: Any) -> Response:
    """What does not fit the API's description, in our shape."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
    message = f"{where}: {first['msg']}" if where else str(first["msg"])
    status = 400 if first["type"] in MALFORMED else 422
    return response(Problem(status, message, advice="See /api/openapi.json.").reply())


def _mistake(_: Request, error: Exception) -> Response:
    """A mistake of ours: told on stderr, and nothing of it to the client."""
    traceback.print_exception(error, file=sys.stderr)
    return response(Problem(500, "halfgraph has made a mistake; its log says more").reply())


HANDLERS: dict[Any, Callable[[Request, Any], Response]] = {
    Problem: _told,
    HTTPException: _http,
    RequestValidationError: _invalid,
    Exception: _mistake,
}


Make = Callable[[Workers, Path], Serving]


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family)
    except (OSError, OverflowError) as error:
        raise _not_listening(host, port, error) from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(1024)
    except (OSError, OverflowError) as error:
        found.close()
        raise _not_listening(host, port, error) from error
    return found


def _not_listening(host: str, port: int, error: Exception) -> SettingError:
    return SettingError("--port", f"cannot listen at {host} port {port}: {error}", advice="Choose another.")


def address(listener: socket.socket) -> str:
    """The address of a server, for people."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run(workers: Workers, make: Make, listener: socket.socket, log: str, say: Callable[[], None]) -> None:
    """Nothing; serves what is made of the graph's folder until it is told to end, and then finishes what runs."""
    # uvicorn sends itself the signal again after it has ended well; without this the exit code would not be 0.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    asyncio.run(_run(workers, make, listener, log, say))


async def _run(workers: Workers, make: Make, listener: socket.socket, log: str, say: Callable[[], None]) -> None:
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    try:
        serving = make(workers, await workers.start())
        config = _config(application(serving, log), workers.limits)
        say()
        await uvicorn.Server(config).serve(sockets=[listener])
    finally:
        await workers.close()


def _config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    """How the application is run: h11, since it bounds the size of what comes before the body."""
    return uvicorn.Config(
        app,
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=limits.query + 16_384,
        timeout_graceful_shutdown=int(limits.time + GRACE),
    )
