"""The command that shows what a graph is like: stats."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfgraph.cli.screen import Json, print_json, print_table

if TYPE_CHECKING:
    from halfgraph.graph.folder import Graph


def stats(
    folder: Annotated[Path, typer.Argument(help="A graph folder.")],
    json: Json = False,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of degrees and types to this file.")] = None,
) -> None:
    """Show what a graph is like: counts, types, degrees, frequent relations, leakage.

    Example: halfgraph stats people --plot people.png
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.statistics import statistics

    graph = Graph.open(folder)
    figures = statistics(graph)
    if plot is not None:
        from halfgraph.graph.plots import plot_graph

        plot_graph(graph, plot)
    if json:
        print_json(figures)
    else:
        _show_stats(graph, figures)


def _show_stats(graph: "Graph", figures: dict[str, Any]) -> None:
    """Nothing; the figures of a graph are printed as tables."""
    from halfgraph.graph.vocabulary import local_name

    counts = [(name, figures[name]) for name in ("entities", "relations", "types", "literals")]
    splits = [(f"{name} triples", count) for name, count in figures["triples"].items()]
    print_table(f"{graph.path}, graph {graph.fingerprint}", ["", ""], [*counts, *splits])
    print_table("\nDegrees", ["", ""], list(figures["degrees"].items()))
    sizes = sorted(figures["type_sizes"].items(), key=lambda item: -item[1])
    title = "\nTypes (the 15 largest)" if len(sizes) > 15 else "\nTypes"
    print_table(title, ["entities", ""], [(count, local_name(name)) for name, count in sizes[:15]])
    shown = {name: graph.relations.label(i) for i, name in enumerate(graph.relations.names)}
    frequent = [(count, shown[name]) for name, count in figures["frequent_relations"].items()]
    print_table("\nThe commonest relations", ["triples", ""], frequent)
    leaks = [(split, *found.values()) for split, found in figures["leakage"].items() if found]
    if leaks:
        columns = ["", "another relation", "reversed", "entities not in train"]
        title = "\nLeakage: the share of held-out pairs that train has under another relation, or reversed"
        print_table(title, columns, leaks)
