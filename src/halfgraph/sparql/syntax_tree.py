"""The syntax tree of a SPARQL request: names in full, a span for every node, equality up to spans.

Abbreviations are written out: `;` and `,` become triples, `[...]` and `(...)` blank nodes with labels `_1`, `_2`, ...,
`<<...>>` and `{|...|}` reifiers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, dataclass_transform

from halfgraph.graph.statements import RDF, TYPE

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE, RDF_FIRST, RDF_REST, RDF_NIL = TYPE, RDF + "first", RDF + "rest", RDF + "nil"
RDF_REIFIES = RDF + "reifies"
Span = tuple[int, int]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class SyntaxNode:
    """A part of a request, a frozen dataclass; `span` is its start and end in the original text, or (0, 0)."""

    span: Span = field(default=(0, 0), compare=False, repr=False, kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True)(cls)


class Variable(SyntaxNode):
    """A variable, without its question mark."""

    name: str


class Iri(SyntaxNode):
    """An IRI in full."""

    value: str


class BlankNode(SyntaxNode):
    """A blank node by its label."""

    label: str


class Literal(SyntaxNode):
    """A literal; a plain string has neither datatype nor language."""

    value: str
    datatype: str | None = None
    language: str | None = None


class TripleTerm(SyntaxNode):
    """<<( subject predicate object )>> of SPARQL 1.2."""

    subject: "Term"
    predicate: Variable | Iri
    object: "Term"


Term = Variable | Iri | BlankNode | Literal | TripleTerm


class PathOperation(SyntaxNode):
    """A path with ^ before it or *, + or ? after it, paths joined by / or |, or the relations that ! excludes."""

    operator: str
    parts: tuple["Path", ...]


Path = Iri | PathOperation


class Operation(SyntaxNode):
    """Operands with an operator before each but the first: ||, &&, a comparison, or + - * / of one precedence."""

    first: "Expression"
    rest: tuple[tuple[str, "Expression"], ...]


class Call(SyntaxNode):
    """A function by its name in capitals or its IRI, IN, NOT IN, or a sign (!, +, -); COUNT(*) has no argument."""

    function: "str | Iri"
    arguments: tuple["Expression", ...]
    distinct: bool = False
    separator: str | None = None  # of GROUP_CONCAT


class Exists(SyntaxNode):
    """EXISTS or NOT EXISTS."""

    group: "Group"
    negated: bool = False


Expression = Operation | Call | Exists | Variable | Iri | Literal | TripleTerm


class Triple(SyntaxNode):
    """A triple pattern; the predicate may be a property path."""

    subject: Term
    predicate: "Variable | Path"
    object: Term


class Group(SyntaxNode):
    """Elements between braces; a subquery is a Select as the only element."""

    elements: "tuple[Element | Select, ...]"


class UnionPattern(SyntaxNode):
    """Groups joined by UNION, at least two."""

    groups: tuple[Group, ...]


class Clause(SyntaxNode):
    """A keyword before a group: OPTIONAL, MINUS, LATERAL (no part of SPARQL 1.1), or GRAPH or SERVICE with a name."""

    keyword: str
    group: Group
    name: Variable | Iri | None = None
    silent: bool = False


class Filter(SyntaxNode):
    """FILTER constraint."""

    constraint: Expression


class Named(SyntaxNode):
    """An expression with a name: (expression AS variable)."""

    expression: Expression
    variable: Variable


class Bind(Named):
    """BIND(expression AS variable)."""


class Values(SyntaxNode):
    """Inline data; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Iri | Literal | TripleTerm | None, ...], ...]


Element = Triple | Group | UnionPattern | Clause | Filter | Bind | Values


class Modifiers(SyntaxNode):
    """What follows the pattern of a query."""

    group_by: tuple[Expression | Named, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[tuple[Expression, bool], ...] = ()  # with whether it is descending
    limit: int | None = None
    offset: int | None = None
    values: Values | None = None
    clauses: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)  # names, and where they begin


class Form(SyntaxNode):
    """What the forms of a query share; `base` is set where the function IRI needs it."""

    modifiers: Modifiers = field(default=Modifiers(), kw_only=True)
    graphs: tuple[tuple[str, Iri], ...] = field(default=(), kw_only=True)  # after FROM or FROM NAMED
    base: str | None = field(default=None, kw_only=True)


class Select(Form):
    """SELECT; without a projection it is SELECT *."""

    projection: tuple[Variable | Named, ...]
    where: Group
    duplicates: str = ""  # DISTINCT or REDUCED


class Ask(Form):
    """ASK."""

    where: Group


class Construct(Form):
    """CONSTRUCT; without a template the pattern is the template (CONSTRUCT WHERE)."""

    template: tuple[Triple, ...] | None
    where: Group


class Describe(Form):
    """DESCRIBE; without subjects it is DESCRIBE *."""

    subjects: tuple[Variable | Iri, ...]
    where: Group | None = None


class Update(SyntaxNode):
    """A request that changes data. It is recognised, never executed, so its operations are kept as text."""

    keyword: str
    text: str


Query = Select | Ask | Construct | Describe
LEAVES = (Variable, Iri, BlankNode, Literal)


def walk(node: object) -> Iterator[SyntaxNode]:
    """Yield every node below and including `node`, or those in a tuple of nodes."""
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, SyntaxNode):
            yield part
            if not isinstance(part, LEAVES):
                todo.extend(value for value in reversed(vars(part).values()) if isinstance(value, (SyntaxNode, tuple)))
        elif isinstance(part, tuple):
            todo.extend(reversed(part))


def columns(query: Query, variables: list[str]) -> list[str]:
    """Return the variables of a result as columns: for SELECT *, which the store sorts by name, as in the text."""
    if not isinstance(query, Select) or query.projection:
        return variables
    found = sorted((part.span, part.name) for part in walk(query) if isinstance(part, Variable))
    return list(dict.fromkeys(name for _, name in found if name in variables))


def every_value(query: Select, variable: str) -> Select:
    """Return the query for all values of one variable, each once, without LIMIT and OFFSET."""
    modifiers = replace(query.modifiers, limit=None, offset=None)
    return replace(query, projection=(Variable(variable),), duplicates="DISTINCT", modifiers=modifiers)


def select(
    elements: Iterable[Element | Select],
    variables: Iterable[str] = (),
    *,
    distinct: bool = False,
    limit: int | None = None,
) -> Select:
    """Return the query for some variables of patterns, or for all of them."""
    names, duplicates = tuple(map(Variable, variables)), "DISTINCT" if distinct else ""
    return Select(names, Group(tuple(elements)), duplicates, modifiers=Modifiers(limit=limit))
