"""Files of missing triples, in the format of their suffix: RDF with provenance, CSV, JSON lines."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyoxigraph import Quad, RdfFormat, Triple, serialize

from halfgraph.answering.cells import to_json
from halfgraph.answering.proposals import PROV, TERMS, ProposedTriple, proposed
from halfgraph.errors import SettingError
from halfgraph.graph.files import write_atomically
from halfgraph.graph.statements import RDF

DATASETS = {".nq": RdfFormat.N_QUADS, ".trig": RdfFormat.TRIG}
COLUMNS = ("subject", "predicate", "object")
OWN_PREFIXES = {"prov": PROV, "rdf": RDF, "terms": TERMS}


def _csv(triples: Sequence[ProposedTriple]) -> bytes:
    ends = [(one, (one.subject, one.predicate, one.object)) for one in triples]
    rows = [
        [*(end.entity for end in own), one.confidence, *(end.label for end in own), one.reason] for one, own in ends
    ]
    return csv_bytes([*COLUMNS, "confidence", *(f"{name}_label" for name in COLUMNS), "reason"], rows)


def csv_bytes(head: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    """Return a table as CSV; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue().encode(errors="replace")


def json_lines(values: Sequence[object]) -> bytes:
    """Return dataclasses of the schema as JSON lines."""
    lines = (json.dumps(to_json(one), ensure_ascii=False) + "\n" for one in values)
    return "".join(lines).encode(errors="replace")


# Formats that have no place for provenance, by the suffix of the file.
TABLES: dict[str, Callable[[Sequence[ProposedTriple]], bytes]] = {".csv": _csv, ".jsonl": json_lines}
SUFFIXES = (*DATASETS, ".ttl", *TABLES)


def check_suffix(path: Path, option: str, known: Sequence[str] = SUFFIXES) -> None:
    """Raise SettingError unless the suffix of a file names a format that can be written."""
    if path.suffix.lower() not in known:
        found = f'"{path.suffix}"' if path.suffix else "no suffix"
        advice = f"Name the file with one of {', '.join(known)}."
        raise SettingError(option, f"{path} has {found}, which names no format", advice=advice)


def write_proposals(
    path: Path, triples: Sequence[ProposedTriple], run: str, request: str, prefixes: Mapping[str, str]
) -> None:
    """Write missing triples in the format of the file's suffix; RDF has the run and the request as provenance.

    Turtle has no named graphs, so the triples and what is said about them are together.
    """
    suffix = path.suffix.lower()
    table = TABLES.get(suffix)
    content = table(triples) if table else _rdf(proposed(triples, run, request), suffix, prefixes)
    write_atomically(path, content, advice="Choose another file.")


def _rdf(quads: Sequence[Quad], suffix: str, prefixes: Mapping[str, str]) -> bytes:
    if suffix == ".nq":
        return serialize(quads, format=RdfFormat.N_QUADS) or b""
    used = OWN_PREFIXES | dict(prefixes)
    if suffix in DATASETS:
        return serialize(quads, format=DATASETS[suffix], prefixes=used) or b""
    triples = [Triple(quad.subject, quad.predicate, quad.object) for quad in quads]
    return serialize(triples, format=RdfFormat.TURTLE, prefixes=used) or b""
