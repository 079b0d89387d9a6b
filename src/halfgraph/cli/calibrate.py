"""`halfgraph calibrate`: make the link models of a run, from which confidences come."""

from typing import Annotated

import typer

from halfgraph.cli.options import Json, RunFolder, RunGraph
from halfgraph.cli.output import print_json, print_table, progress
from halfgraph.errors import SettingError


def calibrate(
    run: RunFolder,
    graph: RunGraph = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Train ComplEx and fit the link weights (as `train` does).

    Example: halfgraph calibrate demo/run
    """
    from halfgraph.api import open_run
    from halfgraph.prediction.calibration import calibrate as fit
    from halfgraph.prediction.link_features import FEATURES

    opened = open_run(run, graph)
    if not opened.graph.has_split:
        problem = "has no validation triples to fit confidence on"
        raise SettingError("graph", problem, advice="Train again without a workload, or import it with --split 90/1/9.")
    with progress(json) as show:
        models = fit(run, opened.graph, opened.encoder, seed, show)
    if models is None:
        raise SettingError("graph", "has too few validation triples to fit on", advice="Hold out at least ten.")
    weights = models.weights
    if json:
        print_json({"run": str(run), "missing": models.missing, "bias": weights.bias, "by_sort": weights.by_sort})
        return
    rows = [(name, *column) for name, column in zip(FEATURES, zip(*weights.by_sort, strict=True), strict=True)]
    columns = ["feature", "no known tail", "1 to 4", "5 or more"]
    print_table(f"Link weights of {run}, for {models.missing:,} missing triples", columns, rows)
