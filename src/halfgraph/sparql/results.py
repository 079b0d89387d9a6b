"""Query results in the W3C formats: SPARQL 1.1 Query Results JSON, XML, CSV and TSV."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyoxigraph as ox
from pyoxigraph import QueryResultsFormat

from halfgraph.errors import SettingError
from halfgraph.sparql.syntax_tree import XSD

FORMATS: Mapping[str, QueryResultsFormat] = {
    name: getattr(QueryResultsFormat, name.upper()) for name in ("json", "xml", "csv", "tsv")
}
Term = Mapping[str, Any]  # as in the JSON format: type, value, datatype, xml:lang
Binding = Mapping[str, Term]  # a row: the term of each bound variable


def entity_term(iri: str) -> Term:
    """The term of an entity; names such as _:b1 are blank nodes."""
    return {"type": "bnode", "value": iri[2:]} if iri.startswith("_:") else {"type": "uri", "value": iri}


def literal_term(value: str, language: str | None = None, datatype: str | None = None) -> Term:
    """The term of a literal."""
    if language:
        return {"type": "literal", "value": value, "xml:lang": language}
    typed = {} if datatype in (None, f"{XSD}string") else {"datatype": datatype}
    return {"type": "literal", "value": value, **typed}


def number_term(number: float) -> Term:
    """The term of a score or a confidence, an xsd:double."""
    return literal_term(repr(float(number)), datatype=f"{XSD}double")


def store_term(term: Any) -> Term:
    """The term of a value that the store returned."""
    match term:
        case ox.NamedNode():
            return entity_term(term.value)
        case ox.BlankNode():
            return {"type": "bnode", "value": term.value}
        case ox.Triple():
            parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
            return {"type": "triple", "value": {name: store_term(part) for name, part in parts.items()}}
        case ox.Literal():
            return literal_term(term.value, term.language, term.datatype.value)
    raise TypeError(f"not an RDF term: {term!r}")


def store_rows(solutions: ox.QuerySolutions) -> Iterator[Binding]:
    """The rows that the store returned; an unbound variable has no key."""
    variables = [variable.value for variable in solutions.variables]
    for row in solutions:
        yield {name: store_term(term) for name, term in zip(variables, row, strict=True) if term is not None}


def results_format(name: str) -> QueryResultsFormat:
    """Return the format of a short name, such as csv."""
    if name not in FORMATS:
        raise SettingError("--format", f'no format "{name}"', advice=f"Choose one of {', '.join(FORMATS)}.")
    return FORMATS[name]


def write_results(variables: Sequence[str], rows: Sequence[Binding], results_form: QueryResultsFormat) -> bytes:
    """Write rows in a format; variables that a row does not have are unbound."""
    value = {"head": {"vars": list(variables)}, "results": {"bindings": list(rows)}}
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    if results_form == QueryResultsFormat.JSON:
        return written
    # pyoxigraph takes rows from Python only in this format, and writes the others as the standard says.
    return ox.parse_query_results(written, format=QueryResultsFormat.JSON).serialize(format=results_form) or b""
