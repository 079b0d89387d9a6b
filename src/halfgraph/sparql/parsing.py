"""A checked text to plain triples: rdflib's parser stays behind this file."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from halfgraph.graph.statements import RDF
from halfgraph.sparql.refusals import MOST_PATTERNS, refused
from halfgraph.sparql.tokens import Source

_ONE_AT_A_TIME = threading.Lock()  # pyparsing keeps its state in its grammar


@dataclass(frozen=True)
class Variable:
    """A variable x; a blank node is _:x or, without a label, [1]; the middle of a path is /1."""

    name: str

    def shown(self) -> str:
        """How to speak of it."""
        if self.name.startswith("["):
            return "a blank node [ ]"
        if self.name.startswith("/"):
            return "the middle of a path"
        return self.name if self.name.startswith("_:") else f"?{self.name}"


@dataclass(frozen=True)
class Iri:
    """A name in full."""

    iri: str


Node = Variable | Iri
Triple = tuple[Node, Node, Node]


@dataclass(frozen=True)
class Parsed:
    """What a SELECT says, its property paths taken apart into triples."""

    selected: tuple[str, ...] | None  # None: *
    distinct: bool
    limit: int | None
    offset: int
    triples: tuple[Triple, ...]


def parse(source: Source) -> Parsed:
    """What a text says that pyoxigraph takes and that has no word or mark of REFUSALS."""
    try:
        with _ONE_AT_A_TIME:
            select = _parser()(source.plain())[1]
    except RecursionError as error:
        raise refused("nesting", None) from error
    except _parse_error() as error:
        raise refused("extension", None) from error
    triples = tuple(dict.fromkeys(_Triples(source).of_groups(select.where)))
    if len(triples) > MOST_PATTERNS:
        raise refused("size", None)
    limits = select.limitoffset
    return Parsed(
        selected=tuple(str(one.var) for one in select.projection) if select.projection else None,
        distinct=select.modifier == "DISTINCT",
        limit=int(limits.limit) if limits and limits.limit is not None else None,
        offset=int(limits.offset) if limits and limits.offset is not None else 0,
        triples=triples,
    )


@lru_cache(maxsize=1)
def _parser() -> Callable[[str], Any]:
    """rdflib's parser, warm: its grammar is put together when it is first used."""
    from rdflib.plugins.sparql.parser import parseQuery

    parseQuery("SELECT ?x WHERE { ?x :p/^:q :a ; a [ :p _:b ] . { :a <b> ?x } } LIMIT 1 OFFSET 1")
    parser: Callable[[str], Any] = parseQuery
    return parser


def _parse_error() -> type[Exception]:
    from pyparsing import ParseBaseException

    error: type[Exception] = ParseBaseException
    return error


class _Triples:
    """The triples of a parse tree, in the order of the text; new variables are numbered as they come."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.labels = {token.text for token in source.body if token.kind == "blank"}
        self.blank: dict[str, Variable] = {}
        self.paths: dict[tuple[Node, str, Node], int] = {}

    def of_groups(self, groups: Any) -> Iterator[Triple]:
        """Those of groups side by side."""
        for group in groups.part:
            for block in group.graph[0].part or ():
                for terms in block.triples:
                    for place in range(0, len(terms), 3):
                        yield from self.of_path(*terms[place : place + 3])

    def of_path(self, subject: Any, path: Any, object_: Any) -> Iterator[Triple]:
        """Those of one pattern; the same pattern again gives the same."""
        ends = self.node(subject), self.node(object_)
        steps = self.steps(path)
        key = (ends[0], repr(steps), ends[1])
        number = self.paths.setdefault(key, len(self.paths))
        middles = [Variable(f"/{number}.{step}") for step in range(1, len(steps))]
        for (relation, inverse), start, end in zip(steps, [ends[0], *middles], [*middles, ends[1]], strict=True):
            yield (end, relation, start) if inverse else (start, relation, end)

    def steps(self, path: Any) -> list[tuple[Node, bool]]:
        """The relations of a path, each with whether it is inverse."""
        match getattr(path, "name", "pname"):
            case "PathAlternative" | "PathSequence":
                return [step for part in path.part for step in self.steps(part)]
            case "PathElt":
                return self.steps(path.part)
            case "PathEltOrInverse":
                return [(relation, not inverse) for relation, inverse in reversed(self.steps(path.part))]
            case _:
                return [(self.node(path), False)]

    def node(self, term: Any) -> Node:
        """A variable or an IRI."""
        match type(term).__name__:
            case "Variable":
                return Variable(str(term))
            case "BNode":
                return self._blank_node(str(term))
            case "URIRef":
                iri = self.source.iri(f"<{term}>")
            case _:
                iri = self.source.iri(f"{term.prefix or ''}:{term.localname or ''}")
        assert iri is not None  # pyoxigraph knows all prefixes
        if iri in (RDF + "first", RDF + "rest", RDF + "nil") and self.source.of_iri(iri) is None:
            bracket = next((token for token in self.source.body if token.says("(")), None)
            raise refused("list", self.source.place(bracket))
        return Iri(iri)

    def _blank_node(self, label: str) -> Variable:
        """The variable of a blank node; rdflib makes up labels where there are none."""
        if f"_:{label}" in self.labels:
            return Variable(f"_:{label}")
        return self.blank.setdefault(label, Variable(f"[{len(self.blank) + 1}]"))
