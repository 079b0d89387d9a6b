"""The application: endpoints, API, page and middleware; and the server that runs it."""

import asyncio
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
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
from halfgraph.answering.pool import WorkerPool
from halfgraph.errors import HalfgraphError, SettingError
from halfgraph.serving import endpoint
from halfgraph.serving.access import SIGN_IN, AccessControl, sign_in
from halfgraph.serving.api import AppContext, response, router
from halfgraph.serving.connections import GuardedProtocol, GuardedServer
from halfgraph.serving.middleware import LOGS, AccessLog, BodyLimit, Metrics
from halfgraph.serving.problems import Problem, Reply, problem_of
from halfgraph.serving.schema import Limits

PAGE = Path(__file__).parent / "page"
NO_PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>halfgraph</title>
<h1>halfgraph</h1><p>The page is not built. Run <code>make web</code> and restart the server.</p>
<p>Available without it: <a href="/sparql">/sparql</a>, <a href="/api/info">/api/info</a>,
<a href="/api/openapi.json">/api/openapi.json</a>.</p></html>
"""
METRICS = "text/plain; version=0.0.4"
LAST_SECONDS = 9  # after SIGTERM; the server has ended everything before


def application(context: AppContext, log: str = "plain", page: Path = PAGE) -> ASGIApp:
    """The whole application."""
    workers = context.workers
    metrics = Metrics(
        {
            "workers": lambda: workers.ready,
            "running": lambda: len(workers.running),
            "waiting": lambda: workers.waiting,
            "workers_replaced_total": lambda: workers.replaced,
        }
    )
    app = FastAPI(
        title="halfgraph",
        version=__version__,
        description="Exact and predicted answers to SPARQL queries over an incomplete knowledge graph.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.include_router(router(context))
    app.router.routes.extend(endpoint.routes(context))
    app.router.routes.append(Route("/metrics", lambda _: PlainTextResponse(metrics.text(), media_type=METRICS)))
    app.router.routes.append(Route(SIGN_IN, partial(sign_in, rules=context.rules), methods=["POST"]))
    known = frozenset(
        {*app.openapi()["paths"], "/", "/sparql", "/sparql/predict", "/metrics", "/api/openapi.json", SIGN_IN}
    )
    if (page / "index.html").is_file():
        app.mount("/", StaticFiles(directory=page, html=True))
    else:
        app.router.routes.append(Route("/", lambda _: response(Reply(NO_PAGE, "text/html; charset=utf-8"))))
    for error_class, handler in HANDLERS.items():
        app.add_exception_handler(error_class, handler)
    limited = BodyLimit(GZipMiddleware(app, minimum_size=1000, compresslevel=4), context.limits.body)
    return AccessLog(AccessControl(limited, context.rules), metrics, LOGS[log], known)


def _http_error(_: Request, error: Any) -> Response:
    """An unknown path, or a method that is not allowed."""
    advice = {404: "The paths are listed in /api/openapi.json.", 405: "Use GET or POST."}.get(error.status_code)
    return response(Problem(error.status_code, str(error.detail), advice=advice, headers=error.headers).reply())


def _invalid_request(_: Request, error: Any) -> Response:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
    message = f"{where}: {first['msg']}" if where else str(first["msg"])
    status = 400 if first["type"] == "json_invalid" else 422  # the body is not JSON at all
    return response(Problem(status, message, advice="See /api/openapi.json.").reply())


def _other_error(_: Request, error: Exception) -> Response:
    return response(problem_of(error).reply())


HANDLERS: dict[Any, Callable[[Request, Any], Response]] = {
    **dict.fromkeys((Problem, HalfgraphError, Exception), _other_error),
    HTTPException: _http_error,
    RequestValidationError: _invalid_request,
}
Make = Callable[[Any], AppContext]  # from what the first worker tells


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free port."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        problem = f"cannot listen at {host} port {port}: {error}"
        raise SettingError("--port", problem, advice="Choose another port.") from error


def address(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine reaches a listening socket."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def run(
    workers: WorkerPool, make: Make, limits: Limits, listener: socket.socket, log: str, ready: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM, then finish the running requests; `ready` is called when the server listens."""

    async def serve() -> None:
        try:
            config = _config(application(make(await workers.start()), log), limits)
            ready()
            await GuardedServer(config, workers).serve(sockets=[listener])
        finally:
            await workers.close()

    # uvicorn repeats the signal after a clean shutdown; without this the exit code would not be 0.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    asyncio.run(serve())


def _config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    """The server's settings: h11 limits the size of a request's head."""
    return uvicorn.Config(
        app,
        http=GuardedProtocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=limits.query + 16_384,
        timeout_graceful_shutdown=LAST_SECONDS,
    )
