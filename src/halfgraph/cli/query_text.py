"""The text of a query on the command line: an argument, a file, or standard input."""

import sys
from pathlib import Path

from typer import Argument

from halfgraph.errors import InputError

LONGEST_QUERY = 1 << 20  # bytes
SPARQL = Argument(metavar="SPARQL", help="SPARQL query, a file with one, or - for standard input.")


def sparql_text(given: str) -> str:
    """Return the text of a query given directly, as a file, or as - for standard input."""
    from halfgraph.graph.files import read_text

    if given == "-":
        given = sys.stdin.read(LONGEST_QUERY + 1)
    elif "{" not in given and "\n" not in given and Path(given).is_file():
        return read_text(Path(given), LONGEST_QUERY, "Pass SPARQL as UTF-8 text.")
    elif not set("{?\n") & set(given) and (Path(given).suffix or "/" in given):
        raise InputError("no such file", path=given, advice="Pass a file with a query, or its text: SELECT ?x { ... }")
    if len(given) > LONGEST_QUERY:
        raise InputError(f"the query is longer than {LONGEST_QUERY:,} characters, which is the limit")
    return given
