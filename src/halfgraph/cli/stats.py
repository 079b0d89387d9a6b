"""`halfgraph stats`: describe a graph."""

from pathlib import Path
from typing import Annotated

from typer import Option

from halfgraph.cli.options import GraphFolder, Json
from halfgraph.cli.output import note, print_json, print_table


def stats(
    folder: GraphFolder,
    json: Json = False,
    plot: Annotated[Path | None, Option(help="Write a picture of degrees and types to this file.")] = None,
) -> None:
    """Describe a graph.

    Prints counts, types, degrees, frequent relations, and leakage between its splits.

    Example: halfgraph stats people --plot people.png
    """
    from halfgraph.graph.folder import Graph
    from halfgraph.graph.statistics import plot_graph, statistics
    from halfgraph.graph.vocabulary import local_name

    graph = Graph.open(folder)
    figures = statistics(graph)
    if plot is not None:
        plot_graph(graph, plot)
    if json:
        print_json(figures)
        return
    counts = [(name, figures[name]) for name in ("entities", "relations", "types", "literals")]
    counts += [("guessed types of entities", figures["guessed_types"])] * bool(figures["guessed_types"])
    splits = [(f"{name} triples", count) for name, count in figures["triples"].items()]
    print_table(f"{graph.path}, graph {graph.fingerprint}", ["", ""], [*counts, *splits])
    print_table("\nDegrees", ["", ""], list(figures["degrees"].items()))
    sizes = sorted(figures["type_sizes"].items(), key=lambda item: -item[1])
    title = "\nTypes (the 15 largest)" if len(sizes) > 15 else "\nTypes"
    stated = figures["stated_types"]
    rows = [(count, stated[name], local_name(name)) for name, count in sizes[:15]]
    print_table(title, ["entities", "stated", ""], rows)
    labels = {name: graph.relations.label(i) for i, name in enumerate(graph.relations.names)}
    frequent = [(count, labels[name]) for name, count in figures["frequent_relations"].items()]
    print_table("\nMost frequent relations", ["triples", ""], frequent)
    leaks = [(split, *shares.values()) for split, shares in figures["leakage"].items() if shares]
    if leaks:
        columns = ["", "another relation", "reversed", "entities not in train"]
        title = "\nLeakage: share of held-out pairs that train has under another relation, or reversed"
        print_table(title, columns, leaks)
    note(f"\nTo see names as a query writes them: halfgraph relations {graph.path} (or types, prefixes, describe)")
