"""Small RDF graphs that fit a SPARQL text: its patterns with random entities and literals in place of variables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

import pyoxigraph as ox

from halfgraph.graph.statements import SUB_CLASS_OF, TYPE
from halfgraph.graph.vocabulary import local_name
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.scopes import mentioned
from halfgraph.sparql.syntax_tree import XSD, BlankNode, Iri, Literal, PathOperation, Triple, Variable, walk
from literal_properties import LABELS, last_properties, literal_properties, literal_variables

EX = "http://fit/"
ROUNDS = 3  # times that the patterns are instantiated
RARE = 0.3  # share of the rounds in which the patterns of MINUS and NOT EXISTS are instantiated
LITERALS = [
    *(ox.Literal(number) for number in (1, 7, 30, 1950)),
    *(ox.Literal(word, language="en") for word in ("Ada", "Bee")),
    ox.Literal("code"),
    ox.Literal(2.5),
    ox.Literal("1960-02-03T00:00:00Z", datatype=ox.NamedNode(XSD + "dateTime")),
    ox.Literal("2021-05-06T00:00:00Z", datatype=ox.NamedNode(XSD + "dateTime")),
]
Term = ox.NamedNode | ox.Literal


def term_of(node: Iri | Literal) -> Term:
    """Return a term of a text for the store."""
    if isinstance(node, Iri):
        return ox.NamedNode(node.value)
    if node.language:
        return ox.Literal(node.value, language=node.language)
    return ox.Literal(node.value, datatype=ox.NamedNode(node.datatype) if node.datatype else None)


@dataclass
class FittingGraph:
    """The triples of a graph that fits a query; `names` are the relations, entities and classes of the text."""

    query: tree.Query
    random: Random
    triples: dict[ox.Triple, None] = field(default_factory=dict)
    _values: dict[str, Term] = field(default_factory=dict)  # of variables and blank nodes, in this round

    @cached_property
    def patterns(self) -> list[tuple[Triple, bool]]:
        """The triple patterns of the text, each with whether it is excluded."""
        excluded = {
            id(inner)
            for node in walk(self.query)
            if _excludes(node)
            for inner in walk(node)
            if isinstance(inner, Triple)
        }
        return [(node, id(node) in excluded) for node in walk(self.query) if isinstance(node, Triple)]

    @cached_property
    def relations(self) -> list[str]:
        """The predicates of the text that lead to entities."""
        predicates = [triple.predicate for triple, _ in self.patterns]
        found = [node.value for node in walk(tuple(predicates)) if isinstance(node, Iri)]
        constants = [iri for iri in self.allowed_iris(self.predicate_variables) if iri not in found]
        own = [iri for iri in (*found, *constants) if iri not in self.literals and iri not in (TYPE, SUB_CLASS_OF)]
        return sorted(set(own)) or [EX + "related"]

    @cached_property
    def predicate_variables(self) -> frozenset[str]:
        return frozenset(t.predicate.name for t, _ in self.patterns if isinstance(t.predicate, Variable))

    @cached_property
    def literals(self) -> frozenset[str]:
        return literal_properties(self.query)

    @cached_property
    def literal_names(self) -> frozenset[str]:
        """The variables that stand for literals."""
        ends = ((triple.object, set(last_properties(triple.predicate))) for triple, _ in self.patterns)
        objects = {end.name for end, last in ends if isinstance(end, Variable) and last and last <= self.literals}
        return frozenset(objects | set(literal_variables(self.query)))

    @cached_property
    def summed(self) -> frozenset[str]:
        """The variables that SUM and AVG add up: one that is no number makes the whole sum an error."""
        calls = (node for node in walk(self.query) if isinstance(node, tree.Call) and node.function in ("SUM", "AVG"))
        return frozenset(name for call in calls for name in mentioned(call))

    @cached_property
    def classes(self) -> list[str]:
        objects = [triple.object for triple, _ in self.patterns if TYPE in last_properties(triple.predicate)]
        return sorted({node.value for node in objects if isinstance(node, Iri)}) or [EX + "Thing", EX + "Other"]

    @cached_property
    def entities(self) -> list[str]:
        """Invented entities, then those of the text."""
        ends = (end for triple, _ in self.patterns for end in (triple.subject, triple.object))
        named = {end.value for end in ends if isinstance(end, Iri)} | set(self.allowed_iris(None))
        own = sorted(named - set(self.classes) - set(self.relations) - self.literals)
        return [f"{EX}e{number}" for number in range(4)] + own

    @cached_property
    def allowed(self) -> dict[str, list[Term]]:
        """The values that VALUES, = or IN allow for variables."""
        found: dict[str, list[Term]] = {}
        for node in walk(self.query):
            for name, value in _allowed(node):
                found.setdefault(name, []).append(term_of(value))
        return found

    def allowed_iris(self, names: Iterable[str] | None) -> Iterator[str]:
        for name, values in self.allowed.items():
            if names is None or name in names:
                yield from (value.value for value in values if isinstance(value, ox.NamedNode))

    @cached_property
    def text_literals(self) -> list[Term]:
        nodes = (node for node in walk(self.query) if isinstance(node, Literal) and len(node.value) < 40)
        return list(dict.fromkeys(map(term_of, nodes)))

    def fill(self) -> None:
        """Instantiate the patterns."""
        for _ in range(ROUNDS):
            self._values = {}
            for triple, is_excluded in self.patterns:
                if self.random.random() < (RARE if is_excluded else 0.9):
                    start, end = self._term(triple.subject), self._end(triple)
                    self._add(start, triple.predicate, end)
        for entity in self.entities[:4]:
            self._put(
                ox.NamedNode(entity), "http://www.w3.org/2000/01/rdf-schema#label", self.random.choice(LITERALS[4:6])
            )

    def _add(self, start: Term, path: Variable | tree.Path, end: Term) -> None:
        match path:
            case Variable(name):
                self._put(start, self._value(name).value, end)
            case Iri(value):
                self._put(start, value, end)
            case PathOperation("^", (inner,)):
                self._add(end, inner, start)
            case PathOperation("/", (first, *others)):
                middle = self._middle(first)
                self._add(start, first, middle)
                self._add(middle, others[0] if len(others) == 1 else PathOperation("/", tuple(others)), end)
            case PathOperation("|", parts):
                self._add(start, self.random.choice(parts), end)
            case PathOperation("!"):
                self._put(start, self.random.choice(self.relations), end)
            case PathOperation(_, (inner,)) if path.operator != "?" and self.random.random() < 0.3:
                self._add(start, PathOperation("/", (inner, inner)), end)
            case PathOperation(_, (inner,)):
                self._add(start, inner, end)

    def _put(self, start: Term, predicate: str, end: Term) -> None:
        if isinstance(start, ox.NamedNode):
            self.triples[ox.Triple(start, ox.NamedNode(predicate), end)] = None

    def _middle(self, path: tree.Path) -> Term:
        last = set(last_properties(path))
        names = self.classes if last and last <= {TYPE, SUB_CLASS_OF} else self.entities
        return ox.NamedNode(self.random.choice(names))

    def _end(self, triple: Triple) -> Term:
        """Return the object of a pattern; an unbound one is what its property leads to."""
        last = set(last_properties(triple.predicate))
        match triple.object:
            case Variable(name) | BlankNode(name) if name not in self._values and name not in self.allowed:
                if last & {TYPE, SUB_CLASS_OF}:
                    self._values[name] = ox.NamedNode(self.random.choice(self.classes))
                elif last and all(local_name(iri) in LABELS for iri in last):
                    self._values[name] = self.random.choice(LITERALS[4:6])
        return self._term(triple.object)

    def _term(self, node: tree.Term) -> Term:
        match node:
            case Iri() | Literal():
                return term_of(node)
            case Variable(name):
                return self._value(name)
            case BlankNode(label):
                return self._value(f"_:{label}")
        return ox.NamedNode(self.entities[0])

    def _value(self, name: str) -> Term:
        if name not in self._values:
            self._values[name] = self._new_value(name)
        return self._values[name]

    def _new_value(self, name: str) -> Term:
        if name in self.predicate_variables:
            options = [value for value in self.allowed.get(name, ()) if isinstance(value, ox.NamedNode)]
            return self.random.choice(options or [ox.NamedNode(iri) for iri in self.relations])
        if name in self.allowed and self.random.random() < 0.8:
            return self.random.choice(self.allowed[name])
        if name in self.summed:
            return self.random.choice(LITERALS[:4])
        if name in self.literal_names:
            return self.random.choice([*LITERALS, *self.text_literals])
        return ox.NamedNode(self.random.choice(self.entities))

    # Uncertain facts

    def split(self, excluded: frozenset[str] | None, most: int) -> tuple[list[ox.Triple], dict[ox.Triple, float]]:
        """Return known triples, and uncertain ones of relations that are not excluded (None excludes all).

        Every relation, entity and class of the text stays known by other triples.
        """
        links = [t for t in self.triples if isinstance(t.object, ox.NamedNode) and self._may_lack(t, excluded)]
        links += list(self._random_links(excluded))
        self.random.shuffle(links)
        uncertain = {triple: self.random.choice([0.1, 0.3, 0.5, 0.9]) for triple in links[:most]}
        known = [triple for triple in self.triples if triple not in uncertain]
        return [*known, *(one for one in self._names() if one not in uncertain)], uncertain

    def _may_lack(self, triple: ox.Triple, excluded: frozenset[str] | None) -> bool:
        is_name = triple.subject.value in self.entities and triple.object.value in self.entities
        own = triple.predicate.value
        return excluded is not None and is_name and own in self.relations and own not in excluded

    def _random_links(self, excluded: frozenset[str] | None) -> Iterator[ox.Triple]:
        relations = [] if excluded is None else [own for own in self.relations if own not in excluded]
        for _ in range(2 if relations else 0):
            head, tail = self.random.choices(self.entities, k=2)
            triple = ox.Triple(*map(ox.NamedNode, (head, self.random.choice(relations), tail)))
            if triple not in self.triples:
                yield triple

    def _names(self) -> Iterator[ox.Triple]:
        """Triples of two further entities that make every name known."""
        ends = EX + "d0", EX + "d1"
        for relation in self.relations:
            yield ox.Triple(*map(ox.NamedNode, (ends[0], relation, ends[1])))
        for entity in self.entities:
            yield ox.Triple(*map(ox.NamedNode, (ends[0], EX + "knows", entity)))
        for name in self.classes:
            yield ox.Triple(*map(ox.NamedNode, (ends[1], TYPE, name)))


def _excludes(node: object) -> bool:
    return (isinstance(node, tree.Exists) and node.negated) or (
        isinstance(node, tree.Clause) and node.keyword == "MINUS"
    )


def _allowed(node: object) -> Iterator[tuple[str, Iri | Literal]]:
    """Yield pairs of a variable and a value that a condition allows."""
    match node:
        case tree.Values(variables, rows):
            for row in rows[:20]:
                for variable, cell in zip(variables, row, strict=True):
                    if isinstance(cell, Iri | Literal):
                        yield variable.name, cell
        case tree.Operation(Variable(name), (("=", (Iri() | Literal()) as value),)):
            yield name, value
        case tree.Call("IN", (Variable(name), *options)):
            yield from ((name, option) for option in options if isinstance(option, Iri | Literal))
        case tree.Bind(expression=(Iri() | Literal()) as value, variable=Variable(name)):
            yield name, value
