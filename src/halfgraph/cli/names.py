"""`halfgraph relations`, `types`, `describe` and `prefixes`: what a query can name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

from typer import Argument, Option

from halfgraph.cli.options import Json, View
from halfgraph.cli.output import note, print_json, print_proposals, print_table

if TYPE_CHECKING:
    from halfgraph.answering.catalogue import Catalogue, TypeCount
    from halfgraph.answering.cells import Cell
    from halfgraph.answering.engine import Engine
    from halfgraph.answering.entity_description import EntityDescription, StatementGroup
    from halfgraph.graph.folder import Graph

NEARLY_ALL = 0.95  # share of a type that is not shown
Folder = Annotated[Path, Argument(metavar="FOLDER", help="Folder of a graph or of a trained run.")]
GraphOfRun = Annotated[Path | None, Option("--graph", "-g", help="Graph folder of a run, if it has moved.")]


def relations(folder: Folder, graph: GraphOfRun = None, view: View = "whole", json: Json = False) -> None:
    """List the relations by the names that a query can use.

    With label, number of triples, subjects and objects, and their most frequent main types (--json: all of them). Then
    come the properties with literals.

    Example: halfgraph relations people
    """
    catalogue = _catalogue(folder, graph, view)
    rows, literals = catalogue.relations(), catalogue.literal_properties()
    if json:
        _print_json({"relations": rows, "literals": literals})
        return
    cells = [
        (row.name, _label(row), row.triples, row.heads, row.tails, f"{_types(row.domains)} → {_types(row.ranges)}")
        for row in rows
    ]
    print_table(f"{len(rows):,} relations", ["relation", "label", "triples", "subjects", "objects", "types"], cells)
    if literals:
        title = f"\n{len(literals):,} properties with literals (known answers and filters only)"
        print_table(title, ["property", "literals"], [(row.name, row.literals) for row in literals])


def types(folder: Folder, graph: GraphOfRun = None, view: View = "whole", json: Json = False) -> None:
    """List the types by the names that a query can use.

    Stated: entities that have the type in the graph. Main: entities whose one main type it is, for models and tables.

    Example: halfgraph types people
    """
    rows = _catalogue(folder, graph, view).types()
    if json:
        _print_json({"types": rows})
        return
    cells = [(row.name, _label(row), row.stated, row.main) for row in rows]
    print_table(f"{len(rows):,} types", ["type", "label", "stated", "main"], cells)


def prefixes(folder: Folder, graph: GraphOfRun = None, json: Json = False) -> None:
    """List the prefixes that a query need not declare.

    Example: halfgraph prefixes people
    """
    rows = _catalogue(folder, graph, "whole").prefixes()
    if json:
        _print_json({"prefixes": rows})
        return
    print_table("Prefixes", ["", "namespace", "from"], [(row.prefix, row.namespace, row.source) for row in rows])


def describe(
    folder: Folder,
    entity: Annotated[str, Argument(metavar="ENTITY", help="IRI, prefixed name or label of an entity.")],
    graph: GraphOfRun = None,
    view: View = "whole",
    top: Annotated[int, Option(min=1, help="Maximum number of values of a relation, and of predictions.")] = 5,
    json: Json = False,
) -> None:
    """Describe an entity by its statements, and by those predicted.

    Example: halfgraph describe runs/people ex:ada
    """
    from halfgraph.answering.entity_description import describe_entity

    engine = _engine(folder, graph, view)
    catalogue = _catalogue(folder, graph, view) if engine is None else _catalogue_of(engine.graph, view)
    description = describe_entity(catalogue, entity, top, engine)
    if json:
        _print_json(description)
    else:
        _print_description(description, catalogue)


def _catalogue(folder: Path, graph: Path | None, view: str) -> "Catalogue":
    from halfgraph.graph.folder import Graph

    if not _is_run(folder):
        return _catalogue_of(Graph.open(folder), view)
    from halfgraph.api import open_run

    return _catalogue_of(open_run(folder, graph).graph, view)


def _catalogue_of(graph: "Graph", view: str) -> "Catalogue":
    from halfgraph.answering.catalogue import Catalogue

    return Catalogue(graph, view)


def _engine(folder: Path, graph: Path | None, view: str) -> "Engine | None":
    """Return the engine of a run, or None for a graph."""
    if not _is_run(folder):
        return None
    from halfgraph.api import load

    return load(folder, graph, view)


def _is_run(folder: Path) -> bool:
    return (folder / "provenance.json").exists()


def _print_json(value: Any) -> None:
    from halfgraph.answering.cells import to_json

    print_json(to_json(value))


def _label(row: Any) -> str:
    """Return the label of a row, unless its name tells it already."""
    return row.label if _says_more(row.label, row.name) else ""


def _says_more(label: str, name: str) -> bool:
    plain = unquote(name.strip("<>").rpartition(":")[2].rpartition("/")[2])
    return label.replace(" ", "_") != plain.replace(" ", "_")


def _types(counts: "Sequence[TypeCount]") -> str:
    """Return the most frequent type of one end, with its share unless it is nearly all."""
    share = counts[0].count / sum(row.count for row in counts) if counts else 0.0
    return f"{counts[0].label} {share:.0%}" if share < NEARLY_ALL else counts[0].label


def _print_description(description: "EntityDescription", catalogue: "Catalogue") -> None:
    types = ", ".join(f"{row.label} ({row.name})" if _label(row) else row.name for row in description.types)
    note_of_types = f"\n{types}" if types else "\nno type"
    print_table(f"{description.label}, {description.name}{note_of_types}", [], [])
    for title, groups in (("Statements", description.statements), ("Incoming", description.incoming)):
        rows = [(row.name, _label(row), row.count, _values(row, catalogue)) for row in groups]
        if rows:
            print_table(f"\n{title}", ["relation", "label", "", "first values"], rows)
    if description.predicted is None:
        return
    if description.predicted:
        print_proposals("\nPredicted", description.predicted)
    else:
        note("\nNothing is predicted with a confidence of 1% or more.")


def _values(group: "StatementGroup", catalogue: "Catalogue") -> str:
    texts = [_value(cell, catalogue.typed(cell.value)) for cell in group.values]
    return ", ".join([*texts, *["..."] * (group.count > len(texts))])


def _value(cell: "Cell", name: str) -> str:
    """Return a literal in quotes, or an entity by its name, with its label if this says more."""
    if cell.type == "literal":
        return f'"{cell.value}"'
    return f"{cell.label} ({name})" if _says_more(cell.label, name) else name
