"""A query tree as SPARQL: its patterns as a syntax tree for the store, and as text for people to read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyoxigraph import BlankNode

from halfgraph.errors import InputError
from halfgraph.graph.folder import Graph
from halfgraph.query.patterns import Edge, Either, Equals, Not, OfType, Pattern, flatten
from halfgraph.query.tree import Anchor, Query
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import RDF_TYPE, Iri, Triple, Values, Variable
from halfgraph.sparql.writer import write


def to_sparql(query: Query, graph: Graph, target: str = "answer") -> str:
    """Return SPARQL with the answers of a query, one pattern a line, and declarations of the prefixes that it uses."""
    prefixes, names = Prefixes.of(graph), dict[str, str]()
    group = Elements(graph).group(flatten(query, target))
    lines = [line for part in group.elements for line in _lines(part, _naming(prefixes, names))]
    head = f"SELECT DISTINCT ?{target} WHERE {{"
    return "".join(f"{line}\n" for line in [*prefixes.declarations(names.values()), head, *lines, "}"])


def short_text(query: tree.Query, prefixes: Prefixes) -> str:
    """Return a query with short names and the declarations of their prefixes, on one line."""
    names: dict[str, str] = {}
    text = write(query, _naming(prefixes, names))
    return " ".join([*prefixes.declarations(names.values()), text])


def _naming(prefixes: Prefixes, names: dict[str, str]) -> Callable[[str], str]:
    """Return a function that shortens IRIs and keeps them."""
    return lambda iri: names.setdefault(iri, prefixes.short(iri))


def _lines(element: tree.SyntaxNode, short: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of an element, indented; groups in it have lines of their own."""
    groups: tuple[tree.Group, ...]
    match element:
        case tree.UnionPattern():
            before, groups = "  {", element.groups
        case tree.Group():
            before, groups = "  {", (element,)
        case tree.Filter(tree.Exists(group)):
            before, groups = "  FILTER NOT EXISTS {", (group,)
        case _:
            yield "  " + write(element, short)
            return
    for part in groups:
        yield before
        for inner in part.elements:
            yield from ("  " + line for line in _lines(inner, short))
        before = "  } UNION {"
    yield "  }"


@dataclass(frozen=True)
class Elements:
    """Makes syntax nodes of the patterns of a query."""

    graph: Graph

    def group(self, patterns: Sequence[Pattern]) -> tree.Group:
        """Return patterns that all hold."""
        return tree.Group(tuple(map(self.element, patterns)))

    def element(self, pattern: Pattern) -> tree.Element:
        """Return one pattern; an inverse relation is written in the direction of the triples."""
        match pattern:
            case Edge(source, relation, target):
                ends = [self.entity(source) if isinstance(source, Anchor) else Variable(source), Variable(target)]
                subject, object_ = reversed(ends) if relation & 1 else ends
                return Triple(subject, self.iri(self.graph.relations.name(relation // 2)), object_)
            case OfType(variable, type_id):
                return Triple(Variable(variable), Iri(RDF_TYPE), self.iri(self.graph.types.names[type_id]))
            case Equals(variable, anchor):
                return Values((Variable(variable),), ((self.entity(anchor),),))
            case Either(variable, ()):
                return Values((Variable(variable),), ())
            case Either(_, groups):
                branches = tuple(map(self.group, groups))
                return tree.UnionPattern(branches) if len(branches) > 1 else branches[0]
            case Not(variable, (Equals(_, anchor),)):
                return tree.Filter(tree.Operation(Variable(variable), (("!=", self.entity(anchor)),)))
            case Not(_, group):
                return tree.Filter(tree.Exists(self.group(group), negated=True))

    def entity(self, anchor: Anchor) -> Iri:
        return self.iri(self.graph.entities.name(int(anchor.entity)))

    def iri(self, name: str) -> Iri:
        if isinstance(self.graph.namer.term(name), BlankNode):
            raise InputError(
                f"{name} is a blank node, which a query cannot name",
                advice="Import the graph with --blank-nodes drop, or ask about an entity with an IRI.",
            )
        return Iri(self.graph.namer.iri(name))
