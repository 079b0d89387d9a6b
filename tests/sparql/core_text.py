"""The uncertain patterns of a row query as SPARQL, written here once more as a check."""

from collections.abc import Iterable, Mapping

from halfgraph.graph.folder import Graph
from halfgraph.query.rows import (
    AnyRelation,
    Conjunction,
    Domain,
    Exclusion,
    Given,
    LinkPattern,
    Path,
    PathChoice,
    PathRepeat,
    PathSequence,
    Pattern,
    Relation,
    TypePattern,
    Value,
)

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


class CoreText:
    """Writes conjunctions."""

    def __init__(self, graph: Graph, domains: Mapping[str, Domain]) -> None:
        self.graph, self.domains = graph, domains

    def select(self, variables: Iterable[str], conjunction: Conjunction) -> str:
        names = " ".join(f"?{name}" for name in variables)
        return f"SELECT DISTINCT {names or '*'} {{ {self.group(conjunction)} }}"

    def group(self, conjunction: Conjunction) -> str:
        """FILTERs and VALUES last: the order of a conjunction means nothing."""
        return " ".join(self.pattern(pattern) for pattern in conjunction)

    def pattern(self, pattern: Pattern) -> str:
        match pattern:
            case LinkPattern(source, AnyRelation(str(variable)), target):
                return f"{self.term(source)} ?{variable} {self.term(target)} ."
            case LinkPattern(source, path, target):
                return f"{self.term(source)} {self.path(path)} {self.term(target)} ."
            case TypePattern(term, iri, variable, subclasses):
                path = f"{TYPE}/{SUBCLASS}*" if subclasses else TYPE
                return f"{self.term(term)} {path} {f'<{iri}>' if iri else f'?{variable}'} ."
            case Given(variables, rows):
                cells = (" ".join(self.value(*pair) for pair in zip(variables, row, strict=True)) for row in rows)
                return f"VALUES ({' '.join(f'?{v}' for v in variables)}) {{ {' '.join(f'({row})' for row in cells)} }}"
            case Exclusion(parts):
                groups = " UNION ".join(f"{{ {self.group(part)} }}" for part in parts)
                return f"FILTER NOT EXISTS {{ {groups} }}"

    def path(self, path: Path) -> str:
        match path:
            case Relation(number):
                return ("^" if number & 1 else "") + self.relation(number)
            case AnyRelation(_, excluded, inverse):
                names = [self.relation(number) for number in excluded] or ["<http://no/relation>"]
                return f"!({'|'.join(('^' if inverse else '') + name for name in names)})"
            case PathSequence(parts):
                return f"({'/'.join(map(self.path, parts))})"
            case PathChoice(parts):
                return f"({'|'.join(map(self.path, parts))})"
            case PathRepeat(inner, least, most):
                return f"({self.path(inner)}){'?' if most else '+' if least else '*'}"

    def term(self, term: int | str) -> str:
        return f"?{term}" if isinstance(term, str) else self.entity(term)

    def value(self, name: str, value: Value) -> str:
        if value is None:
            return "UNDEF"
        if isinstance(value, str):
            return f"<{value}>"
        return self.relation(value) if self.domains.get(name) == "relation" else self.entity(value)

    def entity(self, number: int) -> str:
        return f"<{self.graph.namer.iri(self.graph.entities.name(number))}>"

    def relation(self, number: int) -> str:
        return f"<{self.graph.namer.iri(self.graph.relations.name(number // 2))}>"
