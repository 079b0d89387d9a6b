"""A run from its beginning, or from where it stopped, to a trained model in a folder; and a trained model back."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from halfgraph.errors import FolderError
from halfgraph.graph.folder import Graph, new_folder
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder, describe
from halfgraph.training.batches import Batches, FromWorkload, OnTheFly, Source
from halfgraph.training.card import model_card
from halfgraph.training.curves import draw_curves
from halfgraph.training.loop import Budget, Progress, Told, Validate, train
from halfgraph.training.recipe import Recipe
from halfgraph.training.run_folder import (
    CARD,
    CONFIG,
    LATER,
    MODEL,
    PROVENANCE,
    STATE,
    load_tensors,
    provenance,
    read_provenance,
    renamed,
    require_graph,
    source_of,
    write_atomically,
    write_toml,
)
from halfgraph.workload.folder import Workload
from halfgraph.workload.sampling import Sampler


def new_encoder(architecture: Architecture, graph: Graph, seed: int, device: str) -> Encoder:
    """A model with fresh weights."""
    generator = torch.Generator().manual_seed(seed)
    return Encoder(architecture, graph.train, generator).to(device)


def start(
    out: Path,
    graph: Graph,
    settings: Mapping[str, Mapping[str, Any]],
    seed: int,
    workload: Workload | None = None,
    *,
    resume: bool,
) -> None:
    """Nothing; the folder of a run is made, or found to be the one to go on with."""
    if out.exists() and not resume:
        raise FolderError(
            out, "is already there", advice="Remove it, pass --resume to go on with it, or another --out."
        )
    if out.exists():
        require_graph(out, graph)
        begun = read_provenance(out)
        if not _is_of(settings, (out / CONFIG).read_text(encoding="utf-8")) or begun["seed"] != seed:
            problem = "was begun with other settings"
            raise FolderError(out, problem, advice="Resume with --config and its config.toml, and its seed.")
        if begun["source"] != source_of(workload):
            raise FolderError(out, "was begun with other questions", advice="Resume with the same workload, or none.")
        return
    with new_folder(out, made_by="the run") as folder:
        (folder / CONFIG).write_text(write_toml(settings), encoding="utf-8")
        (folder / PROVENANCE).write_text(json.dumps(provenance(graph, seed, workload), indent=1), encoding="utf-8")


def _is_of(settings: Mapping[str, Mapping[str, Any]], text: str) -> bool:
    """Whether a run's own text says these settings; that of an earlier version is silent on what came later."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return all(
        {**{name: LATER[name] for name in values if name in LATER}, **renamed(told.get(section, {}))} == values
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
    told: Told = lambda *_: None,
) -> Progress:
    """Where the run ended; its folder then has the best weights, metrics, curves and a card."""
    sampler = Sampler(graph.train, recipe.uniform, threads=1)
    source: Source = OnTheFly(sampler) if workload is None else FromWorkload(workload)
    progress = train(encoder, Batches(graph.train, source, recipe, seed), budget, out, validate, told)
    about = describe(encoder)
    write_atomically(out / CARD, model_card(graph, name, about, asdict(recipe), progress.history))
    finished = {
        "seconds": round(progress.seconds, 1),
        "steps": progress.step,
        "questions": progress.questions,
        "best_step": progress.best_step,
        "parameters": about["parameters"],
        "intersection_parameters": about["intersection_parameters"],
    }
    write_atomically(out / PROVENANCE, json.dumps(read_provenance(out) | finished, indent=1))
    draw_curves(out)
    return progress


def load_encoder(out: Path, graph: Graph, architecture: Architecture, device: str = "cpu") -> Encoder:
    """The model of a run, with its best weights."""
    require_graph(out, graph)
    encoder = new_encoder(architecture, graph, 0, device)
    tensors, _ = load_tensors(out / MODEL)
    _put(encoder, tensors, out / MODEL)
    encoder.eval()
    return encoder


@torch.no_grad()
def _put(encoder: Encoder, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Nothing; the weights are those of the file."""
    for name, parameter in encoder.named_parameters():
        found = tensors.get(name)
        if found is None or found.shape != parameter.shape:
            problem = f"does not fit the model: {name} is {'missing' if found is None else tuple(found.shape)}"
            raise FolderError(path, problem, advice="Pass the folder of a run as it was written.")
        parameter.copy_(found)


def is_finished(out: Path) -> bool:
    """Whether a run has come to its end."""
    return (out / CARD).exists() and (out / STATE).exists()
