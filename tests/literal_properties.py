"""Which properties and variables of a SPARQL text stand for literals, as far as the text tells."""

from collections.abc import Iterator

from halfgraph.graph.statements import TYPE
from halfgraph.graph.vocabulary import local_name
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.scopes import mentioned
from halfgraph.sparql.syntax_tree import Call, Iri, Literal, Operation, PathOperation, Triple, Variable, walk

LABELS = frozenset(
    ["label", "prefLabel", "altLabel", "name", "description", "comment", "title", "notation", "definition", "note"]
)
# Functions whose first argument is a literal; aggregates of numbers among them.
_OF_LITERALS = """
LANG LANGMATCHES DATATYPE REGEX CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLEN UCASE LCASE SUBSTR REPLACE YEAR
MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ ABS CEIL FLOOR ROUND ISNUMERIC ISLITERAL SUM AVG + -
"""
OF_LITERALS = frozenset(_OF_LITERALS.split())


def literal_properties(query: tree.Query | tree.Update) -> frozenset[str]:
    """Return the properties of a query that lead to literals: to one, to a variable used as one, or to a label."""
    triples = [node for node in walk(query) if isinstance(node, Triple)]
    variables, found = set(literal_variables(query)), set[str]()
    for _ in range(3):  # a property makes its variables literals, and those make their properties
        for triple in triples:
            is_literal = isinstance(triple.object, Literal) or mentioned(triple.object) & variables
            last = set(last_properties(triple.predicate))
            if is_literal:
                found |= last
            elif last and all(local_name(iri) in LABELS or iri in found for iri in last):
                found |= last
                variables |= mentioned(triple.object)
    return frozenset(found - {TYPE})


def last_properties(path: tree.SyntaxNode) -> Iterator[str]:
    """Yield the properties that a path can end with."""
    match path:
        case Iri(value):
            yield value
        case PathOperation("/" | "*" | "+" | "?", parts):
            yield from last_properties(parts[-1])
        case PathOperation("|", parts):
            for part in parts:
                yield from last_properties(part)


def literal_variables(query: tree.Query | tree.Update) -> Iterator[str]:
    """Yield the variables that expressions use as literals."""
    for node in walk(query):
        match node:
            case Operation(first, rest):
                operands = [first, *(operand for _, operand in rest)]
                signs = {sign for sign, _ in rest}
                compares = bool(signs & {"<", ">", "<=", ">=", "+", "-", "*", "/"})
                with_literal = signs <= {"=", "!="} and any(isinstance(operand, Literal) for operand in operands)
                if compares or with_literal:
                    yield from (operand.name for operand in operands if isinstance(operand, Variable))
            case Call(str(function), (Variable(name), *_)) if function in OF_LITERALS:
                yield name
            case Call("IN" | "NOT IN", (Variable(name), *options)) if any(isinstance(o, Literal) for o in options):
                yield name
            case Call(Iri(), (Variable(name), *_)):
                yield name
