"""A query as one line of text and as a drawing for the terminal.

Both use the same names of variables, as does the query's SPARQL: ?answer, and ?v1, ?v2, ..., each after its sources.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from halfgraph.graph.folder import Graph
from halfgraph.graph.vocabulary import local_name
from halfgraph.query.patterns import Edge, Either, Equals, Group, Not, OfType, Pattern, Term, flatten, variables
from halfgraph.query.tree import Query


def one_line(query: Query, graph: Graph, target: str = "answer") -> str:
    """Return the query with labels, as in the paper's Figure 1: ?answer . ∃ ?v1 : guest(Escape Clause, ?v1) ∧ ..."""
    return f"?{target} . {Labelled(graph).claim(flatten(query, target), target)}"


def drawing(query: Query, graph: Graph, target: str = "answer") -> str:
    """Return the query as a tree of lines, from the answer to the known entities; a shared variable is drawn once."""
    whole = Drawing(Labelled(graph), flatten(query, target))
    return "\n".join([whole.head(target), *whole.below(target, set())])


@dataclass(frozen=True)
class Labelled:
    """Patterns written with labels."""

    graph: Graph

    def term(self, term: Term) -> str:
        return f"?{term}" if isinstance(term, str) else self.graph.entities.label(int(term.entity))

    def relation(self, relation: int) -> str:
        return self.graph.relations.label(relation // 2) + ("⁻¹" if relation & 1 else "")

    def type_id(self, type_id: int) -> str:
        return local_name(self.graph.types.names[type_id])

    def claim(self, group: Group, target: str) -> str:
        """Return the patterns about a variable, with the other variables quantified."""
        bound = ", ".join(f"?{name}" for name in variables(group) if name != target)
        return (f"∃ {bound} : " if bound else "") + self.formula(group)

    def formula(self, group: Group) -> str:
        return " ∧ ".join(map(self.atom, group))

    def atom(self, pattern: Pattern) -> str:
        match pattern:
            case Edge():
                return f"{self.relation(pattern.relation)}({self.term(pattern.source)}, ?{pattern.target})"
            case OfType():
                return f"{self.type_id(pattern.type_id)}(?{pattern.variable})"
            case Equals():
                return f"?{pattern.variable} = {self.term(pattern.anchor)}"
            case Either():
                formulas = ((group, self.formula(group)) for group in pattern.groups)
                choices = (f"({formula})" if len(group) > 1 else formula for group, formula in formulas)
                return f"({' ∨ '.join(choices) or 'false'})"
            case Not(group=(Equals(anchor=anchor),)):
                return f"?{pattern.variable} ≠ {self.term(anchor)}"
            case Not():
                return f"¬({self.claim(pattern.group, pattern.variable)})"


@dataclass(frozen=True)
class Drawing:
    """Patterns as lines: under each variable what leads to it."""

    labels: Labelled
    group: Group

    def head(self, variable: str) -> str:
        """Return a variable with its types, marked if it is shared."""
        uses = sum(isinstance(pattern, Edge) and pattern.source == variable for pattern in self.group)
        return f"?{variable}{self.types(variable)}" + (" (shared)" if uses > 1 else "")

    def types(self, variable: str) -> str:
        patterns = (pattern for pattern in self.group if isinstance(pattern, OfType))
        types = (pattern.type_id for pattern in patterns if pattern.variable == variable)
        return "".join(f" : {self.labels.type_id(type_id)}" for type_id in types)

    def below(self, variable: str, seen: set[str]) -> list[str]:
        seen.add(variable)
        branches = [branch for pattern in self.group for branch in self.branches(variable, pattern, seen)]
        return indent_branches(branches)

    def branches(self, variable: str, pattern: Pattern, seen: set[str]) -> Iterator[list[str]]:
        match pattern:
            case Edge(source=source, target=target) if target == variable:
                yield self.branch(pattern, source, seen)
            case Equals() if pattern.variable == variable:
                yield [f"= {self.labels.term(pattern.anchor)}"]
            case Either() if pattern.variable == variable:
                for number, group in enumerate(pattern.groups):
                    yield self.inner("or" if number else "either", variable, group)
            case Not() if pattern.variable == variable:
                yield self.inner("not", variable, pattern.group)

    def inner(self, word: str, variable: str, group: Group) -> list[str]:
        """Return the branch of a group of its own."""
        drawing = Drawing(self.labels, group)
        return [word + drawing.types(variable), *drawing.below(variable, set())]

    def branch(self, edge: Edge, source: Term, seen: set[str]) -> list[str]:
        """Return an edge and what is under its source; a variable drawn above is only named."""
        arrow = f"{self.labels.relation(edge.relation)} ← "
        if not isinstance(source, str):
            return [arrow + self.labels.term(source)]
        if source in seen:
            return [f"{arrow}?{source} (as above)"]
        return [arrow + self.head(source), *self.below(source, seen)]


def indent_branches(branches: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of several branches, connected to the parent above them."""
    lines: list[str] = []
    for number, (first, *rest) in enumerate(branches, 1):
        head, indentation = ("└─ ", "   ") if number == len(branches) else ("├─ ", "│  ")
        lines += [head + first, *(indentation + line for line in rest)]
    return lines
