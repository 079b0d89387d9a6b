"""The share of real SPARQL queries that can be predicted, by collection, and the reasons of the others.

Reads the collections given as arguments (JSON lines with `id` and `query`, gzipped), or those of ../shared/data. Each
text is read against a stub graph that knows all its names. Exits with 1 if the mean share or one of the shares is low.
"""

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyoxigraph import DefaultGraph, Store

from halfgraph.errors import HalfgraphError, SparqlError
from halfgraph.graph.names import Namer
from halfgraph.graph.statements import TYPE
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.parse import Request, parse
from halfgraph.sparql.prefixes import COMMON, Prefixes
from halfgraph.sparql.row_completion import completed, known_rows
from halfgraph.sparql.row_reading import RowReading, read_rows
from halfgraph.sparql.syntax_tree import Iri
from halfgraph.sparql.unsupported import refuse_forbidden
from halfgraph.sparql.writer import write

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from literal_properties import literal_properties

LEAST, LEAST_MEAN = 0.65, 0.85
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "sparql-queries"
PREFIXES = Prefixes({"": "http://halfgraph.local/", **COMMON}, "http://halfgraph.local/")
LABEL_SERVICE = Iri("http://wikiba.se/ontology#label")


class StubNames:
    """A vocabulary without similar names."""

    def find(self, _: str) -> None:
        return None

    def nearest(self, _: str) -> list[int]:
        return []


class StubGraph:
    """A graph that has every name but the properties that lead to literals."""

    def __init__(self, literals: frozenset[str]) -> None:
        self.literals, self.namer = literals | {TYPE}, Namer()
        self.entities = self.relations = StubNames()
        self._numbers: dict[str, int] = {}

    def find_entity(self, iri: str) -> int:
        return self._numbers.setdefault(iri, len(self._numbers))

    def find_relation(self, iri: str) -> int | None:
        return None if iri in self.literals else 2 * self.find_entity(iri)


def main() -> None:
    """Print the share of each collection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(FOLDER.glob("*.jsonl.gz")))
    parser.add_argument("--texts", metavar="REASON", help="print the texts that are not predicted for this reason")
    arguments = parser.parse_args()
    shares = [measure(path, arguments.texts) for path in arguments.files]
    if not shares:
        sys.exit(f"{FOLDER} has no collections; pass files.")
    mean = sum(shares) / len(shares)
    print(f"mean {mean:.1%}, least {min(shares):.1%}")
    sys.exit(mean < LEAST_MEAN or min(shares) < LEAST)


def measure(path: Path, shown: str | None) -> float:
    """Print how many texts of a collection can be predicted, and why the others cannot; return the share."""
    reasons = Counter[str]()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)
            reason = why_not(text["query"])
            reasons[reason] += 1
            if reason == shown:
                print(f"--- {path.stem} {text['id']}\n{text['query']}")
    invalid, predicted = reasons.pop("invalid", 0), reasons.pop("", 0)
    valid = predicted + reasons.total()
    print(
        f"{path.name}: {predicted} of {valid} valid texts can be predicted ({predicted / valid:.1%}); {invalid} invalid"
    )
    for reason, count in reasons.most_common():
        print(f"  {count:5} {count / valid:6.1%}  {reason}")
    return predicted / valid


def why_not(text: str) -> str:
    """Return why a text cannot be predicted; an empty reason if it can."""
    try:
        request = without_label_service(parse(text, PREFIXES))
    except SparqlError as error:
        return f"only our parser refuses it: {error.problem}" if is_valid(text) else "invalid"
    try:
        refuse_forbidden(request.tree, request.source)
        reading = read_rows(request, StubGraph(literal_properties(request.tree)))  # type: ignore[arg-type]
    except HalfgraphError as error:
        return getattr(error, "feature", type(error).__name__)
    return "" if all(is_valid(question) for question in store_questions(reading)) else "the store cannot be asked"


def store_questions(reading: RowReading) -> Iterator[str]:
    """Yield what the store is asked about candidate rows, of which there is one here."""
    for branch in reading.branches:
        yield write(completed(reading, branch, [tuple(LABEL_SERVICE for _ in branch.variables)]))
    if not reading.is_aggregated:
        yield write(known_rows(reading, [tuple(LABEL_SERVICE for _ in reading.select.projection)]))


def is_valid(text: str) -> bool:
    """Return whether pyoxigraph's parser takes a text as a query."""
    options: Mapping[str, Any] = {"use_default_graph_as_union": True, "default_graph": DefaultGraph()}
    try:
        Store().query(text, **options)  # options that exclude each other: nothing is evaluated
    except SyntaxError:
        return False
    except ValueError:
        return True
    return True


def without_label_service(request: Request) -> Request:
    """Return a request without SERVICE wikibase:label; the columns that it fills stay."""
    return replace(request, tree=_without(request.tree))


def _without(node: Any) -> Any:
    if isinstance(node, tuple):
        kept = (part for part in node if not (isinstance(part, tree.Clause) and part.name == LABEL_SERVICE))
        return tuple(map(_without, kept))
    if not isinstance(node, tree.SyntaxNode) or isinstance(node, tree.LEAVES):
        return node
    parts = {name: value for name, value in vars(node).items() if isinstance(value, tree.SyntaxNode | tuple)}
    return replace(node, **{name: _without(value) for name, value in parts.items() if name not in ("span", "clauses")})


if __name__ == "__main__":
    main()
