"""`halfgraph calibrate`: fit the weights and the confidence of a trained run."""

from typing import Annotated

import typer

from halfgraph.cli.options import Json, RunFolder, RunGraph
from halfgraph.cli.output import print_json, print_table, progress
from halfgraph.errors import SettingError


def calibrate(
    run: RunFolder,
    graph: RunGraph = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sampled questions.")] = 0,
    json: Json = False,
) -> None:
    """Fit score weights and confidence (also done by `train`).

    Example: halfgraph calibrate demo/run
    """
    from halfgraph.api import open_run
    from halfgraph.prediction.calibration_fitting import calibrate as fit

    opened = open_run(run, graph)
    if not opened.graph.has_split:
        problem = "has no validation triples to fit confidence on"
        raise SettingError("graph", problem, advice="Train again without a workload, or import it with --split 90/1/9.")
    with progress(json) as show:
        calibration = fit(run, opened.graph, opened.encoder, seed, show)
    rows = [
        {"mode": mode, "structure": name, "answers": curve.answers, "way": curve.way, "surest": max(curve.rates)}
        for mode, curves in calibration.curves.items()
        for name, curve in curves.items()
    ]
    if json:
        print_json({"run": str(run), "curves": rows})
    else:
        print_table(f"Confidence of {run}", [*rows[0]], [[*row.values()] for row in rows])
