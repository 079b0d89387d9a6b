"""Triple patterns of a text as patterns of a row query; what names no relation or entity of the graph is none."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise

from halfgraph.errors import UnknownName
from halfgraph.graph.statements import SUB_CLASS_OF, TYPE
from halfgraph.query.rows import (
    AnyRelation,
    Domain,
    LinkPattern,
    Path,
    PathChoice,
    PathRepeat,
    PathSequence,
    Pattern,
    Relation,
    Term,
    TypePattern,
)
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.scopes import mentioned
from halfgraph.sparql.syntax_tree import BlankNode, Iri, PathOperation, Triple, Variable, walk
from halfgraph.sparql.translate import Names

IS_A, SUBCLASSES = Iri(TYPE), PathOperation("*", (Iri(SUB_CLASS_OF),))
TYPE_PATH = PathOperation("/", (IS_A, SUBCLASSES))
_REPEATS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass
class FreshNames:
    """Names for variables that the text does not have: blank nodes, middles of paths, variables of inner scopes."""

    taken: frozenset[str]
    names: list[str] = field(default_factory=list)
    blank: dict[str, str] = field(default_factory=dict)  # by label
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def new(self) -> str:
        self.names.append(next(name for number in self._numbers if (name := f"_{number}") not in self.taken))
        return self.names[-1]

    def of(self, label: str) -> str:
        """Return the variable of a blank node."""
        if label not in self.blank:
            self.blank[label] = self.new()
        return self.blank[label]

    def without_blank_nodes(self, triple: Triple) -> Triple:
        """Return a triple with variables in place of blank nodes."""
        ends = (self._term(term) for term in (triple.subject, triple.object))
        return Triple(next(ends), triple.predicate, next(ends), span=triple.span)

    def _term(self, term: tree.Term) -> tree.Term:
        match term:
            case BlankNode(label):
                return Variable(self.of(label), span=term.span)
            case tree.TripleTerm(subject, predicate, object_):
                return tree.TripleTerm(self._term(subject), predicate, self._term(object_), span=term.span)
        return term


@dataclass
class RowPatterns:
    """Makes patterns of a row query, and remembers the names that the graph does not have."""

    names: Names
    fresh: FreshNames
    domains: dict[str, Domain] = field(default_factory=dict)  # of variables that are no entities
    literals: set[str] = field(default_factory=set)  # variables that stand for literals
    unknown: dict[Iri, str] = field(default_factory=dict)  # and what each should be

    def find_domains(self, group: tree.Group) -> None:
        """Determine the variables that stand for relations, classes or literals.

        These are predicates, objects of rdf:type, and variables that VALUES or BIND give literals only.
        """
        self.literals |= set(_literal_variables(group))
        triples = [self.fresh.without_blank_nodes(node) for node in walk(group) if isinstance(node, Triple)]
        for triple in triples:
            for end, is_class in zip((triple.subject, triple.object), self._class_ends(triple.predicate), strict=True):
                self._set_domain(mentioned(end) if is_class else (), "class")
        for triple in triples:
            self._set_domain(mentioned(triple.predicate), "relation")

    def _set_domain(self, names: Iterable[str], domain: Domain) -> None:
        self.domains.update(dict.fromkeys(names, domain))

    def _class_ends(self, path: Variable | tree.Path) -> tuple[bool, bool]:
        """Return whether a path starts and ends at a class."""
        if self.names.graph.find_relation(TYPE) is not None:
            return False, False
        match path:
            case Iri(value):
                return False, value == TYPE
            case PathOperation("^", (inner,)):
                return self._class_ends(inner)[1], self._class_ends(inner)[0]
            case PathOperation("/") if path == TYPE_PATH:
                return False, True
            case PathOperation("/"):
                parts = list(_sequence(path))
                return self._class_ends(parts[0])[0], self._class_ends(parts[-1])[1]
            case PathOperation("|", parts):
                ends = [self._class_ends(part) for part in parts]
                return all(start for start, _ in ends), all(end for _, end in ends)
        return False, False

    def rename(self, names: Iterable[str]) -> dict[str, str]:
        """Return fresh names for variables, of the same domains."""
        new = {name: self.fresh.new() for name in sorted(names)}
        self.domains |= {new[name]: self.domains[name] for name in new if name in self.domains}
        self.literals |= {new[name] for name in new if name in self.literals}
        return new

    def steps(self, triple: Triple) -> tuple[Triple, ...]:
        """Return a triple with a sequence of paths as one triple for each; the variables between them are new."""
        match triple.predicate:
            case PathOperation("^", (inner,)) if not isinstance(inner, Iri):
                return self.steps(Triple(triple.object, inner, triple.subject, span=triple.span))
            case PathOperation("/") as path if path != TYPE_PATH:
                parts = list(_sequence(path))
                middles = [self._middle(*pair, triple) for pair in pairwise(parts)]
                ends = pairwise([triple.subject, *middles, triple.object])
                triples = (
                    Triple(*ends, span=triple.span)
                    for ends in ((first, part, last) for part, (first, last) in zip(parts, ends, strict=True))
                )
                return tuple(step for part in triples for step in self.steps(part))
        return (triple,)

    def _middle(self, before: tree.Path, after: tree.Path, triple: Triple) -> Variable:
        name = self.fresh.new()
        if self._class_ends(before)[1] or self._class_ends(after)[0]:
            self._set_domain((name,), "class")
        return Variable(name, span=triple.predicate.span)

    def pattern(self, triple: Triple) -> Pattern | None:
        """Return the uncertain pattern of a triple, or None if only the store can decide it."""
        match triple.predicate:
            case PathOperation("^", (Iri() as inner,)):
                return self.pattern(Triple(triple.object, inner, triple.subject, span=triple.span))
            case Variable(name):
                return self._link(triple.subject, AnyRelation(name), triple.object)
            case Iri(value) if value == TYPE and not self.names.is_type_relation(triple.object):
                return self._type(triple, False)
            case path if path == TYPE_PATH and not self.names.is_type_relation(triple.object):
                return self._type(triple, True)
        found = self.path(triple.predicate)
        return None if found is None else self._link(triple.subject, found, triple.object)

    def _link(self, start: tree.Term, path: Path, end: tree.Term) -> LinkPattern | None:
        source, target = self.term(start), self.term(end)
        return None if source is None or target is None else LinkPattern(source, path, target)

    def _type(self, triple: Triple, subclasses: bool) -> TypePattern | None:
        match self.term(triple.subject), triple.object:
            case (int() | str()) as term, Iri(iri):
                return TypePattern(term, iri, None, subclasses)
            case (int() | str()) as term, Variable(name) if self.domains.get(name) == "class":
                return TypePattern(term, None, name, subclasses)
        return None

    def term(self, node: tree.Term) -> Term | None:
        """Return a variable or an entity; None for literals, and for names and variables that are no entities."""
        match node:
            case Variable(name):
                return None if name in self.domains or name in self.literals else name
            case Iri(value):
                return self._known(self.names.graph.find_entity(value), node, "entity")
        return None

    def path(self, path: tree.Path) -> Path | None:
        """Return a path of relations, or None if it has another predicate."""
        match path:
            case Iri(value):
                relation = self._known(self.names.graph.find_relation(value), path, "relation")
                return None if relation is None else Relation(relation)
            case PathOperation("!", parts):
                return self._other_relations(parts)
            case PathOperation(operator, parts):
                inner = tuple(found for part in parts if (found := self.path(part)) is not None)
                return _combined(operator, inner) if len(inner) == len(parts) else None

    def _other_relations(self, parts: tuple[tree.Path, ...]) -> Path:
        """Return the path of a negated set: relations in one direction, and in the other if the set has such ones."""
        forward = [part.value for part in parts if isinstance(part, Iri)]
        backward = [part.parts[0].value for part in parts if isinstance(part, PathOperation)]  # type: ignore[union-attr]
        ways = [AnyRelation(None, self._relations(forward))] if forward or not backward else []
        ways += [AnyRelation(None, self._relations(backward), inverse=True)] if backward else []
        return ways[0] if len(ways) == 1 else PathChoice(tuple(ways))

    def _relations(self, iris: Iterable[str]) -> frozenset[int]:
        found = map(self.names.graph.find_relation, iris)
        return frozenset(relation for relation in found if relation is not None)

    def _known(self, number: int | None, node: Iri, what: str) -> int | None:
        if number is None and node.value != TYPE:
            self.unknown.setdefault(node, what)
        return number

    def unknown_name(self, node: Iri) -> UnknownName:
        """Return the error for a name that the graph does not have, with the nearest names."""
        what, graph = self.unknown[node], self.names.graph
        words = graph.relations if what == "relation" else graph.entities
        return self.names.unknown(node, what, self.names.similar(words, node.value))


def _literal_variables(group: tree.Group) -> Iterator[str]:
    """Yield the variables that VALUES or BIND of a group give literals, and nowhere a name."""
    values: dict[str, list[object]] = {}
    for node in walk(group):
        match node:
            case tree.Values(variables, rows):
                for column, variable in enumerate(variables):
                    values.setdefault(variable.name, []).extend(row[column] for row in rows)
            case tree.Bind(expression=expression, variable=Variable(name)):
                values.setdefault(name, []).append(expression)
    return (name for name, own in values.items() if own and all(isinstance(value, tree.Literal) for value in own))


def _sequence(path: PathOperation) -> Iterator[tree.Path]:
    """Yield the parts of a sequence; rdf:type/rdfs:subClassOf* is one of them."""
    parts = [part for inner in path.parts for part in _flat(inner)]
    while parts:
        if tuple(parts[:2]) == TYPE_PATH.parts:
            yield TYPE_PATH
            parts = parts[2:]
        else:
            yield parts.pop(0)


def _flat(path: tree.Path) -> Iterator[tree.Path]:
    if isinstance(path, PathOperation) and path.operator == "/":
        for part in path.parts:
            yield from _flat(part)
    else:
        yield path


def _combined(operator: str, parts: tuple[Path, ...]) -> Path:
    match operator:
        case "^":
            return inverse(parts[0])
        case "/":
            return PathSequence(parts)
        case "|":
            return PathChoice(parts)
    return PathRepeat(parts[0], *_REPEATS[operator])


def inverse(path: Path) -> Path:
    """Return a path walked from its end to its start."""
    match path:
        case Relation(number):
            return Relation(number ^ 1)
        case AnyRelation(variable, excluded, is_inverse):
            return AnyRelation(variable, excluded, not is_inverse)
        case PathSequence(parts):
            return PathSequence(tuple(map(inverse, reversed(parts))))
        case PathChoice(parts):
            return PathChoice(tuple(map(inverse, parts)))
        case PathRepeat(inner, least, most):
            return PathRepeat(inverse(inner), least, most)
