"""A run on disk: settings, weights without pickle, the state to go on from, metrics, provenance and a model card."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from halfgraph import __version__
from halfgraph.errors import FolderError, OtherGraph
from halfgraph.graph import files
from halfgraph.graph.folder import Graph
from halfgraph.workload.folder import Workload

FORMAT = 1
CONFIG, MODEL, STATE, METRICS, PROVENANCE, CARD = (
    "config.toml",
    "model.safetensors",
    "state.safetensors",
    "metrics.jsonl",
    "provenance.json",
    "README.md",
)
RESUME = "The last checkpoint is kept; make room and pass --resume."
# Settings that runs of earlier versions do not say, and what these were made with.
LATER = {"path_length": 0.0, "hard_pooled_weight": 0.0}
RENAMED = {"kind_negatives": "type_negatives", "norm_by_kind": "norm_by_type"}  # settings by their earlier names


def write_atomically(path: Path, text: str) -> None:
    """Write a file of a run so that it has the old text or the new one, never a part of it."""
    files.write_atomically(path, text, advice=RESUME)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Write tensors so that the file has the old ones or the new ones, never a part of them."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with files.atomic_path(path, advice=RESUME) as part:
        try:
            save_file(whole, part, dict(about))
        except SafetensorError as error:
            raise OSError(str(error)) from error


def renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under their names of today."""
    return {RENAMED.get(name, name): value for name, value in settings.items()}


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file and what it says about them."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except FileNotFoundError as error:
        raise FolderError(path, "is not there", advice="Train the model, or pass the folder of a run.") from error
    except (OSError, SafetensorError) as error:
        raise FolderError(path, f"cannot be read: {error}", advice="Train the model again.") from error


def write_toml(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Plain settings, section by section, as TOML."""
    lines = []
    for section, values in settings.items():
        lines += [f"[{section}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items()), ""]
    return "\n".join(lines)


def provenance(graph: Graph, seed: int, workload: Workload | None = None) -> dict[str, Any]:
    """Where a run comes from: graph, seed, questions, versions, machine."""
    return {
        "format": FORMAT,
        "graph": graph.fingerprint,
        "graph_path": str(graph.path.resolve()),
        "entities": len(graph.entities),
        "seed": seed,
        "source": source_of(workload),
        "halfgraph": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "begun": time.strftime("%FT%TZ", time.gmtime()),
    }


def source_of(workload: Workload | None) -> str:
    """Where the questions of a run come from: a hash that tells one workload from others, or "on the fly"."""
    if workload is None:
        return "on the fly"
    return hashlib.sha256(json.dumps(workload.description, sort_keys=True).encode()).hexdigest()[:12]


def read_provenance(run: Path) -> dict[str, Any]:
    """Where a run comes from."""
    path = run / PROVENANCE
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        problem = "no run here" if run.is_dir() else "no such folder"
        raise FolderError(run, problem, advice="Make one with: halfgraph train GRAPH --out RUN") from error
    except (OSError, ValueError) as error:
        raise FolderError(path, f"cannot be read: {error}", advice="Train the model again.") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        is_of = found.get("format") if isinstance(found, dict) else "unknown"
        problem = f"is of format {is_of}, and this halfgraph reads format {FORMAT}"
        raise FolderError(run, problem, advice="Train the model again.")
    if not {"graph", "seed", "source"} <= set(found):
        problem = "does not say the graph, the seed and the questions of the run"
        raise FolderError(path, problem, advice="Train the model again.")
    return found


def require_graph(run: Path, graph: Graph) -> None:
    """Nothing, or an error where a run was trained on another graph."""
    found = read_provenance(run)
    if found["graph"] != graph.fingerprint:
        raise OtherGraph(run, expected=found["graph"], found=graph.fingerprint)
