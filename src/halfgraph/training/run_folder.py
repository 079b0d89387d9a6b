"""The folder of a run: settings, weights, checkpoint, metrics, provenance, model card and learning curves."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
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
CONFIG = "config.toml"
MODEL = "model.safetensors"  # the best weights
STATE = "state.safetensors"  # the last checkpoint
METRICS = "metrics.jsonl"
PROVENANCE = "provenance.json"
CARD = "README.md"
CURVES = "curves.png"
# Settings that runs of earlier versions do not have, with the values that these versions used.
LATER = {"path_length": 0.0, "hard_pooled_weight": 0.0}
RENAMED = {"kind_negatives": "type_negatives", "norm_by_kind": "norm_by_type"}  # settings by their earlier names
RESUME = "The last checkpoint is kept; make room and pass --resume."


def renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under their names of today."""
    return {RENAMED.get(name, name): value for name, value in settings.items()}


def write_atomically(path: Path, text: str) -> None:
    """Write a file of a run so that it has the old text or the new one, never a part of it."""
    files.write_atomically(path, text, advice=RESUME)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors so that the file has the old ones or the new ones, never a part of them."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with files.atomic_path(path, advice=RESUME) as part:
        try:
            save_file(whole, part, dict(metadata))
        except SafetensorError as error:
            raise OSError(str(error)) from error


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a file and its metadata."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except FileNotFoundError as error:
        raise FolderError(path, "is not there", advice="Train the model, or pass the folder of a run.") from error
    except (OSError, SafetensorError) as error:
        raise FolderError(path, f"cannot be read: {error}", advice="Train the model again.") from error


def write_toml(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Return sections of plain settings as TOML."""
    lines = []
    for section, values in settings.items():
        lines += [f"[{section}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items()), ""]
    return "\n".join(lines)


def provenance(graph: Graph, seed: int, workload: Workload | None = None) -> dict[str, Any]:
    """Return where a run comes from: graph, seed, questions, versions, machine."""
    return {
        "format": FORMAT,
        "graph": graph.fingerprint,
        "graph_path": str(graph.path.resolve()),
        "entities": len(graph.entities),
        "held_out": graph.held_out,
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
    """Return where the questions of a run come from: a hash of the workload, or "on the fly"."""
    if workload is None:
        return "on the fly"
    return hashlib.sha256(json.dumps(workload.description, sort_keys=True).encode()).hexdigest()[:12]


def read_provenance(run: Path) -> dict[str, Any]:
    """Read the provenance of a run."""
    path = run / PROVENANCE
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        problem = "no run here" if run.is_dir() else "no such folder"
        raise FolderError(run, problem, advice="Make one with: halfgraph train GRAPH --out RUN") from error
    except (OSError, ValueError) as error:
        raise FolderError(path, f"cannot be read: {error}", advice="Train the model again.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        version = content.get("format") if isinstance(content, dict) else "unknown"
        problem = f"has format {version}, but this halfgraph reads format {FORMAT}"
        raise FolderError(run, problem, advice="Train the model again.")
    if not {"graph", "seed", "source"} <= set(content):
        problem = "lacks the graph, the seed or the source of the questions"
        raise FolderError(path, problem, advice="Train the model again.")
    return content


def trained_graph(run: Path, graph: Graph) -> Graph:
    """Return the graph with the triples held out that the run has held out; raise OtherGraph if it is another graph."""
    about = read_provenance(run)
    if about["graph"] != graph.fingerprint:
        raise OtherGraph(run, expected=about["graph"], found=graph.fingerprint)
    held_out = about.get("held_out")
    if held_out == graph.held_out:
        return graph
    if held_out is None or graph.held_out is not None:
        raise FolderError(run, "was trained with other triples held out", advice="Open it without the other run.")
    return graph.with_held_out(held_out["count"], held_out["seed"])


def model_card(
    graph: Graph, name: str, about: Mapping[str, Any], recipe: Mapping[str, Any], history: Sequence[Mapping[str, Any]]
) -> str:
    """Return a page in Markdown: what the model is, what it was trained on, how well it does."""
    counts, source = graph.description["counts"], graph.description["provenance"]
    lines = [
        f"# {name} on graph {graph.fingerprint}",
        "",
        f"Trained by halfgraph on {counts['entities']:,} entities of {counts['types']:,} types, "
        f"{counts['relations']:,} relations, {counts['triples']['train']:,} training triples "
        f"(sources: {', '.join(source['sources'])}).",
        "",
        "| validation | AUC | AUC, hard negatives | APR | APR, hard negatives |",
        "|---|---|---|---|---|",
    ]
    for row in history:
        if "auc" in row:
            figures = " | ".join(f"{row[key]:.4f}" for key in ("auc", "auc_hard", "apr", "apr_hard"))
            lines.append(f"| step {row['step']:,}, {row['seconds']:,.0f} s | {figures} |")
    for title, values in (("model", about), ("recipe", recipe)):
        lines += ["", f"| {title} | |", "|---|---|", *(f"| {key} | {value} |" for key, value in values.items())]
    if attribution := source.get("attribution"):
        lines += ["", attribution]
    return "\n".join(lines) + "\n"


def draw_curves(run: Path) -> bool:
    """Draw the loss and the validation curves; return False without matplotlib or two validations."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    rows = [json.loads(line) for line in (run / METRICS).read_text(encoding="utf-8").splitlines()]
    if len(rows) < 2 or "auc" not in rows[0]:
        return False
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = [row["step"] for row in rows]
    left.plot(steps, [row["loss"] for row in rows], "o-", color="#1f6f8b")
    left.set(title="Loss", xlabel="step", yscale="log")
    for name, colour in (("auc", "#1f6f8b"), ("auc_hard", "#c26d3f"), ("apr", "#6b8e23"), ("apr_hard", "#8b5a9f")):
        values = [float("nan") if row[name] is None else row[name] for row in rows]
        right.plot(steps, values, "o-", color=colour, label=name.replace("_", " "))
    right.set(title="Validation", xlabel="step")
    right.legend()
    figure.savefig(run / CURVES, dpi=120)
    return True
