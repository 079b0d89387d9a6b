"""`halfgraph serve`: a SPARQL endpoint with predictions, a JSON API and a web page for a trained run."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option, echo

from halfgraph.cli.options import Missing, RunGraph, View
from halfgraph.cli.output import note

if TYPE_CHECKING:
    from halfgraph.answering.engine import Engine
    from halfgraph.answering.exact_engine import ExactEngine
    from halfgraph.answering.pool import WorkerPool
    from halfgraph.answering.workers import Handler
    from halfgraph.graph.folder import Graph
    from halfgraph.serving.access import AccessRules
    from halfgraph.serving.api import AppContext
    from halfgraph.serving.schema import Limits

HostNames = Annotated[list[str], Option(metavar="NAME", help="Another host name of the server; repeatable.")]
Origins = Annotated[list[str], Option(metavar="ORIGIN", help="Site whose pages may read answers, or *; repeatable.")]


def serve(
    run: Annotated[Path, Argument(metavar="RUN", help="Folder of a trained run, or of a graph for exact answers.")],
    graph: RunGraph = None,
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0 admits other machines.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0 picks a free one.")] = 8000,
    view: View = "whole",
    missing: Missing = None,
    workers: Annotated[int, Option(help="Number of queries that run at the same time.")] = 2,
    queue: Annotated[int, Option(help="Number of queries of one client that may wait for a worker.")] = 256,
    time_limit: Annotated[float, Option(help="Seconds that a query may take.")] = 30.0,
    rows: Annotated[int, Option(help="Maximum number of rows in an answer.")] = 10_000,
    memory: Annotated[int, Option(help="Megabytes of memory that a query may take.")] = 2_000,
    answer: Annotated[int, Option(help="Megabytes that an answer may have.")] = 50,
    token_file: Annotated[
        Path | None, Option(help="File of tokens, one in each line; every request then needs one of them.")
    ] = None,
    token: Annotated[
        str | None, Option(envvar="HALFGRAPH_TOKEN", help="A token; the list of processes shows it, so prefer a file.")
    ] = None,
    allow_host: HostNames = [],  # noqa: B006
    cors: Origins = [],  # noqa: B006
    log: Annotated[
        Literal["plain", "json", "none"], Option(help="Format of the log on stderr: a line of text or JSON each.")
    ] = "plain",
) -> None:
    """Serve a trained run over HTTP.

    /sparql answers exactly, /sparql/predict also predicts, /api returns JSON, and / is a web page. Ctrl-C stops it. The
    folder of a graph is served without predictions.

    Example: halfgraph serve demo/run --view train
    """
    from halfgraph.answering.pool import WorkerPool
    from halfgraph.serving.access import AccessRules, read_tokens
    from halfgraph.serving.app import address, is_loopback, listening
    from halfgraph.serving.app import run as run_server
    from halfgraph.serving.schema import Limits

    limits = Limits(time=time_limit, rows=rows, answer=answer, memory=memory, workers=workers, queue=queue)
    tokens = [*(read_tokens(token_file) if token_file else ()), *([] if token is None else [token])]
    rules = AccessRules.of([host, *allow_host], cors, tokens)
    with listening(host, port) as listener:
        if not tokens and not is_loopback(listener):
            _tell(log, f"warning: anyone who reaches {host} can query the graph. Use --token-file to prevent it.")
        _tell(log, f"opening {run} ...")
        load = partial(open_worker, run, graph, view, limits, missing)
        pool = WorkerPool(load, size=workers, queue=queue, seconds=time_limit, memory=memory)
        context = partial(_context, pool, load, run, view, limits, rules)
        announce = partial(echo, f"halfgraph serves {run} at {address(listener)}")
        run_server(pool, context, limits, listener, log, announce)


def _tell(log: str, text: str) -> None:
    """Print a message on stderr, in the format of the log."""
    from halfgraph.serving.middleware import json_log, timestamp

    if log == "json":
        json_log({"time": timestamp(), "message": text})
    else:
        note(f"halfgraph: {text}")


def _context(
    workers: "WorkerPool",
    load: "partial[tuple[dict[str, Any], Handler]]",
    run: Path,
    view: str,
    limits: "Limits",
    rules: "AccessRules",
    ready: dict[str, Any],
) -> "AppContext":
    """Return what the server needs, after a worker has opened the run and its graph."""
    from halfgraph.serving.api import AppContext
    from halfgraph.serving.completion import Completion
    from halfgraph.serving.description import info

    graph = served_graph(ready)
    workers.load = partial(load, served=ready["served"])  # so that later workers open the same
    described = info(graph, run, view, ready["modes"], limits)
    return AppContext(workers, limits, Completion.of(graph, view), described, rules, (str(run), ready["graph"]))


def served_graph(ready: dict[str, Any]) -> "Graph":
    """Open the graph that a worker has opened; the run's own reader would import torch."""
    from halfgraph.graph.folder import Graph

    graph, held_out = Graph.open(ready["graph"]), ready["held_out"]
    return graph if held_out is None else graph.with_held_out(held_out["count"], held_out["seed"])


def open_worker(
    run: Path,
    graph: Path | None,
    view: str,
    limits: "Limits",
    missing: float | None = None,
    served: str | None = None,
    *,
    for_agents: bool = False,
) -> "tuple[dict[str, Any], Handler]":
    """Open a run, or a graph without one, in a worker process, with the tasks of the server or those for agents."""
    from halfgraph.graph.folder import DESCRIPTION
    from halfgraph.serving.agent_tasks import AGENT_TASKS
    from halfgraph.serving.tasks import TASKS, open_context

    trained = None if (run / DESCRIPTION).is_file() else run
    load = partial(_load_engine, trained, run if trained is None else graph, view, missing)
    return open_context(load, limits, trained, served, AGENT_TASKS if for_agents else TASKS)


def _load_engine(run: Path | None, graph: Path | None, view: str, missing: float | None) -> "Engine | ExactEngine":
    from halfgraph.answering.exact_engine import ExactEngine
    from halfgraph.api import load
    from halfgraph.graph.folder import Graph

    if run is not None:
        return load(run, graph, view, missing=missing)
    assert graph is not None
    return ExactEngine(Graph.open(graph), view)
