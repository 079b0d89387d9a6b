"""The meaning `Spelled`: a query on a graph as one line of text, as SPARQL, and as a drawing for the terminal.

All three name the variables alike: ?answer, and ?v1, ?v2, ... so that each comes after those it is found from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import indent

from pyoxigraph import BlankNode

from halfgraph.errors import InputError
from halfgraph.graph.folder import Graph
from halfgraph.graph.vocabulary import local_name
from halfgraph.query.patterns import Edge, Either, Equals, Group, Not, OfType, Pattern, Term, flatten, variables
from halfgraph.query.tree import Query
from halfgraph.sparql.prefixes import Prefixes


def one_line(query: Query, graph: Graph, target: str = "answer") -> str:
    """The query with labels, as in the paper's Figure 1: ?answer . ∃ ?v1 : guest(Escape Clause, ?v1) ∧ ..."""
    return f"?{target} . {Labelled(graph).claim(flatten(query, target), target)}"


def to_sparql(query: Query, graph: Graph, target: str = "answer") -> str:
    """The query as SPARQL that means just the same; only the prefixes that it uses are declared."""
    group = flatten(query, target)
    writer = Sparql(graph, Prefixes.of(graph), [])
    body = indent(writer.block(group), "  ")
    head = "".join(f"{line}\n" for line in writer.prefixes.declarations(writer.iris))
    return f"{head}SELECT DISTINCT ?{target} WHERE {{\n{body}\n}}\n"


def drawing(query: Query, graph: Graph, target: str = "answer") -> str:
    """The query as a tree of lines, from the answer to the known entities; a variable used twice is drawn once."""
    return "\n".join(Drawn(Labelled(graph), flatten(query, target)).lines(target))


