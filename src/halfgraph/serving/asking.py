"""A request to the workers and back; when the asker leaves, so does what still waits."""

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from halfgraph.serving.problems import Problem, Reply
from halfgraph.serving.workers import Workers


async def answered(workers: Workers, job: Mapping[str, Any], request: Request) -> Reply:
    """The reply of a worker to a job of a request; an error where the client has left."""
    asking = asyncio.create_task(workers.ask(job))
    leaving = asyncio.create_task(_left(request))
    try:
        await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            raise Problem(499, "the client has left")
        reply = await asking
    finally:
        asking.cancel()
        leaving.cancel()
    return reply


async def _left(request: Request) -> None:
    """Nothing, once the client has left."""
    await request.body()
    while (await request.receive())["type"] != "http.disconnect":
        pass


def response(reply: Reply, headers: Mapping[str, str] | None = None) -> Response:
    """A reply as what the framework sends."""
    return Response(reply.body, reply.status, {**reply.headers, **(headers or {})}, media_type=reply.media)
