"""The graphs that the tests of reading ask."""

from collections.abc import Iterator

import pytest

from halfgraph.graph.folder import Graph
from halfgraph.sparql.prefixes import COMMON
from imported_graphs import made, tsv
from sparql_strategies import whole_graph

TRIPLES = """
Virginia_Christine deathCause Cardiovascular_disease
Virginia_Christine almaMater University_of_California,_Los_Angeles
Escape_Clause guest Virginia_Christine
Virginia_Christine spouse Fritz_Feld
Fritz_Feld almaMater University_of_California,_Los_Angeles
"""
TYPES = {"Virginia_Christine": "Person", "Fritz_Feld": "Person", "Cardiovascular_disease": "Disease"}
LABELS = {"Escape_Clause": "Escape Clause", "Cardiovascular_disease": "heart trouble"}


@pytest.fixture(scope="module")
def dbpedia(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("dbpedia")
    dbr, dbo = COMMON["dbr"], COMMON["dbo"]
    triples = [line.split() for line in TRIPLES.split("\n") if line]
    names = {name for head, _, tail in triples for name in (head, tail)}
    (folder / "types").write_text("".join(f"{dbr}{name}\t{dbo}{TYPES.get(name, 'Work')}\n" for name in sorted(names)))
    (folder / "labels").write_text("".join(f"{dbr}{name}\t{label}\n" for name, label in LABELS.items()))
    content = tsv((dbr + head, dbo + relation, dbr + tail) for head, relation, tail in triples)
    return made(folder, content, types_file=folder / "types", labels_files=(folder / "labels",))


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with whole_graph() as found:
        yield found
