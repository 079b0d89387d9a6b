"""A query tree as SPARQL: its patterns as a syntax tree for the store, and as text for people to read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyoxigraph import BlankNode

from halfgraph.errors import InputError
from halfgraph.graph.folder import Graph
from halfgraph.query.patterns import Edge, Either, Equals, Group, Not, OfType, Pattern, Term, flatten
from halfgraph.query.tree import Query
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import RDF_TYPE, Iri, Triple, Values, Variable
from halfgraph.sparql.writer import write


def to_sparql(query: Query, graph: Graph, target: str = "answer") -> str:
    """Return SPARQL with the answers of a query, one pattern a line, and declarations of the prefixes that it uses."""
    prefixes, iris = Prefixes.of(graph), list[str]()
    name = _naming(prefixes, iris)
    group = Elements(graph).group(flatten(query, target))
    body = "\n".join(line for element in group.elements for line in _lines(element, name))
    head = "".join(f"{line}\n" for line in prefixes.declarations(iris))
    return f"{head}SELECT DISTINCT ?{target} WHERE {{\n{body}\n}}\n"


def short_text(query: tree.Query, prefixes: Prefixes) -> str:
    """Return a query with short names and the declarations of their prefixes, on one line."""
    iris: list[str] = []
    text = write(query, _naming(prefixes, iris))
    return " ".join([*prefixes.declarations(iris), text])


def _naming(prefixes: Prefixes, used: list[str]) -> Callable[[str], str]:
    """Return a function that shortens IRIs and adds them to a list."""

    def short(iri: str) -> str:
        used.append(prefixes.short(iri))
        return used[-1]

    return short


def _lines(element: tree.SyntaxNode, short: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of an element, indented; groups in it have lines of their own."""
    match element:
        case tree.UnionPattern():
            yield from _blocks("", element.groups, short)
        case tree.Group():
            yield from _blocks("", [element], short)
        case tree.Filter(constraint=tree.Exists() as exists):
            yield from _blocks("FILTER NOT EXISTS ", [exists.group], short)
        case _:
            yield "  " + write(element, short)


def _blocks(head: str, groups: Iterable[tree.Group], short: Callable[[str], str]) -> Iterator[str]:
    before = f"  {head}{{"
    for group in groups:
        yield before
        for element in group.elements:
            yield from ("  " + line for line in _lines(element, short))
        before = "  } UNION {"
    yield "  }"


@dataclass(frozen=True)
class Elements:
    """Makes syntax nodes of the patterns of a query."""

    graph: Graph

    def group(self, patterns: Group) -> tree.Group:
        """Return patterns that all hold."""
        return tree.Group(tuple(map(self.element, patterns)))

    def element(self, pattern: Pattern) -> tree.Element:
        """Return one pattern; an inverse relation is written in the direction of the triples."""
        match pattern:
            case Edge():
                return self.triple(pattern.source, pattern.relation, pattern.target)
            case OfType():
                return self.type_of(pattern.variable, pattern.type_id)
            case Equals():
                return self.equals(pattern.variable, pattern.anchor)
            case Either(groups=()):
                return Values((Variable(pattern.variable),), ())
            case Either():
                groups = tuple(map(self.group, pattern.groups))
                return tree.UnionPattern(groups) if len(groups) > 1 else groups[0]
            case Not(group=(Equals(anchor=anchor),)):
                return tree.Filter(tree.Operation(Variable(pattern.variable), (("!=", self.entity(anchor)),)))
            case Not():
                return tree.Filter(tree.Exists(self.group(pattern.group), negated=True))

    def triple(self, source: Term, relation: int, target: Term) -> Triple:
        """Return a triple pattern."""
        ends = [self.term(source), self.term(target)]
        subject, object_ = reversed(ends) if relation & 1 else ends
        return Triple(subject, self.iri(self.graph.relations.name(relation // 2)), object_)

    def type_of(self, variable: str, type_id: int) -> Triple:
        """Return the pattern that gives a variable a type."""
        return Triple(Variable(variable), Iri(RDF_TYPE), self.iri(self.graph.types.names[type_id]))

    def equals(self, variable: str, term: Term) -> Values:
        """Return the pattern that a variable is an entity."""
        return Values((Variable(variable),), ((self.entity(term),),))

    def term(self, term: Term) -> tree.Term:
        """Return a variable or the IRI of an entity."""
        return Variable(term) if isinstance(term, str) else self.entity(term)

    def entity(self, anchor: Term) -> Iri:
        """Return the IRI of an entity."""
        assert not isinstance(anchor, str)
        return self.iri(self.graph.entities.name(int(anchor.entity)))

    def iri(self, name: str) -> Iri:
        """Return the IRI of a name."""
        if isinstance(self.graph.namer.term(name), BlankNode):
            raise InputError(
                f"{name} is a blank node, which a query cannot name",
                advice="Import the graph with --blank-nodes drop, or ask about an entity with an IRI.",
            )
        return Iri(self.graph.namer.iri(name))
