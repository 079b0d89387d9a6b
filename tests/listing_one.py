"""The paper's Listing 1: its triples as a graph, and a part of its query."""

from pathlib import Path

from halfgraph.graph.folder import Graph
from halfgraph.query.tree import Anchor, Intersect, Project, Query
from halfgraph.sparql.prefixes import COMMON
from imported_graphs import made, tsv

DBO, DBR = COMMON["dbo"], COMMON["dbr"]

UCLA = "University_of_California,_Los_Angeles"

TRIPLES = [
    (DBR + "Virginia_Christine", DBO + "deathCause", DBR + "Cardiovascular_disease"),
    (DBR + "Virginia_Christine", DBO + "almaMater", DBR + UCLA),
    (DBR + "Escape_Clause", DBO + "guest", DBR + "Virginia_Christine"),
]


def paper_graph(folder: Path) -> Graph:
    """The triples of Listing 1, imported."""
    types = folder / "types.tsv"
    types.write_text("".join(f"{name}\tThing\n" for triple in TRIPLES for name in triple[::2]))
    labels = folder / "labels.tsv"
    labels.write_text(f"{DBR}{UCLA}\tUCLA\n{DBR}Escape_Clause\tEscape Clause\n")
    return made(folder, tsv(TRIPLES), types_file=types, labels_files=(labels,))


def person(graph: Graph, type_id: int | None = None) -> Query:
    """Who studied at UCLA and was a guest of Escape Clause."""
    ucla, clause = (Anchor(graph.entities.find(DBR + name) or 0) for name in (UCLA, "Escape_Clause"))
    paths = Project(ucla, relation(graph, "almaMater") + 1), Project(clause, relation(graph, "guest"))
    return Intersect(paths, type_id)


def relation(graph: Graph, name: str) -> int:
    found = graph.relations.find(DBO + name)
    assert found is not None
    return 2 * found
