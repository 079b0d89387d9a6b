"""The statements that an import has read: triples by provisional ids, types, labels, counts."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

SPLITS = ("train", "valid", "test")
BUFFERED = 200_000  # ids in a list before they are packed into an array

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
TYPE = RDF + "type"
SUB_CLASS_OF = RDFS + "subClassOf"
LABEL = RDFS + "label"
SKOS_LABEL = "http://www.w3.org/2004/02/skos/core#prefLabel"
LABELS = (LABEL, SKOS_LABEL, "https://schema.org/name", "http://schema.org/name")  # predicates, the best first
# Predicates that describe the vocabulary: not learned by default.
SCHEMA = frozenset(
    {RDFS + name for name in ("subClassOf", "subPropertyOf", "domain", "range", "isDefinedBy")}
    | {OWL + name for name in ("equivalentClass", "equivalentProperty", "inverseOf", "disjointWith", "imports")}
    | {OWL + name for name in ("onProperty", "someValuesFrom", "allValuesFrom", "versionIRI")}
    | {OWL + name for name in ("unionOf", "intersectionOf", "complementOf")}
)


def numbering() -> "defaultdict[str, int]":
    """Return a dictionary that gives each new key the next number."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


@dataclass
class TripleBuffer:
    """Growing list of triples by provisional ids: head, relation, tail, head, relation, ..."""

    pieces: "list[array[int]]" = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # appending to a list is much faster than to an array

    def add(self, triple: tuple[int, int, int]) -> None:
        self.waiting.extend(triple)
        if len(self.waiting) >= BUFFERED:
            self.flush()

    def flush(self) -> None:
        self.pieces.append(array("i", self.waiting))
        self.waiting.clear()

    def __len__(self) -> int:
        return (sum(map(len, self.pieces)) + len(self.waiting)) // 3

    def stacked(self) -> NDArray[np.int32]:
        """Return the triples (n, 3) and empty the buffer."""
        self.flush()
        triples = np.frombuffer(bytearray().join(self.pieces), np.int32)
        self.pieces.clear()
        return triples.reshape(-1, 3)


@dataclass
class Statements:
    """All statements read; provisional ids count names in order of appearance."""

    aside: TextIO  # receives statements that are not triples of the graph, as N-Quads
    language: str = "en"
    names: "defaultdict[str, int]" = field(default_factory=numbering)
    relations: "defaultdict[str, int]" = field(default_factory=numbering)
    classes: "defaultdict[str, int]" = field(default_factory=numbering)
    splits: dict[str, "TripleBuffer"] = field(default_factory=dict)
    named: "TripleBuffer" = field(default_factory=lambda: TripleBuffer())  # those of `splits` read in a named graph
    typed: "array[int]" = field(default_factory=lambda: array("i"))  # an entity ...
    types: "array[int]" = field(default_factory=lambda: array("i"))  # ... and a class of it
    super_classes: list[tuple[str, str]] = field(default_factory=list)
    labels: dict[str, tuple[int, str]] = field(default_factory=dict)  # rank and text; the lowest wins
    literals: "array[int]" = field(default_factory=lambda: array("q"))  # a hash of each literal statement
    counts: Counter[str] = field(default_factory=Counter)
    prefixes: dict[str, str] = field(default_factory=dict)
    blank_nodes: int = 0
    blank_nodes_of_document: dict[str, str] = field(default_factory=dict)

    def mark(self) -> tuple[int, ...]:
        """Return numbers that change with every statement."""
        triples = (len(buffer.pieces) + len(buffer.waiting) for buffer in self.splits.values())
        return (*triples, len(self.literals), len(self.typed), len(self.labels), self.counts.total())

    def split(self, name: str) -> "TripleBuffer":
        return self.splits.setdefault(name, TripleBuffer())

    def add(self, split: str, head: str, relation: str, tail: str) -> None:
        self.split(split).add((self.names[head], self.relations[relation], self.names[tail]))

    def add_type(self, entity: str, class_name: str) -> None:
        self.typed.append(self.names[entity])
        self.types.append(self.classes[class_name])

    def add_label(self, name: str, label: str, rank: int = 0) -> None:
        """Add a label, kept if it has the best rank so far; ties go to the alphabetically first."""
        best = self.labels.get(name)
        if best is None or (rank, label) < best:
            self.labels[name] = (rank, label)

    def namer_of_blank_nodes(self, one_document: bool = False) -> Callable[[str], str]:
        """Return a function that names the blank nodes of one file, or of all files as one document."""
        seen = self.blank_nodes_of_document if one_document else {}

        def name(identifier: str) -> str:
            if identifier not in seen:
                seen[identifier] = f"_:b{self.blank_nodes}"
                self.blank_nodes += 1
            return seen[identifier]

        return name


def label_rank(predicate: str, language: str | None, preferred: str) -> int:
    """Return the rank of a label, 0 is best: the preferred language, then none, then English, then others."""
    own, wanted = (language or "").lower(), preferred.lower()
    own_base, wanted_base = (tag.partition("-")[0] for tag in (own, wanted))
    matches = (own == wanted, own_base == wanted_base, not own, own_base == "en", True)
    return 10 * matches.index(True) + LABELS.index(predicate)
