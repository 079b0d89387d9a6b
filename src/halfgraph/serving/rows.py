"""The rows of an answer in W3C's four formats, and triples in the usual ones, cut at a limit."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    QueryTriples,
    Triple,
    parse_query_results,
    serialize,
)

from halfgraph.serving.negotiation import graph_format, table_format
from halfgraph.serving.problems import Reply

CUT = "X-Halfgraph-Cut"  # the header that says that there is more
STRING = "http://www.w3.org/2001/XMLSchema#string"
Binding = Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """The form in which an answer is wanted: an Accept header, a format by name, and how many rows at most."""

    accept: str
    name: str | None
    rows: int


def binding(term: Any) -> dict[str, Any]:
    """A term as in W3C's JSON results."""
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, Triple):
        parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
        return {"type": "triple", "value": {name: binding(part) for name, part in parts.items()}}
    assert isinstance(term, Literal)
    return literal(term.value, term.language, term.datatype.value)


def named(name: str) -> dict[str, Any]:
    """An entity as in W3C's JSON results; names such as _:b1 are blank nodes."""
    return {"type": "bnode", "value": name[2:]} if name.startswith("_:") else {"type": "uri", "value": name}


def literal(value: str, language: str | None, datatype: str | None) -> dict[str, Any]:
    """A literal as in W3C's JSON results."""
    if language:
        return {"type": "literal", "value": value, "xml:lang": language}
    plain = {"type": "literal", "value": value}
    return plain if datatype in (None, STRING) else plain | {"datatype": str(datatype)}


def table(variables: Sequence[str], rows: Iterable[Binding], wanted: Wanted, headers: Mapping[str, str]) -> Reply:
    """Rows as an answer, cut at the limit."""
    form, media = table_format(wanted.accept, wanted.name)
    kept = list(islice(rows, wanted.rows + 1))
    cut = _cut(len(kept), wanted.rows)
    value = {"head": {"vars": list(variables)}, "results": {"bindings": kept[: wanted.rows]}}
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    if form != QueryResultsFormat.JSON:
        body = parse_query_results(body, format=QueryResultsFormat.JSON).serialize(format=form) or b""
    return Reply(body, media, headers={**headers, **cut})


def answer(result: Any, wanted: Wanted, order: Sequence[str] = ()) -> Reply:
    """What the store gives as an answer: rows with their columns in an order, a yes or no, or triples."""
    if isinstance(result, QuerySolutions):
        variables = [variable.value for variable in result.variables]
        shown = [name for name in order if name in variables] or variables
        return table(shown, (_row(variables, row) for row in result), wanted, {})
    if isinstance(result, QueryBoolean):
        form, media = table_format(wanted.accept, wanted.name)
        return Reply(result.serialize(format=form) or b"", media)
    assert isinstance(result, QueryTriples)
    rdf_format, media = graph_format(wanted.accept, wanted.name)
    triples = list(islice(result, wanted.rows + 1))
    body = serialize(triples[: wanted.rows], format=rdf_format) or b""
    return Reply(body, media, headers=_cut(len(triples), wanted.rows))


def _row(variables: Sequence[str], row: Any) -> Binding:
    """A row of the store as in W3C's JSON results; an unbound variable has no key."""
    return {name: binding(term) for name, term in zip(variables, row, strict=True) if term is not None}


def _cut(found: int, limit: int) -> dict[str, str]:
    """The header that says that there is more than the limit."""
    return {CUT: f"only the first {limit} are given"} if found > limit else {}
