"""Missing triples as N-Quads: the triples in one named graph, their confidence and provenance in another."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, serialize

from halfgraph import __version__
from halfgraph.answering.cells import Cell, NamedEntity
from halfgraph.answering.explanation_schema import Witness, WitnessTriple
from halfgraph.answering.schema import AnswerTriple
from halfgraph.errors import FolderError
from halfgraph.graph.statements import RDF, TYPE

PROV = "http://www.w3.org/ns/prov#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = "urn:halfgraph:terms:"  # confidence, supports
Term = NamedNode | BlankNode | Literal


def missing(witnesses: Iterable[Witness]) -> dict[tuple[str, str, str], tuple[WitnessTriple, list[NamedEntity]]]:
    """Return the missing triples of witnesses, each once, with the answers that it supports."""
    triples: dict[tuple[str, str, str], tuple[WitnessTriple, list[NamedEntity]]] = {}
    for witness in witnesses:
        answer = NamedEntity(witness.answer.entity, witness.answer.label)
        for triple in witness.triples:
            if not triple.known and not triple.negated:
                key = (triple.subject.entity, triple.predicate.entity, triple.object.entity)
                triples.setdefault(key, (triple, []))[1].append(answer)
    return triples


def proposed(witnesses: Sequence[Witness], run: str, query: str) -> list[Quad]:
    """Return the missing triples as quads, with confidence, supported answers and provenance."""
    name = hashlib.sha256(f"{run}\n{query}".encode()).hexdigest()[:12]
    graph, about = NamedNode(f"urn:halfgraph:proposed:{name}"), NamedNode(f"urn:halfgraph:proposed:{name}:about")
    activity = NamedNode(f"urn:halfgraph:asked:{name}")
    now = Literal(time.strftime("%FT%TZ", time.gmtime()), datatype=NamedNode(f"{XSD}dateTime"))
    described: list[tuple[NamedNode, str, Term]] = [
        (graph, TYPE, NamedNode(f"{PROV}Entity")),
        (graph, f"{PROV}wasGeneratedBy", activity),
        (graph, f"{PROV}generatedAtTime", now),
        (activity, TYPE, NamedNode(f"{PROV}Activity")),
        (activity, f"{PROV}used", Literal(run)),
        (activity, f"{TERMS}query", Literal(query)),
        (activity, f"{TERMS}version", Literal(__version__)),
    ]
    triples = []
    for number, (triple, answers) in enumerate(missing(witnesses).values(), 1):
        statement = NamedNode(f"urn:halfgraph:proposed:{name}:{number}")
        ends = _term(triple.subject), NamedNode(triple.predicate.entity), _term(triple.object)
        triples.append(Quad(*ends, graph))
        described += [*_statement(statement, *ends), (statement, f"{PROV}wasDerivedFrom", graph)]
        described += [(statement, f"{TERMS}supports", _term(answer)) for answer in answers]
        if triple.confidence is not None:
            described.append((statement, f"{TERMS}confidence", _decimal(triple.confidence)))
    return [*triples, *(Quad(subject, NamedNode(name), value, about) for subject, name, value in described)]


def triple_quads(triple: AnswerTriple, number: int) -> list[Quad]:
    """Return a known triple as it is, a predicted one as an rdf:Statement with its confidence."""
    ends = [_cell_term(cell) for cell in (triple.subject, triple.predicate, triple.object)]
    if triple.known:
        return [Quad(*ends)]
    statement = NamedNode(f"urn:halfgraph:predicted:{number}")
    described = [*_statement(statement, *ends), (statement, f"{TERMS}confidence", _decimal(triple.confidence or 0.0))]
    return [Quad(subject, NamedNode(name), value) for subject, name, value in described]


def _statement(statement: NamedNode, *ends: Term) -> list[tuple[NamedNode, str, Term]]:
    """Return the triples that describe a triple."""
    parts = zip(("subject", "predicate", "object"), ends, strict=True)
    return [(statement, TYPE, NamedNode(f"{RDF}Statement")), *((statement, RDF + end, term) for end, term in parts)]


def _decimal(number: float) -> Literal:
    return Literal(f"{number:.4f}", datatype=NamedNode(f"{XSD}decimal"))


def _cell_term(cell: Cell) -> Any:
    if cell.type == "literal":
        if cell.language:
            return Literal(cell.value, language=cell.language)
        return Literal(cell.value, datatype=NamedNode(cell.datatype)) if cell.datatype else Literal(cell.value)
    return _term(NamedEntity(cell.value, cell.label))


def _term(entity: NamedEntity) -> NamedNode | BlankNode:
    iri = entity.entity
    return BlankNode(iri[2:]) if iri.startswith("_:") else NamedNode(iri)


def write_proposed(path: Path, witnesses: Sequence[Witness], run: str, query: str) -> int:
    """Write the missing triples to a file; return their number."""
    try:
        path.write_bytes(serialize(proposed(witnesses, run, query), format=RdfFormat.N_QUADS) or b"")
    except OSError as error:
        raise FolderError(path, f"cannot be written: {error.strerror}", advice="Choose another file.") from error
    return len(missing(witnesses))
