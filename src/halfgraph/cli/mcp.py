"""`halfgraph mcp`: tools for agents, by the Model Context Protocol."""

import asyncio
import importlib.util
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from halfgraph.cli.options import Missing, RunFolder, RunGraph, View
from halfgraph.cli.output import note
from halfgraph.cli.serve import open_worker, served_graph
from halfgraph.errors import MissingPackage

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from halfgraph.answering.pool import WorkerPool
    from halfgraph.answering.workers import Handler
    from halfgraph.serving.schema import Limits

HOST = "127.0.0.1"


def mcp(
    run: RunFolder,
    graph: RunGraph = None,
    http: Annotated[
        int | None, Option(metavar="PORT", help="Serve HTTP at this port of 127.0.0.1 instead of stdio; 0 picks one.")
    ] = None,
    view: View = "whole",
    missing: Missing = None,
    time_limit: Annotated[float, Option(help="Seconds that a call may take.")] = 30.0,
    rows: Annotated[int, Option(help="Maximum number of known rows in an answer.")] = 200,
    characters: Annotated[int, Option(min=2_000, help="Maximum length of a result.")] = 20_000,
    memory: Annotated[int, Option(help="Megabytes of memory that a call may take.")] = 2_000,
) -> None:
    """Serve a trained run to an agent (MCP).

    The tools are search, describe, ask, explain and complete. A client of the Model Context Protocol starts this
    command and talks to it over stdin and stdout; with --http it connects to http://127.0.0.1:PORT/mcp instead. The
    folder of a graph is served without predictions.

    Example: halfgraph mcp demo/run --view train
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingPackage(package="mcp", needed_for="halfgraph mcp", command="pip install 'halfgraph[mcp]'")
    from halfgraph.answering.pool import WorkerPool
    from halfgraph.serving.app import address, listening
    from halfgraph.serving.mcp_server import PATH, serve
    from halfgraph.serving.schema import Limits

    limits = Limits(time=time_limit, rows=rows, memory=memory, workers=1)
    listener = None if http is None else listening(HOST, http)
    load = partial(open_worker, run, graph, view, limits, missing, for_agents=True)
    pool = WorkerPool(load, size=1, queue=limits.queue, seconds=time_limit, memory=memory, spare=0)
    where = "stdio" if listener is None else f"{address(listener)}{PATH[1:]}"
    ready = partial(note, f"halfgraph: {run} is ready at {where}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asyncio.run(serve(pool, partial(_server, pool, load, view, limits, characters), listener, ready))


def _server(
    workers: "WorkerPool",
    load: "partial[tuple[dict[str, Any], Handler]]",
    view: str,
    limits: "Limits",
    characters: int,
    ready: dict[str, Any],
) -> "MCPServer[Any]":
    """Return the server, after the worker has opened the run and its graph."""
    from halfgraph.serving.completion import Completion
    from halfgraph.serving.mcp_server import AgentTools, server_of

    graph = served_graph(ready)
    workers.load = partial(load, served=ready["served"])  # so that later workers open the same
    tools = AgentTools(workers, Completion.of(graph, view), limits, characters)
    counts = graph.description["counts"]
    return server_of(tools, f"{graph.path.name}: {counts['entities']:,} entities, {counts['relations']:,} relations")
