"""The syntax tree of a SPARQL request: names in full, a span for every node, equality up to spans.

Abbreviations are written out: `;` and `,` become triples, `[...]` and `(...)` blank nodes with labels `_1`, `_2`, ...,
`<<...>>` and `{|...|}` reifiers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from halfgraph.graph.statements import RDF, TYPE

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE, RDF_FIRST, RDF_REST, RDF_NIL = TYPE, RDF + "first", RDF + "rest", RDF + "nil"
RDF_REIFIES = RDF + "reifies"
Span = tuple[int, int]


@dataclass(frozen=True)
class SyntaxNode:
    """A part of a request; `span` is its start and end offset in the original text, (0, 0) if it is not from one."""

    span: Span = field(default=(0, 0), compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Variable(SyntaxNode):
    """A variable, without its question mark."""

    name: str


@dataclass(frozen=True)
class Iri(SyntaxNode):
    """An IRI in full."""

    value: str


@dataclass(frozen=True)
class BlankNode(SyntaxNode):
    """A blank node by its label."""

    label: str


@dataclass(frozen=True)
class Literal(SyntaxNode):
    """A literal; a plain string has neither datatype nor language."""

    value: str
    datatype: str | None = None
    language: str | None = None


@dataclass(frozen=True)
class TripleTerm(SyntaxNode):
    """<<( subject predicate object )>> of SPARQL 1.2."""

    subject: "Term"
    predicate: Variable | Iri
    object: "Term"


Term = Variable | Iri | BlankNode | Literal | TripleTerm


@dataclass(frozen=True)
class PathStep(SyntaxNode):
    """A path with ^ before it, or with *, + or ? after it."""

    operator: str
    path: "Path"


@dataclass(frozen=True)
class PathList(SyntaxNode):
    """Paths joined by / or |, or the relations that ! excludes."""

    operator: str
    parts: tuple["Path", ...]


Path = Iri | PathStep | PathList


@dataclass(frozen=True)
class Operation(SyntaxNode):
    """Operands with an operator before each but the first: ||, &&, a comparison, or + - * / of one precedence."""

    first: "Expression"
    rest: tuple[tuple[str, "Expression"], ...]


@dataclass(frozen=True)
class In(SyntaxNode):
    """Membership in a list: IN or NOT IN."""

    item: "Expression"
    options: tuple["Expression", ...]
    negated: bool = False


@dataclass(frozen=True)
class Call(SyntaxNode):
    """A function: by its name in capitals, by an IRI, or one of the signs !, + and -; COUNT(*) has no argument."""

    function: "str | Iri"
    arguments: tuple["Expression", ...]
    distinct: bool = False
    separator: str | None = None  # of GROUP_CONCAT


@dataclass(frozen=True)
class Exists(SyntaxNode):
    """EXISTS or NOT EXISTS."""

    group: "Group"
    negated: bool = False


Expression = Operation | In | Call | Exists | Variable | Iri | Literal | TripleTerm


@dataclass(frozen=True)
class Triple(SyntaxNode):
    """A triple pattern; the predicate may be a property path."""

    subject: Term
    predicate: "Variable | Path"
    object: Term


@dataclass(frozen=True)
class Group(SyntaxNode):
    """Elements between braces; a subquery is a Select as the only element."""

    elements: "tuple[Element | Select, ...]"


@dataclass(frozen=True)
class UnionPattern(SyntaxNode):
    """Groups joined by UNION, at least two."""

    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Clause(SyntaxNode):
    """A keyword before a group: OPTIONAL, MINUS, or LATERAL, an extension of SPARQL 1.1."""

    keyword: str
    group: Group


@dataclass(frozen=True)
class GraphPattern(SyntaxNode):
    """GRAPH name group."""

    name: Variable | Iri
    group: Group


@dataclass(frozen=True)
class Service(SyntaxNode):
    """SERVICE endpoint group."""

    endpoint: Variable | Iri
    group: Group
    silent: bool = False


@dataclass(frozen=True)
class Filter(SyntaxNode):
    """FILTER constraint."""

    constraint: Expression


@dataclass(frozen=True)
class Named(SyntaxNode):
    """An expression with a name: (expression AS variable)."""

    expression: Expression
    variable: Variable


@dataclass(frozen=True)
class Bind(Named):
    """BIND(expression AS variable)."""


@dataclass(frozen=True)
class Values(SyntaxNode):
    """Inline data; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Iri | Literal | TripleTerm | None, ...], ...]


Element = Triple | Group | UnionPattern | Clause | GraphPattern | Service | Filter | Bind | Values


@dataclass(frozen=True)
class Modifiers(SyntaxNode):
    """What follows the pattern of a query."""

    group_by: tuple[Expression | Named, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[tuple[Expression, bool], ...] = ()  # with whether it is descending
    limit: int | None = None
    offset: int | None = None
    values: Values | None = None
    clauses: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)  # names, and where they begin


@dataclass(frozen=True)
class Form(SyntaxNode):
    """What the forms of a query share; `base` is set where the function IRI needs it."""

    modifiers: Modifiers = field(default=Modifiers(), kw_only=True)
    default_graphs: tuple[Iri, ...] = field(default=(), kw_only=True)
    named_graphs: tuple[Iri, ...] = field(default=(), kw_only=True)
    base: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Select(Form):
    """SELECT; without a projection it is SELECT *."""

    projection: tuple[Variable | Named, ...]
    where: Group
    duplicates: str = ""  # DISTINCT or REDUCED


@dataclass(frozen=True)
class Ask(Form):
    """ASK."""

    where: Group


@dataclass(frozen=True)
class Construct(Form):
    """CONSTRUCT; without a template the pattern is the template (CONSTRUCT WHERE)."""

    template: tuple[Triple, ...] | None
    where: Group


@dataclass(frozen=True)
class Describe(Form):
    """DESCRIBE; without subjects it is DESCRIBE *."""

    subjects: tuple[Variable | Iri, ...]
    where: Group | None = None


@dataclass(frozen=True)
class Update(SyntaxNode):
    """A request that changes data. It is recognised, never executed, so its operations are kept as text."""

    keyword: str
    text: str


Query = Select | Ask | Construct | Describe
_LEAVES = (Variable, Iri, BlankNode, Literal)


def walk(node: object) -> Iterator[SyntaxNode]:
    """Yield every node below and including `node`, or those in a tuple of nodes."""
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, SyntaxNode):
            yield part
            if not isinstance(part, _LEAVES):
                todo.extend(value for value in reversed(vars(part).values()) if isinstance(value, (SyntaxNode, tuple)))
        elif isinstance(part, tuple):
            todo.extend(reversed(part))
