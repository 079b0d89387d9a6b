"""Missing triples as quads: the triples in one named graph, their confidence and provenance in another."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from halfgraph import __version__
from halfgraph.answering.cells import OPTIONAL, Cell, NamedEntity
from halfgraph.answering.explanation_schema import Witness
from halfgraph.answering.schema import AnswerTriple
from halfgraph.graph.statements import RDF, TYPE

PROV = "http://www.w3.org/ns/prov#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = "urn:halfgraph:terms:"  # confidence, supports, reason
Term = NamedNode | BlankNode | Literal


@dataclass(frozen=True)
class ProposedTriple:
    """A missing triple with its confidence, its reason, and the answers of a query that need it."""

    subject: NamedEntity
    predicate: NamedEntity
    object: NamedEntity
    confidence: float | None = field(default=None, metadata=OPTIONAL | {"ge": 0, "le": 1})
    reason: str | None = field(default=None, metadata=OPTIONAL)
    supports: Sequence[NamedEntity] | None = field(default=None, metadata=OPTIONAL)


def missing(witnesses: Iterable[Witness]) -> list[ProposedTriple]:
    """Return the missing triples of witnesses, each once, with the answers that it supports."""
    triples: dict[tuple[str, str, str], ProposedTriple] = {}
    for witness in witnesses:
        answer = NamedEntity(witness.answer.entity, witness.answer.label)
        for triple in witness.triples:
            if not triple.known and not triple.negated:
                ends = triple.subject, triple.predicate, triple.object
                key = (ends[0].entity, ends[1].entity, ends[2].entity)
                one = triples.setdefault(key, ProposedTriple(*ends, triple.confidence))
                triples[key] = replace(one, supports=[*(one.supports or ()), answer])
    return list(triples.values())


def proposed(triples: Sequence[ProposedTriple], run: str, request: str) -> list[Quad]:
    """Return missing triples as quads, with confidence, reason, supported answers and provenance.

    `request` is the query or command that they answer.
    """
    name = hashlib.sha256(f"{run}\n{request}".encode()).hexdigest()[:12]
    graph, about = NamedNode(f"urn:halfgraph:proposed:{name}"), NamedNode(f"urn:halfgraph:proposed:{name}:about")
    activity = NamedNode(f"urn:halfgraph:asked:{name}")
    now = Literal(time.strftime("%FT%TZ", time.gmtime()), datatype=NamedNode(f"{XSD}dateTime"))
    described: list[tuple[NamedNode, str, Term]] = [
        (graph, TYPE, NamedNode(f"{PROV}Entity")),
        (graph, f"{PROV}wasGeneratedBy", activity),
        (graph, f"{PROV}generatedAtTime", now),
        (activity, TYPE, NamedNode(f"{PROV}Activity")),
        (activity, f"{PROV}used", Literal(run)),
        (activity, f"{TERMS}query", Literal(request)),
        (activity, f"{TERMS}version", Literal(__version__)),
    ]
    quads = []
    for number, triple in enumerate(triples, 1):
        statement = NamedNode(f"urn:halfgraph:proposed:{name}:{number}")
        ends = _term(triple.subject), NamedNode(triple.predicate.entity), _term(triple.object)
        quads.append(Quad(*ends, graph))
        described += [*_statement(statement, *ends), (statement, f"{PROV}wasDerivedFrom", graph)]
        described += [(statement, f"{TERMS}supports", _term(answer)) for answer in triple.supports or ()]
        if triple.confidence is not None:
            described.append((statement, f"{TERMS}confidence", _decimal(triple.confidence)))
        if triple.reason is not None:
            described.append((statement, f"{TERMS}reason", Literal(triple.reason)))
    return [*quads, *(Quad(subject, NamedNode(name), value, about) for subject, name, value in described)]


def _statement(statement: NamedNode, *ends: Term) -> list[tuple[NamedNode, str, Term]]:
    """Return the triples that describe a triple."""
    parts = zip(("subject", "predicate", "object"), ends, strict=True)
    return [(statement, TYPE, NamedNode(f"{RDF}Statement")), *((statement, RDF + end, term) for end, term in parts)]


def _decimal(number: float) -> Literal:
    return Literal(format(Decimal(str(number)), "f"), datatype=NamedNode(f"{XSD}decimal"))


def triple_quads(triple: AnswerTriple, number: int) -> list[Quad]:
    """Return a known triple as it is, a predicted one as an rdf:Statement with its confidence."""
    ends = [_cell_term(cell) for cell in (triple.subject, triple.predicate, triple.object)]
    if triple.known:
        return [Quad(*ends)]
    statement = NamedNode(f"urn:halfgraph:predicted:{number}")
    described = [*_statement(statement, *ends), (statement, f"{TERMS}confidence", _decimal(triple.confidence or 0.0))]
    return [Quad(subject, NamedNode(name), value) for subject, name, value in described]


def _cell_term(cell: Cell) -> Any:
    if cell.type == "literal":
        if cell.language:
            return Literal(cell.value, language=cell.language)
        return Literal(cell.value, datatype=NamedNode(cell.datatype)) if cell.datatype else Literal(cell.value)
    return _term(NamedEntity(cell.value, cell.label))


def _term(entity: NamedEntity) -> NamedNode | BlankNode:
    iri = entity.entity
    return BlankNode(iri[2:]) if iri.startswith("_:") else NamedNode(iri)
