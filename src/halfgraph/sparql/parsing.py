"""A checked text to groups of plain triples: rdflib's parser stays behind this file."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from halfgraph.graph.statements import RDF
from halfgraph.sparql.groups import Among, Choice, Groups, Raw, Run, Taken, Test
from halfgraph.sparql.refusals import MOST_PATTERNS, refused
from halfgraph.sparql.tokens import Source, Token

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


@dataclass(frozen=True)
class Value:
    """A literal, as SPARQL writes it."""

    text: str


Node = Variable | Iri
Said = Node | Value
Triple = tuple[Said, Said, Said]


@dataclass(frozen=True)
class OneOf:
    """Groups of which one must hold: a UNION, or a choice in a path."""

    groups: tuple["Group", ...]


@dataclass(frozen=True)
class Without:
    """A group that must not hold; `within`: what it takes away from, if that is not all of the group it is in."""

    group: "Group"
    token: Token
    within: "Group | None" = None


Item = Triple | OneOf | Without | Among | Test
Group = tuple[Item, ...]


@dataclass(frozen=True)
class Parsed:
    """What a SELECT says, its property paths taken apart into triples."""

    selected: tuple[str, ...] | None  # None: *
    distinct: bool
    limit: int | None
    offset: int
    group: Group


def parse(source: Source) -> Parsed:
    """What a text says that pyoxigraph takes and that has no word or mark of REFUSALS."""
    groups = Groups(source)
    raw = groups.whole()
    text, numbers = groups.plain()
    try:
        with _ONE_AT_A_TIME:
            select = _parser()(text)[1]
    except RecursionError as error:
        raise refused("nesting", None) from error
    except _parse_error() as error:
        raise refused("extension", None) from error
    runs: dict[int, list[Any]] = {}
    for number, group in zip(numbers, select.where.part if numbers else (), strict=True):
        runs.setdefault(number, []).extend(_patterns(group))
    reader = _Reader(source, runs)
    group = reader.group(raw)
    if reader.count > MOST_PATTERNS:
        raise refused("size", None)
    limits = select.limitoffset
    return Parsed(
        selected=tuple(str(one.var) for one in select.projection) if select.projection else None,
        distinct=select.modifier == "DISTINCT",
        limit=int(limits.limit) if limits and limits.limit is not None else None,
        offset=int(limits.offset) if limits and limits.offset is not None else 0,
        group=group,
    )


def variables_of(group: Group) -> dict[str, None]:
    """The variables that a group gives values to, in the order of the text."""
    found: dict[str, None] = {}
    for item in group:
        match item:
            case (_, _, _):
                found |= {term.name: None for term in item if isinstance(term, Variable)}
            case OneOf():
                found |= {name: None for some in item.groups for name in variables_of(some)}
            case Among(negated=False):
                found[item.variable] = None
    return found


def scoped(group: Group, source: Source) -> Group:
    """The items of a group, to be joined with others: what is tested and taken away in it sees this group alone."""
    names = variables_of(group)
    for item in group:
        tested = {item.variable} if isinstance(item, Among) else item.variables if isinstance(item, Test) else set()
        if lost := sorted(name for name in tested if name not in names):
            raise refused("missing variable", source.place(source.body[0]), name=lost[0])
    return tuple(
        replace(item, within=group) if isinstance(item, Without) and item.within is None else item for item in group
    )


def _patterns(group: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The patterns of one of rdflib's groups."""
    for block in group.graph[0].part or ():
        for terms in block.triples:
            yield from (tuple(terms[place : place + 3]) for place in range(0, len(terms), 3))


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


# The relations of a path, each with whether it is inverse, or a choice of paths.
Steps = list[Any]


class _Reader:
    """The items of the groups of a text, in its order; new variables are numbered as they come."""

    def __init__(self, source: Source, runs: Mapping[int, list[Any]]) -> None:
        self.source, self.runs = source, runs
        self.labels = {token.text for token in source.body if token.type_id == "blank"}
        self.blank: dict[str, Variable] = {}
        self.paths: dict[tuple[object, ...], int] = {}
        self.scopes = self.count = 0

    def group(self, raw: Raw) -> Group:
        """The items of a group, each once; in groups of their own the same path is another one."""
        self.scopes += 1
        scope, items = self.scopes, list[Item]()
        for one in raw:
            match one:
                case Run():
                    for pattern in self.runs.get(one.number, ()):
                        items += self.of_path(scope, *pattern)
                case Choice(groups=(only,)):
                    items += scoped(self.group(only), self.source)
                case Choice():
                    items.append(OneOf(tuple(map(self.group, one.groups))))
                case Taken():
                    within = tuple(items) if one.token.says("MINUS") else None  # MINUS does not see what comes later
                    items.append(Without(self.group(one.group), one.token, within))
                case _:
                    items.append(one)
        return tuple(dict.fromkeys(items))

    def of_path(self, scope: int, subject: Any, path: Any, object_: Any) -> Iterator[Item]:
        """Those of one pattern; the same pattern again gives the same."""
        ends = self.node(subject), self.node(object_)
        steps = self.steps(path)
        number = self.paths.setdefault((scope, ends[0], repr(steps), ends[1]), len(self.paths))
        yield from self.walked(ends[0], steps, ends[1], f"/{number}")

    def walked(self, start: Said, steps: Steps, end: Said, name: str) -> Iterator[Item]:
        """The steps of a path between two terms; its variables begin with a name."""
        middles = [Variable(f"{name}.{step}") for step in range(1, len(steps))]
        for place, (step, first, last) in enumerate(zip(steps, [start, *middles], [*middles, end], strict=True)):
            self.count += 1
            if isinstance(step[0], list):
                ways = (self.walked(first, way, last, f"{name}.{place}.{each}") for each, way in enumerate(step))
                yield OneOf(tuple(map(tuple, ways)))
            else:
                relation, inverse = step
                yield (last, relation, first) if inverse else (first, relation, last)

    def steps(self, path: Any) -> Steps:
        """The steps of a path."""
        match getattr(path, "name", "pname"):
            case "PathAlternative":
                ways = [self.steps(part) for part in path.part]
                return ways[0] if len(ways) == 1 else [tuple(ways)]
            case "PathSequence":
                return [step for part in path.part for step in self.steps(part)]
            case "PathElt":
                return self.steps(path.part)
            case "PathEltOrInverse":
                return _turned(self.steps(path.part))
            case _:
                return [(self.node(path), False)]

    def node(self, term: Any) -> Said:
        """A variable, an IRI or a literal."""
        match type(term).__name__:
            case "Variable":
                return Variable(str(term))
            case "Literal":
                return Value(term.n3())
            case _ if getattr(term, "name", "") == "literal":
                return Value(self._literal(term))
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

    def _literal(self, term: Any) -> str:
        """A literal with its language or type."""
        datatype = self.node(term.datatype) if term.datatype else None
        ending = f"^^<{datatype.iri}>" if isinstance(datatype, Iri) else f"@{term.lang}" if term.lang else ""
        return f"{term.string.n3()}{ending}"


def _turned(steps: Steps) -> Steps:
    """A path walked from its end."""
    return [
        tuple(map(_turned, step)) if isinstance(step[0], list) else (step[0], not step[1]) for step in reversed(steps)
    ]
