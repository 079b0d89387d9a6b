"""What is said about what is served: the graph's counts, the model's card, versions and prefixes."""

import json
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from halfgraph import __version__
from halfgraph.graph.folder import Graph
from halfgraph.serving.limits import Limits
from halfgraph.sparql.prefixes import Prefixes

PACKAGES = ("pyoxigraph", "torch", "numpy", "fastapi", "uvicorn")
CARD, PROVENANCE = "README.md", "provenance.json"
FOLDERS = re.compile(r"(?<![\w./:])/(?:[\w.+-]+/)+")


def about(graph: Graph, run: Path, view: str, limits: Limits) -> dict[str, Any]:
    """What is said, ready for JSON; paths of this machine are left out."""
    # A worker has opened the run, so that it is known to be well; its own reader would bring torch along.
    provenance = json.loads((run / PROVENANCE).read_text(encoding="utf-8"))
    told = {name: value for name, value in provenance.items() if name not in ("graph_path", "format")}
    return {
        "graph": about_graph(graph, view),
        "model": {"name": run.resolve().name, "card": _card(run), **told},
        "limits": limits.to_dict(),
        "versions": {"halfgraph": __version__, "python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        "prefixes": dict(Prefixes.of(graph).namespaces),
    }


def about_graph(graph: Graph, view: str) -> dict[str, Any]:
    """What the graph holds, and which part of it is served as known."""
    known = graph.description
    types = {name: int(size) for name, size in zip(graph.types.names, graph.types.sizes, strict=True)}
    return {
        "name": graph.path.resolve().name,
        "fingerprint": graph.fingerprint,
        **known["counts"],
        "types": types,
        "split": graph.has_split,
        "view": view,
        "served_triples": getattr(graph, view).triple_count,
        "base": graph.namer.base,
        "attribution": known.get("provenance", {}).get("attribution", ""),
    }


def _card(run: Path) -> str:
    """The model card, in Markdown; of a path of this machine only the last part is shown."""
    path = run / CARD
    return FOLDERS.sub("", path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else ""
