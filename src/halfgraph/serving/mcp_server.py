"""The tools for agents as a server of the Model Context Protocol, over stdio or streamable HTTP.

The protocol is that of the package `mcp`. The tools run as tasks of a worker process with limits of time and memory.
"""

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from halfgraph import __version__
from halfgraph.answering.pool import WorkerPool
from halfgraph.errors import HalfgraphError
from halfgraph.serving.agent_schema import (
    MEANING,
    AnswerReason,
    DescribedEntity,
    MissingResult,
    QueryAnswer,
    SearchResult,
    shortened,
)
from halfgraph.serving.completion import Completion
from halfgraph.serving.problems import Reply, as_json
from halfgraph.serving.schema import Limits

PATH = "/mcp"
MOST = 100  # predictions or matches that a call may ask for

Entity = Annotated[
    str, Field(max_length=10_000, description="An IRI, a prefixed name or a label, such as search gives.")
]
Sparql = Annotated[
    str, Field(max_length=100_000, description="A SPARQL query. Prefixes of the graph need no declaration.")
]
Confidence = Annotated[float, Field(ge=0, le=1, description="Leave out predictions below this confidence.")]
Count = Annotated[int, Field(ge=1, le=MOST)]
READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True)
class AgentTools:
    """The tools: search here, the others in a worker process."""

    workers: WorkerPool
    completion: Completion
    limits: Limits
    characters: int

    async def search(
        self,
        text: Annotated[str, Field(max_length=500, description="A word of a label, its start, or a prefixed name.")],
        kind: Annotated[Literal["entity", "relation", "type", "any"], Field(description="What to look for.")] = "any",
        limit: Count = 10,
    ) -> Annotated[CallToolResult, SearchResult]:
        """Find entities, relations and types by label. Use `insert` of a match in a query or in another tool."""
        matches = await asyncio.to_thread(self.completion.complete, text, kind, limit)
        return _result(as_json(shortened(SearchResult(matches=matches), self.characters)))

    async def describe(
        self, entity: Entity, limit: Count = 30, predictions: Count = 10
    ) -> Annotated[CallToolResult, DescribedEntity]:
        """Describe an entity: its types, known statements and literals, and statements that the model predicts."""
        return await self._run("describe", entity=entity, limit=limit, predictions=predictions)

    async def ask(
        self,
        query: Sparql,
        rows: Annotated[int, Field(ge=1, description="Known rows to give.")] = 50,
        top: Annotated[int, Field(ge=1, le=MOST, description="Predicted rows to give.")] = 10,
        min_confidence: Confidence | None = None,
    ) -> Annotated[CallToolResult, QueryAnswer]:
        """Answer a SPARQL query: exact rows of the graph first, then rows that the model predicts.

        If nothing can be predicted for the query, a note gives the reason.
        """
        rows = min(rows, self.limits.rows)
        return await self._run("ask", query=query, rows=rows, top=top, min_confidence=min_confidence)

    async def explain(
        self,
        query: Sparql,
        entity: Entity | None = None,
        row: Annotated[
            dict[str, str] | None, Field(description="The entity of each variable, if there are several.")
        ] = None,
    ) -> Annotated[CallToolResult, AnswerReason]:
        """Explain why an entity, or a row, is an answer to a query: the triples that it needs, known and predicted."""
        return await self._run("explain", query=query, entity=entity, row=row)

    async def complete(
        self,
        entity: Entity | None = None,
        relation: Entity | None = None,
        limit: Count = 20,
        min_confidence: Confidence = 0.0,
    ) -> Annotated[CallToolResult, MissingResult]:
        """List statements that the graph lacks and the model predicts, of one entity or of one relation."""
        job = {"entity": entity, "relation": relation, "limit": limit, "min_confidence": min_confidence}
        return await self._run("complete", **job)

    async def _run(self, task: str, **job: Any) -> CallToolResult:
        """Return the result of a task; its error becomes an error of the tool."""
        try:
            message = await self.workers.ask({"task": task, "characters": self.characters, **job})
        except HalfgraphError as error:
            raise ToolError(str(error)) from error
        reply = Reply.of(message)
        if reply.status >= 400:
            raise ToolError(json.loads(reply.body)["error"]["message"])
        return _result(reply.body)


def _result(body: bytes) -> CallToolResult:
    """A result as text, for clients that know only that, and as data."""
    text = body.decode()
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=json.loads(text))


def server_of(tools: AgentTools, graph: str) -> MCPServer[Any]:
    """Return the server of the tools."""
    instructions = f"halfgraph answers questions about an incomplete knowledge graph ({graph}). {MEANING}"
    server: MCPServer[Any] = MCPServer(
        "halfgraph", version=__version__, instructions=instructions, log_level="ERROR", subscriptions=False
    )
    for tool in (tools.search, tools.describe, tools.ask, tools.explain, tools.complete):
        server.add_tool(tool, annotations=READS)
    return server


async def serve(
    workers: WorkerPool,
    make: Callable[[Any], MCPServer[Any]],
    listener: socket.socket | None,
    ready: Callable[[], None],
) -> None:
    """Serve over stdio, or over HTTP at a listening socket, until the client leaves or a signal comes."""
    try:
        server = make(await workers.start())
        ready()
        if listener is None:
            await server.run_stdio_async()
        else:
            logging.getLogger("uvicorn").setLevel(logging.ERROR)
            app = server.streamable_http_app(streamable_http_path=PATH, host="127.0.0.1")
            config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, ws="none")
            await uvicorn.Server(config).serve(sockets=[listener])
    finally:
        await workers.close()
