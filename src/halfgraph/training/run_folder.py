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
from halfgraph.graph.description import FORMAT, read_description
from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import check_file, has_file, replaced_file, require_fields
from halfgraph.workload.folder import Workload

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
AGAIN = "Train the model again."
RESUME = "The last checkpoint is kept; make room, and run the command again (train with --resume)."


def renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under their names of today."""
    return {RENAMED.get(name, name): value for name, value in settings.items()}


def write_atomically(path: Path, text: str) -> None:
    """Write a file of a run so that it has the old text or the new one, never a part of it."""
    with replaced_file(path, advice=RESUME) as part:
        part.write_bytes(text.encode())


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors so that the file has the old ones or the new ones, never a part of them."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replaced_file(path, advice=RESUME) as part:
        try:
            save_file(whole, part, dict(metadata))
        except SafetensorError as error:
            raise OSError(str(error)) from error


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a file and its metadata."""
    if not has_file(path, AGAIN):
        raise FolderError(path, "is not there", advice="Train the model, or pass the folder of a run.")
    check_file(path, AGAIN)
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except Exception as error:  # a broken header raises whatever its bytes happen to ask for
        raise FolderError(path, f"cannot be read: {files.excerpt(str(error))}", advice=AGAIN) from error


def require_tensors(
    wanted: Mapping[str, Tensor], tensors: Mapping[str, Tensor], path: Path, *, prefix: str = "", advice: str
) -> None:
    """Raise FolderError unless a file has all tensors of a model, of their shapes and types, with finite numbers."""
    for name, model in wanted.items():
        tensor = tensors.get(prefix + name)
        if tensor is None or (tensor.shape, tensor.dtype) != (model.shape, model.dtype):
            found = "missing" if tensor is None else f"{tuple(tensor.shape)} of {tensor.dtype}"
            raise FolderError(path, f"does not fit the model: {name} is {found}", advice=advice)
        if not torch.isfinite(tensor).all():
            raise FolderError(path, f"has numbers that are not finite: {name}", advice=AGAIN)


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
    content = read_description(path, "run", "halfgraph train GRAPH --out RUN", AGAIN)
    require_fields(content, {"graph": str, "seed": int, "source": str}, path, AGAIN)
    if content.get("held_out") is not None:
        require_fields(content, {"held_out": {"count": int, "seed": int}}, path, AGAIN)
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
    with replaced_file(run / CURVES, advice=RESUME) as part:
        figure.savefig(part, dpi=120, format="png")
    return True
