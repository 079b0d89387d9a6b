"""The command that serves a trained run over HTTP: a SPARQL endpoint with predictions, a JSON API and a page."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfgraph.cli.query import View
from halfgraph.cli.screen import note

if TYPE_CHECKING:
    from halfgraph.answering.engine import Engine
    from halfgraph.answering.workers import Handler, WorkerPool
    from halfgraph.serving.api import Service
    from halfgraph.serving.schema import Limits


class Log(StrEnum):
    """How requests are logged on stderr."""

    plain = "plain"
    json = "json"
    none = "none"


def serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.", show_default=False)],
    graph: Annotated[
        Path | None, typer.Option("--graph", "-g", help="The graph's folder, if it has moved.", show_default=False)
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes any free one.")] = 8000,
    view: Annotated[
        View, typer.Option(help="Which triples count as known: all, without test, training only.")
    ] = View.whole,
    workers: Annotated[int, typer.Option(help="How many queries run at the same time.")] = 2,
    queue: Annotated[int, typer.Option(help="How many more may wait.")] = 64,
    time_limit: Annotated[float, typer.Option(help="Seconds that a query may take.")] = 30.0,
    rows: Annotated[int, typer.Option(help="How many rows an answer may have.")] = 10_000,
    memory: Annotated[int, typer.Option(help="Megabytes that a query may take.")] = 2_000,
    log: Annotated[Log, typer.Option(help="How requests are logged on stderr.")] = Log.plain,
) -> None:
    """Serve a run: /sparql (exact), /sparql/predict, /api and a page for people. SIGTERM or Ctrl-C end it.

    Example: halfgraph serve demo/run --view train
    """
    from halfgraph.answering.workers import WorkerPool
    from halfgraph.serving.app import address, listening
    from halfgraph.serving.app import run as run_server
    from halfgraph.serving.schema import Limits

    limits = Limits(time=time_limit, rows=rows, memory=memory, workers=workers, queue=queue)
    with listening(host, port) as listener:
        note(f"halfgraph: opening {run} ...")
        load = partial(open_worker, run, graph, view.value, limits)
        pool = WorkerPool(load, size=workers, queue=queue, seconds=time_limit, memory=memory)
        run_server(
            pool,
            partial(_service, pool, run, view.value, limits),
            limits,
            listener,
            log.value,
            lambda: typer.echo(f"halfgraph serves {run} at {address(listener)}"),
        )


def _service(workers: "WorkerPool", run: Path, view: str, limits: "Limits", ready: dict[str, Any]) -> "Service":
    """What the server needs, once a worker has opened the run and its graph."""
    from halfgraph.graph.folder import Graph
    from halfgraph.serving.api import Service
    from halfgraph.serving.completion import Completion
    from halfgraph.serving.description import info

    graph = Graph.open(ready["graph"])
    described = info(graph, run, view, ready["modes"], limits)
    return Service(workers, limits, Completion.of(graph, view), described, (str(run), ready["graph"]))


def open_worker(run: Path, graph: Path | None, view: str, limits: "Limits") -> "tuple[dict[str, Any], Handler]":
    """Load a run in a worker process."""
    from halfgraph.serving.tasks import open_context

    return open_context(partial(load_engine, run, graph, view), limits)


def load_engine(run: Path, graph: Path | None, view: str) -> "Engine":
    """The engine of a run, opened in a worker."""
    from halfgraph.answering.engine import Engine
    from halfgraph.graph.folder import Graph
    from halfgraph.settings import read_config
    from halfgraph.training.run_folder import CONFIG, read_provenance

    source = graph or Path(read_provenance(run)["graph_path"])
    return Engine.load(run, Graph.open(source), read_config(run / CONFIG).architecture, view)
