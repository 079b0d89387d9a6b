"""Middleware: access log, metrics for Prometheus, security headers, and a limit on the body of a request."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halfgraph.serving.problems import Problem, Reply

SECURE = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without a referrer, the Origin of the sign-in form would be null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
SECURE_RAW = [(name.lower().encode(), value.encode()) for name, value in SECURE.items()]
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH")
BODY_SECONDS = 15.0  # within which a request's body must arrive
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
Log = Callable[[dict[str, Any]], None]
Readings = Mapping[str, Callable[[], float]]  # by name; those that end in _total are counters, the others gauges


class Metrics:
    """Requests by route, method and status, their durations, and readings that are taken when they are asked for."""

    def __init__(self, readings: Readings) -> None:
        self._registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter("halfgraph_requests", "Answered requests.", labels, registry=self._registry)
        self._seconds = Histogram(
            "halfgraph_request_seconds", "Duration of requests.", ["route"], buckets=BUCKETS, registry=self._registry
        )
        self._registry.register(_Readings(readings))

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Readings(Collector):
    def __init__(self, readings: Readings) -> None:
        self.readings = readings

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        for name, read in self.readings.items():
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield family(f"halfgraph_{name}", name.replace("_", " ").capitalize(), value=read())


async def send_reply(reply: Reply, send: Send) -> None:
    """Send a reply."""
    headers = {"content-type": reply.media, "content-length": str(len(reply.body)), **reply.headers}
    raw = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": reply.body})


class AccessLog:
    """Log and count each request, and add the headers that every response has."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: Log, routes: frozenset[str]) -> None:
        self.app, self.metrics, self.log, self.routes = app, metrics, log, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, seen = time.perf_counter(), {"status": 499, "bytes": 0}  # 499: the client disconnected

        async def observe(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                message["headers"] = [*message["headers"], *SECURE_RAW]
            seen["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, observe)
        finally:
            seconds = time.perf_counter() - start
            path, method = scope["path"], scope["method"] if scope["method"] in METHODS else "other"
            self.metrics.count(path if path in self.routes else "other", method, seen["status"], seconds)
            client = (scope.get("client") or ("",))[0]
            entry = {"method": method, "path": path[:500], **seen, "ms": round(1000 * seconds, 3), "client": client}
            self.log({"time": timestamp(), **entry})


class BodyLimit:
    """Read the body first; refuse one that is too large or too slow."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            body = await self._body(scope, receive)
        except Problem as problem:
            await send_reply(replace(problem.reply(), headers={"Connection": "close"}), send)
            return
        if body is None:
            return
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        await self.app(scope, replay, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the whole body; None if the client disconnects."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self.most:
            raise self._too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while (message := await receive())["type"] == "http.request":
                    body += message.get("body", b"")
                    if len(body) > self.most:
                        raise self._too_large()
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise Problem(408, f"the request did not arrive within {BODY_SECONDS:g} s") from None
        return None

    def _too_large(self) -> Problem:
        return Problem(413, f"the request is larger than {self.most:,} bytes", advice="Send a smaller one.")


def timestamp() -> str:
    """Return the time as in the log, in UTC."""
    return time.strftime("%FT%TZ", time.gmtime())


def json_log(entry: dict[str, Any]) -> None:
    """Log a request as a line of JSON on stderr."""
    sys.stderr.write(json.dumps(entry) + "\n")


def plain_log(entry: dict[str, Any]) -> None:
    """Log a request as a line of text on stderr."""
    path = json.dumps(entry["path"])[1:-1]  # without line breaks and control characters
    sys.stderr.write(f"{entry['time']} {entry['status']} {entry['method']} {path} {entry['ms']:.0f} ms\n")


LOGS: dict[str, Log] = {"json": json_log, "plain": plain_log, "none": lambda _: None}
