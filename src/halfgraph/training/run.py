"""A run from its start, or from where it stopped, to a trained model in a folder; and the model read back."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from halfgraph.errors import EmptyGraph, FolderError
from halfgraph.graph import files
from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import check_file
from halfgraph.graph.new_folder import folder_lock, new_folder
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder, describe
from halfgraph.training.batches import Batches, FromWorkload, OnTheFly, Source
from halfgraph.training.checkpoint import TrainingState, copy_weights
from halfgraph.training.loop import Budget, Progress, Validate, train
from halfgraph.training.recipe import Recipe
from halfgraph.training.run_folder import (
    AGAIN,
    CARD,
    CONFIG,
    LATER,
    MODEL,
    PROVENANCE,
    STATE,
    draw_curves,
    load_tensors,
    model_card,
    provenance,
    read_provenance,
    renamed,
    source_of,
    trained_graph,
    write_atomically,
    write_toml,
)
from halfgraph.workload.folder import Workload
from halfgraph.workload.sampling import Sampler

Settings = Mapping[str, Mapping[str, Any]]  # section, name, value
SHARE, FEWEST, MOST = 0.05, 20, 5_000  # triples that are held out of a graph without a split
LEAST = 10  # fewer are not worth it: confidence cannot be fitted on them


def new_encoder(architecture: Architecture, graph: Graph, seed: int, device: str) -> Encoder:
    """Return a model with fresh weights."""
    generator = torch.Generator().manual_seed(seed)
    return Encoder(architecture, graph.train, generator).to(device)


def start(
    out: Path, graph: Graph, settings: Settings, seed: int, workload: Workload | None = None, *, resume: bool
) -> Graph:
    """Make the folder of a new run, or check that the existing one can be resumed with this graph and settings.

    Return the graph to train on: one without a split gets validation triples, unless a workload has drawn its questions
    from all triples.
    """
    if not graph.train.triple_count:
        problem = "has no triple between two entities, so there is nothing to learn"
        raise EmptyGraph(problem, path=graph.path, advice="Exact answers come from: halfgraph query GRAPH SPARQL")
    if out.exists():
        if not resume:
            advice = "Remove it, pass --resume to continue it, or choose another --out."
            raise FolderError(out, "already exists", advice=advice)
        return _require_same_run(out, graph, settings, seed, workload)
    if workload is None and not graph.has_split:
        graph = hold_out(graph)
    with new_folder(out, made_by="the run") as folder:
        (folder / CONFIG).write_text(write_toml(settings), encoding="utf-8")
        (folder / PROVENANCE).write_text(json.dumps(provenance(graph, seed, workload), indent=1), encoding="utf-8")
    return graph


def hold_out(graph: Graph) -> Graph:
    """Hold out a twentieth of the triples for validation, a fifth at most; none if the graph is too small for that.

    The seed is always 0, so that all runs of a graph can be compared on the same triples.
    """
    total = graph.whole.triple_count
    held_out = graph.with_held_out(min(max(FEWEST, round(SHARE * total)), MOST, total // 5), seed=0)
    return graph if held_out.valid.triple_count < LEAST else held_out


def _require_same_run(out: Path, graph: Graph, settings: Settings, seed: int, workload: Workload | None) -> Graph:
    """Return the graph that the run is trained on; raise FolderError if anything else has changed."""
    graph = trained_graph(out, graph)
    started = read_provenance(out)
    if started["seed"] != seed or not _has_settings(out, settings):
        advice = "Resume with --config and its config.toml, and with its seed."
        raise FolderError(out, "was started with other settings", advice=advice)
    if started["source"] != source_of(workload):
        raise FolderError(out, "was started with other questions", advice="Resume with the same workload, or none.")
    return graph


def _has_settings(out: Path, settings: Settings) -> bool:
    """Return whether the run was started with these settings, perhaps by an earlier version."""
    try:
        written = tomllib.loads(check_file(out / CONFIG, AGAIN).read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return all(
        {name: LATER[name] for name in values if name in LATER} | renamed(written.get(section, {})) == values
        for section, values in settings.items()
    )


def run(
    out: Path,
    graph: Graph,
    encoder: Encoder,
    recipe: Recipe,
    budget: Budget,
    *,
    name: str,
    seed: int,
    workload: Workload | None = None,
    validate: Validate | None = None,
    progress: Progress = lambda *_: None,
) -> TrainingState:
    """Train in a folder that `start` made; it then has the best weights, metrics, curves and a model card."""
    sampler = Sampler(graph.train, recipe.uniform, threads=1)
    source: Source = OnTheFly(sampler) if workload is None else FromWorkload(workload)
    about = describe(encoder)
    with folder_lock(out):
        state = train(encoder, Batches(graph.train, source, recipe, seed), budget, out, validate, progress)
        _finish(out, state, about, model_card(graph, name, about, asdict(recipe), state.history))
    return state


def _finish(out: Path, state: TrainingState, about: Mapping[str, Any], card: str) -> None:
    """Write what is known when a run has reached its end."""
    write_atomically(out / CARD, card)
    finished = {
        "seconds": round(state.seconds, 1),
        "steps": state.step,
        "questions": state.questions,
        "best_step": state.best_step,
        "parameters": about["parameters"],
        "intersection_parameters": about["intersection_parameters"],
    }
    write_atomically(out / PROVENANCE, json.dumps(read_provenance(out) | finished, indent=1))
    draw_curves(out)


def load_encoder(out: Path, graph: Graph, architecture: Architecture, device: str = "cpu") -> Encoder:
    """Return the model of a run with its best weights."""
    advice = "Pass the folder of a run as it was written."
    tensors, _ = load_tensors(out / MODEL)
    graph = trained_graph(out, graph)
    try:
        encoder = new_encoder(architecture, graph, 0, device)
    except RuntimeError as error:  # torch's way to say that sizes are too large
        raise FolderError(
            out / CONFIG, f"has an impossible size: {files.excerpt(str(error))}", advice=advice
        ) from error
    copy_weights(dict(encoder.named_parameters()), tensors, out / MODEL, advice=advice)
    return encoder.eval()


def is_finished(out: Path) -> bool:
    """Return whether a run has reached its end."""
    return (out / CARD).exists() and (out / STATE).exists()