@dataclass(frozen=True)
class Labelled:
    """Patterns by the labels that people read."""

    graph: Graph

    def term(self, term: Term) -> str:
        """A variable, or the label of an entity."""
        return f"?{term}" if isinstance(term, str) else self.graph.entities.label(int(term.entity))

    def relation(self, relation: int) -> str:
        """The label of a relation; an inverse ends with ⁻¹."""
        return self.graph.relations.label(relation // 2) + ("⁻¹" if relation & 1 else "")

    def type_id(self, type_id: int) -> str:
        """The last part of a type's name."""
        return local_name(self.graph.types.names[type_id])

    def claim(self, group: Group, target: str) -> str:
        """Patterns about a variable that all hold, with the other variables that there must be."""
        bound = ", ".join(f"?{name}" for name in variables(group) if name != target)
        return (f"∃ {bound} : " if bound else "") + self.formula(group)

    def formula(self, group: Group) -> str:
        """Patterns that all hold."""
        return " ∧ ".join(map(self.atom, group))

    def atom(self, pattern: Pattern) -> str:
        """One pattern."""
        match pattern:
            case Edge():
                return f"{self.relation(pattern.relation)}({self.term(pattern.source)}, ?{pattern.target})"
            case OfType():
                return f"{self.type_id(pattern.type_id)}(?{pattern.variable})"
            case Equals():
                return f"?{pattern.variable} = {self.term(pattern.anchor)}"
            case Either():
                choices = (
                    f"({self.formula(some)})" if len(some) > 1 else self.formula(some) for some in pattern.groups
                )
                return f"({' ∨ '.join(choices) or 'false'})"
            case Not(group=(Equals(anchor=anchor),)):
                return f"?{pattern.variable} ≠ {self.term(anchor)}"
            case Not():
                claim = self.claim(pattern.group, pattern.variable)
                return f"¬({claim})"


@dataclass(frozen=True)
class Sparql:
    """Patterns as SPARQL; the shortened IRIs are collected on the way."""

    graph: Graph
    prefixes: Prefixes
    iris: list[str]

    def block(self, group: Group) -> str:
        """Patterns that all hold, a line each."""
        return "\n".join(map(self.line, group))

    def line(self, pattern: Pattern) -> str:
        """One pattern; an inverse relation is written in the direction of the triples."""
        match pattern:
            case Edge():
                ends = [self.term(pattern.source), f"?{pattern.target}"]
                subject, object_ = reversed(ends) if pattern.relation & 1 else ends
                return f"{subject} {self.iri(self.graph.relations.name(pattern.relation // 2))} {object_} ."
            case OfType():
                return f"?{pattern.variable} a {self.iri(self.graph.types.names[pattern.type_id])} ."
            case Equals():
                return f"VALUES ?{pattern.variable} {{ {self.term(pattern.anchor)} }}"
            case Either():
                blocks = [f"{{\n{indent(self.block(some), '  ')}\n}}" for some in pattern.groups]
                return " UNION ".join(blocks) or f"VALUES ?{pattern.variable} {{ }}"
            case Not(group=(Equals(anchor=anchor),)):
                return f"FILTER (?{pattern.variable} != {self.term(anchor)})"
            case Not():
                return f"FILTER NOT EXISTS {{\n{indent(self.block(pattern.group), '  ')}\n}}"

    def term(self, term: Term) -> str:
        """A variable, or the IRI of an entity."""
        return f"?{term}" if isinstance(term, str) else self.iri(self.graph.entities.name(int(term.entity)))

    def iri(self, name: str) -> str:
        """The IRI of a name, as short as it can be."""
        if isinstance(self.graph.namer.term(name), BlankNode):
            raise InputError(
                f"{name} is a blank node, which SPARQL cannot name: there it would be a variable",
                advice="Import the graph with --blank-nodes drop, or ask about an entity with an IRI.",
            )
        self.iris.append(self.prefixes.short(self.graph.namer.iri(name)))
        return self.iris[-1]


@dataclass(frozen=True)
class Drawn:
    """Patterns as lines: under each variable what leads to it."""

    labels: Labelled
    group: Group

    def lines(self, target: str) -> list[str]:
        """The whole drawing."""
        return [self.head(target), *self.below(target, set())]

    def head(self, variable: str) -> str:
        """A variable with its types, marked where more than one line leads to it."""
        uses = sum(isinstance(one, Edge) and one.source == variable for one in self.group)
        return f"?{variable}{self.types(variable)}" + (" (shared)" if uses > 1 else "")

    def types(self, variable: str) -> str:
        """The types that a variable is said to be of."""
        said = (one.type_id for one in self.group if isinstance(one, OfType) and one.variable == variable)
        return "".join(f" : {self.labels.type_id(type_id)}" for type_id in said)

    def below(self, variable: str, seen: set[str]) -> list[str]:
        """The lines under a variable."""
        seen.add(variable)
        branches = [branch for pattern in self.group for branch in self.branches(variable, pattern, seen)]
        return [line for place, branch in enumerate(branches) for line in hung(branch, place == len(branches) - 1)]

    def branches(self, variable: str, pattern: Pattern, seen: set[str]) -> Iterator[list[str]]:
        """What one pattern hangs under a variable."""
        match pattern:
            case Edge(source=source, target=target) if target == variable:
                yield self.branch(pattern, source, seen)
            case Equals() if pattern.variable == variable:
                yield [f"= {self.labels.term(pattern.anchor)}"]
            case Either() if pattern.variable == variable:
                for word, some in zip(["either", *["or"] * len(pattern.groups)], pattern.groups, strict=False):
                    drawn = Drawn(self.labels, some)
                    yield [word + drawn.types(variable), *drawn.below(variable, set())]

            case Not() if pattern.variable == variable:
                drawn = Drawn(self.labels, pattern.group)
                yield ["not" + drawn.types(variable), *drawn.below(variable, set())]

    def branch(self, edge: Edge, source: Term, seen: set[str]) -> list[str]:
        """An edge and what is under its source; a variable drawn above is named only."""
        arrow = f"{self.labels.relation(edge.relation)} ← "
        if not isinstance(source, str):
            return [arrow + self.labels.term(source)]
        if source in seen:
            return [f"{arrow}?{source} (as above)"]
        return [arrow + self.head(source), *self.below(source, seen)]


def hung(branch: Sequence[str], last: bool) -> list[str]:
    """A branch with the lines that tie it to the one above."""
    first, *rest = branch
    return [f"{'└─' if last else '├─'} {first}", *(f"{'   ' if last else '│  '}{line}" for line in rest)]
