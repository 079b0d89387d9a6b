"""Missing triples as N-Quads: the triples in one named graph, their confidence and provenance in another."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, serialize

from halfgraph import __version__
from halfgraph.answering.schema import NamedEntity, Witness, WitnessTriple
from halfgraph.errors import FolderError
from halfgraph.graph.statements import RDF, TYPE

PROV = "http://www.w3.org/ns/prov#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = "urn:halfgraph:terms:"  # confidence, supports


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
    quads = [
        Quad(graph, NamedNode(TYPE), NamedNode(f"{PROV}Entity"), about),
        Quad(graph, NamedNode(f"{PROV}wasGeneratedBy"), activity, about),
        Quad(graph, NamedNode(f"{PROV}generatedAtTime"), now, about),
        Quad(activity, NamedNode(TYPE), NamedNode(f"{PROV}Activity"), about),
        Quad(activity, NamedNode(f"{PROV}used"), Literal(run), about),
        Quad(activity, NamedNode(f"{TERMS}query"), Literal(query), about),
        Quad(activity, NamedNode(f"{TERMS}version"), Literal(__version__), about),
    ]
    for number, (triple, answers) in enumerate(missing(witnesses).values(), 1):
        statement = NamedNode(f"urn:halfgraph:proposed:{name}:{number}")
        quads += _statement(triple, answers, statement, graph, about)
    return quads


def _statement(
    triple: WitnessTriple, answers: Sequence[NamedEntity], statement: NamedNode, graph: NamedNode, about: NamedNode
) -> list[Quad]:
    """A triple in its graph, and its reification with confidence and answers."""
    subject, predicate, object_ = _term(triple.subject), NamedNode(triple.predicate.entity), _term(triple.object)
    properties: list[tuple[str, NamedNode | BlankNode | Literal]] = [
        (TYPE, NamedNode(f"{RDF}Statement")),
        (f"{RDF}subject", subject),
        (f"{RDF}predicate", predicate),
        (f"{RDF}object", object_),
        (f"{PROV}wasDerivedFrom", graph),
        *((f"{TERMS}supports", _term(answer)) for answer in answers),
    ]
    if triple.confidence is not None:
        properties.append((f"{TERMS}confidence", Literal(str(triple.confidence), datatype=NamedNode(f"{XSD}decimal"))))
    return [
        Quad(subject, predicate, object_, graph),
        *(Quad(statement, NamedNode(name), value, about) for name, value in properties),
    ]


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
