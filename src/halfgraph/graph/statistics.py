"""Statistics of a graph: counts, degrees, frequent relations, leakage of test triples, and a picture."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import InputError, MissingPackage
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.graph.vocabulary import local_name


def statistics(graph: Graph) -> dict[str, Any]:
    """Return the statistics of a graph as JSON-serialisable values."""
    return {
        **graph.description["counts"],
        "fingerprint": graph.fingerprint,
        "degrees": degree_figures(graph.whole.degrees()),
        "type_sizes": dict(zip(graph.types.names, graph.types.sizes.tolist(), strict=True)),
        "stated_types": dict(zip(graph.types.names, graph.description["types"]["stated"], strict=True)),
        "type_ways": graph.description["types"]["ways"],
        "frequent_relations": frequent_relations(graph),
        "leakage": {name: leakage(graph.train, graph.view(name)) for name in ("valid", "test")},
        "report": graph.description["report"],
        "provenance": graph.description["provenance"],
    }


def degree_figures(degrees: NDArray[np.int64]) -> dict[str, float]:
    """Return the median, mean, 95th percentile and maximum of the degrees; 0 if there is no entity."""
    degrees = degrees if len(degrees) else np.zeros(1, np.int64)
    return {
        "median": float(np.median(degrees)),
        "mean": round(float(degrees.mean()), 2),
        "95th": round(float(np.percentile(degrees, 95)), 2),
        "maximum": int(degrees.max()),
    }


def frequent_relations(graph: Graph, count: int = 10) -> dict[str, int]:
    """Return the most frequent relations with their numbers of triples."""
    sizes = np.bincount(np.asarray(graph.whole.relations) // 2, minlength=len(graph.relations)) // 2
    most = np.argsort(-sizes, kind="stable")[:count]
    return {graph.relations.name(int(relation)): int(sizes[relation]) for relation in most}


def leakage(train: KnowledgeGraph, held_out: KnowledgeGraph) -> dict[str, float]:
    """Return the share of held-out pairs that occur in train: under another relation, and reversed."""
    triples = held_out.triples().astype(np.int64)
    if not len(triples):
        return {}
    known = train.triples().astype(np.int64)
    pairs = np.unique(known[:, 0] * train.entity_count + known[:, 2])
    heads, tails = triples[:, 0], triples[:, 2]
    return {
        "another_relation": _share(heads * train.entity_count + tails, pairs),
        "reversed": _share(tails * train.entity_count + heads, pairs),
        "entities_not_in_train": int((np.diff(train.starts)[np.unique(triples[:, [0, 2]])] == 0).sum()),
    }


def _share(pairs: NDArray[np.int64], known: NDArray[np.int64]) -> float:
    return round(float(np.isin(pairs, known).mean()), 4)


def plot_graph(graph: Graph, path: Path) -> None:
    """Write a picture of the degree distribution and the types."""
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
