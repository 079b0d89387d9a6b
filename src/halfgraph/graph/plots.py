"""Pictures of a graph: its degree distribution and its types."""

from pathlib import Path

import numpy as np

from halfgraph.errors import InputError, MissingPackage
from halfgraph.graph.folder import Graph
from halfgraph.graph.vocabulary import local_name


def plot_graph(graph: Graph, path: Path) -> None:
    """Nothing; a picture of the degrees and the types is written."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        command = "pip install 'halfgraph[plots]'"
        raise MissingPackage(package="matplotlib", needed_for="a picture", command=command) from error
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    degrees, counts = np.unique(graph.whole.degrees(), return_counts=True)
    left.loglog(degrees, counts, "o", markersize=3, color="#1f6f8b")
    left.set(title="Degrees", xlabel="triples an entity takes part in", ylabel="entities")
    order = np.argsort(graph.types.sizes)[-20:]
    names = [local_name(graph.types.names[k]).replace("$", r"\$") for k in order]  # a bare $ would begin a formula
    right.barh(names, graph.types.sizes[order], color="#c26d3f")
    right.set(title="Types" if len(graph.types) <= 20 else "The 20 largest types", xlabel="entities")
    try:
        figure.savefig(path, dpi=150)
    except (ValueError, OSError) as error:
        raise InputError(f"the picture cannot be written: {error}", path=path) from error
