"""Rows in the formats of W3C: SPARQL 1.1 Query Results JSON, XML, CSV and TSV."""

import json
from collections.abc import Mapping, Sequence

from pyoxigraph import QueryResultsFormat, parse_query_results

from halfgraph.errors import SettingError

FORMATS = {
    "json": QueryResultsFormat.JSON,
    "xml": QueryResultsFormat.XML,
    "csv": QueryResultsFormat.CSV,
    "tsv": QueryResultsFormat.TSV,
}
Term = Mapping[str, str]  # as in the JSON format: type, value, datatype, xml:lang


def write_results(variables: Sequence[str], rows: Sequence[Mapping[str, Term]], form: str) -> bytes:
    """The rows in a format; a variable that a row does not have is left unbound."""
    if form not in FORMATS:
        raise SettingError("--format", f'there is none named "{form}"', advice=f"Known: {', '.join(FORMATS)}.")
    value = {"head": {"vars": list(variables)}, "results": {"bindings": list(rows)}}
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    if form == "json":
        return written
    # pyoxigraph reads no rows from Python but from this format, and writes the others as the standard says.
    found = parse_query_results(written, format=FORMATS["json"])
    return bytes(found.serialize(format=FORMATS[form]) or b"")
