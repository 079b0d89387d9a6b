"""The command that measures how sure a trained model's answers are."""

from pathlib import Path
from typing import Annotated

import typer

from halfgraph.cli.screen import Json, print_json, print_table, telling
from halfgraph.errors import SettingError


def calibrate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.", show_default=False)],
    graph: Annotated[
        Path | None, typer.Option("--graph", "-g", help="The graph's folder, if it has moved.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the questions that are drawn.")] = 0,
    json: Json = False,
) -> None:
    """Fit what edges and vectors weigh, and the confidence of answers, on validation questions; `train` does so too.

    Example: halfgraph calibrate demo/run
    """
    from halfgraph.api import Graph, graph_of
    from halfgraph.prediction.calibrating import calibrate as measure
    from halfgraph.settings import read_config
    from halfgraph.training.run import load_encoder
    from halfgraph.training.run_folder import CONFIG

    opened = graph_of(run) if graph is None else Graph.open(graph)
    if not opened.has_split:
        problem = "has no split, so there is nothing to measure confidence on"
        raise SettingError("graph", problem, advice="Import it with --split 90/1/9, and train again.")
    encoder = load_encoder(run, opened, read_config(run / CONFIG).architecture)
    with telling(json) as told:
        found = measure(run, opened, encoder, seed, told)
    rows = [
        {"mode": mode, "structure": name, "answers": curve.answers, "way": curve.way, "surest": max(curve.rates)}
        for mode, curves in found.curves.items()
        for name, curve in curves.items()
    ]
    if json:
        print_json({"run": str(run), "curves": rows})
    else:
        print_table(f"Confidence of {run}", [*rows[0]], [[*row.values()] for row in rows])
