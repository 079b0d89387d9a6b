"""Calibration of a run: ComplEx is trained beside CGA, and the link weights are fitted on held-out triples."""

from collections.abc import Callable
from pathlib import Path

from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import remove_file
from halfgraph.graph.new_folder import folder_lock
from halfgraph.model.encoder import Encoder
from halfgraph.model.threads import torch_threads
from halfgraph.prediction.link_fitting import LEAST_HELD_OUT
from halfgraph.prediction.predictors import LinkModels, fit_models
from halfgraph.training.link_training import STATE, train_links

LINK_SHARE = 0.3  # of the training time, for ComplEx
Progress = Callable[[str, int, int], None]  # activity, number of its parts, number done since the last call


def time_for_links(minutes: float | None) -> tuple[float | None, float | None]:
    """Divide the training time: minutes for CGA, and seconds for ComplEx; None for both if there is no limit."""
    return (None, None) if minutes is None else ((1 - LINK_SHARE) * minutes, LINK_SHARE * 60 * minutes)


def calibrate(
    run: Path,
    graph: Graph,
    encoder: Encoder,
    seed: int,
    progress: Progress = lambda *_: None,
    *,
    seconds: float | None = None,
) -> LinkModels | None:
    """Train ComplEx, fit the link weights and write both to the run folder; None if too few triples are held out.

    `seconds` limits the training of ComplEx.
    """
    if len(graph.valid.tails) < LEAST_HELD_OUT:
        return None
    state = run / STATE
    with folder_lock(run):
        complex_ = train_links(
            graph.train,
            seed,
            seconds=seconds,
            state=state,
            progress=lambda total, done: progress("Training links", total, done),
        )
        with torch_threads(1):  # so that the weights do not depend on the number of threads
            models = fit_models(complex_, encoder, graph, seed, progress)
        models.save(run)
        remove_file(state)
    return models
