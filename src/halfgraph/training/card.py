"""The model card of a run: what the model is, what it was trained on, how well it does, in one page."""

from collections.abc import Mapping, Sequence
from typing import Any

from halfgraph.graph.folder import Graph


def model_card(
    graph: Graph, name: str, about: Mapping[str, Any], recipe: Mapping[str, Any], history: Sequence[Mapping[str, Any]]
) -> str:
    """The card as Markdown."""
    counts = graph.description["counts"]
    lines = [
        f"# {name} on graph {graph.fingerprint}",
        "",
        f"Trained by halfgraph on {counts['entities']:,} entities of {counts['types']:,} types, "
        f"{counts['relations']:,} relations, {counts['triples']['train']:,} training triples "
        f"(sources: {', '.join(graph.description['provenance']['sources'])}).",
        "",
        "| validation | AUC | AUC, hard negatives | APR | APR, hard negatives |",
        "|---|---|---|---|---|",
    ]
    for row in history:
        if "auc" in row:
            figures = " | ".join(f"{row[key]:.4f}" for key in ("auc", "auc_hard", "apr", "apr_hard"))
            lines.append(f"| step {row['step']:,}, {row['seconds']:,.0f} s | {figures} |")
    lines += ["", "| model | |", "|---|---|", *(f"| {key} | {value} |" for key, value in about.items())]
    lines += ["", "| recipe | |", "|---|---|", *(f"| {key} | {value} |" for key, value in recipe.items())]
    if attribution := graph.description["provenance"].get("attribution"):
        lines += ["", attribution]
    return "\n".join(lines) + "\n"
