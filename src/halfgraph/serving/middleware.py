"""What every request passes through: counted and logged, its body bounded, headers that keep browsers strict."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halfgraph.serving.metrics import Metrics
from halfgraph.serving.problems import Problem, Reply

SECURE = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = {  # anybody's page may read the graph; no cookies or passwords are in play
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "X-Halfgraph-Note, X-Halfgraph-Cut, Retry-After",
}
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "Accept, Content-Type",
    "Access-Control-Max-Age": "86400",
}
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH")
BODY_SECONDS = 30.0  # in which a request's body must arrive
Log = Callable[[dict[str, Any]], None]


async def send_reply(reply: Reply, send: Send) -> None:
    """Nothing; a reply is sent as it is."""
    headers = {"content-type": reply.media, "content-length": str(len(reply.body)), **reply.headers}
    raw = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": reply.body})


class Observed:
    """Counts and logs each request, and adds the headers that every answer has."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: Log, routes: frozenset[str]) -> None:
        self.app, self.metrics, self.log, self.routes = app, metrics, log, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Nothing; the request is answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, seen = time.perf_counter(), {"status": 499, "bytes": 0}  # 499: the client has left

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in {**SECURE, **OPEN}.items():
                    headers[name] = value
            seen["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._answer(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - begun
            path, method = scope["path"], scope["method"] if scope["method"] in METHODS else "other"
            self.metrics.count(path if path in self.routes else "other", method, seen["status"], seconds)
            client = (scope.get("client") or ("",))[0]
            told = {"method": method, "path": path[:500], **seen, "seconds": round(seconds, 6), "client": client}
            self.log({"time": time.strftime("%FT%TZ", time.gmtime()), **told})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Nothing; a preflight is answered here, anything else by the application."""
        if scope["method"] == "OPTIONS":
            allow = {"Allow": PREFLIGHT["Access-Control-Allow-Methods"]}
            await send_reply(Reply(b"", "text/plain", 200, {**PREFLIGHT, **allow}), send)
        else:
            await self.app(scope, receive, send)


class Bounded:
    """Reads the body before anything else does; one that is too large or too slow is refused."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Nothing; the request is answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            body = await self._body(scope, receive)
        except Problem as problem:
            reply = problem.reply()
            await send_reply(Reply(reply.body, reply.media, reply.status, {"Connection": "close"}), send)
            return
        if body is None:
            return
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receiving() -> Message:
            return first.pop() if first else await receive()

        await self.app(scope, receiving, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, or None where the client has left."""
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


def json_log(told: dict[str, Any]) -> None:
    """Nothing; a request is logged as a line of JSON on stderr."""
    sys.stderr.write(json.dumps(told) + "\n")


def plain_log(told: dict[str, Any]) -> None:
    """Nothing; a request is logged as a line for people on stderr."""
    path = json.dumps(told["path"])[1:-1]  # no line breaks or signs that a terminal obeys
    sys.stderr.write(f"{told['time']} {told['status']} {told['method']} {path} {1000 * told['seconds']:.0f} ms\n")


LOGS: dict[str, Log] = {"json": json_log, "plain": plain_log, "none": lambda _: None}
