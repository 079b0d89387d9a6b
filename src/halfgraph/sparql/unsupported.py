"""What SPARQL can say and predictions do not support: one table of reasons and advice, found by node of the tree."""

from collections.abc import Iterator
from dataclasses import dataclass

from halfgraph.errors import SparqlError
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.scanner import MOST_TOKENS, Place, SourceText
from halfgraph.sparql.syntax_tree import walk
from halfgraph.sparql.terminals import AGGREGATES

LONGEST = 100_000  # characters
MOST_PATTERNS = 200
DEEPEST = 20  # brackets in brackets
MOST_CHOICES = 32  # queries that one with alternatives is expanded into
_CASTS = "string boolean integer decimal float double date time dateTime duration dayTimeDuration yearMonthDuration"
CASTS = frozenset(
    tree.XSD + name for name in f"{_CASTS} gYear gYearMonth gMonthDay gDay gMonth".split()
)  # of the store


@dataclass(frozen=True)
class Unsupported:
    """Why something is refused, what to do instead, and the types of node that it applies to."""

    reason: str
    advice: str
    nodes: tuple[type[tree.SyntaxNode], ...] = ()


# docs/sparql.md shows this table; a test compares the two.
UNSUPPORTED = {
    "OPTIONAL": Unsupported(
        "OPTIONAL is not supported: every pattern of a predicted query must hold",
        "Remove the optional part, or ask for it in a separate query.",
        (tree.Clause,),
    ),
    "UNION": Unsupported(
        "not every branch of the UNION binds ?{name}",
        "Use the same variable in all branches.",
    ),
    "FILTER": Unsupported(
        "this FILTER tests {names}; only ?{target}, which is selected, and its literals can be tested",
        "Compare other variables with entities by =, !=, IN or NOT IN, or remove the FILTER.",
    ),
    "EXISTS": Unsupported(
        "EXISTS inside a larger expression is not supported",
        "Write FILTER EXISTS {{ ... }} or FILTER NOT EXISTS {{ ... }} on its own.",
    ),
    "literal type": Unsupported(
        "the store cannot compare literals of type {name}",
        "Use a number, a date, a string or another type of XML Schema.",
    ),
    "function": Unsupported(
        "the function {name} is not known, or takes one argument",
        "Use a function of SPARQL 1.1, or a cast such as xsd:integer(?x).",
    ),
    "negation": Unsupported(
        "{word} shares {shared} with the rest of its group; it must share exactly one variable",
        "Rename the other variables inside it.",
    ),
    "only negative": Unsupported(
        "the query only excludes values of {name}",
        "Add a pattern that {name} must match.",
    ),
    "choices": Unsupported(
        f"the alternatives of this query expand into more than {MOST_CHOICES} queries",
        "Split it into several queries.",
    ),
    "BIND": Unsupported(
        "BIND is not supported: values cannot be computed",
        "Write the entity directly into the patterns.",
        (tree.Bind,),
    ),
    "VALUES": Unsupported(
        "VALUES with several variables or UNDEF is not supported",
        "Write one VALUES for each variable, without UNDEF.",
    ),
    "aggregate": Unsupported(
        "{word} is not supported: a predicted query returns answers, not aggregates",
        "Select the variable and aggregate its answers afterwards.",
    ),
    "GROUP BY": Unsupported("GROUP BY is not supported", "Remove it and group the answers afterwards."),
    "HAVING": Unsupported("HAVING is not supported", "Remove it and filter the answers afterwards."),
    "ORDER BY": Unsupported(
        "ORDER BY is not supported: answers are ordered by confidence",
        "Remove it and sort the answers afterwards.",
    ),
    "expression": Unsupported(
        "AS is not supported: only variables of the patterns can be selected",
        "Select the variable itself.",
    ),
    "subquery": Unsupported(
        "a SELECT inside another is not supported",
        "Move its patterns to the outer query.",
    ),
    "GRAPH": Unsupported(
        "GRAPH is not supported: predictions are made from one graph",
        "Write the patterns without GRAPH.",
        (tree.GraphPattern,),
    ),
    "SERVICE": Unsupported(
        "SERVICE is refused: queries are answered from this graph only",
        "Write the patterns without SERVICE, or import the other server's triples.",
        (tree.Service,),
    ),
    "FROM": Unsupported(
        "FROM is not supported: predictions are made from one graph",
        "Remove it.",
    ),
    "triple term": Unsupported(
        "triples about triples (SPARQL 1.2) are not supported",
        "Use plain triple patterns.",
        (tree.TripleTerm,),
    ),
    "LATERAL": Unsupported("LATERAL is not supported", "Write its patterns among the others."),
    "form": Unsupported(
        "{word} has no answers to rank; only SELECT can be predicted",
        "Write SELECT ?x WHERE {{ ... }} with the variable that you want.",
        (tree.Ask, tree.Construct, tree.Describe),
    ),
    "update": Unsupported(
        "{word} changes data, and the graph is read-only",
        "To change the graph, import it again from its changed source.",
        (tree.Update,),
    ),
    "path operator": Unsupported(
        "the path operator {word} is not supported",
        "Write out the path; / (sequence), | (alternative) and ^ (inverse) are supported.",
        (tree.PathStep, tree.PathList),
    ),
    "several variables": Unsupported(
        "the query selects {count} variables ({names}), and none of them can be predicted from the others",
        "Select the one that you want, or connect them to known entities.",
    ),
    "no variable": Unsupported("the query selects no variable", "Replace what you want to know by a variable."),
    "missing variable": Unsupported(
        "?{name} occurs in no pattern", "Use a variable of the patterns, or add a pattern with it."
    ),
    "variable relation": Unsupported(
        "{name} stands for a relation, and relations must be given", "Write the relation itself."
    ),
    "variable class": Unsupported(
        "{name} stands for a type, and types must be given", "Write the type itself, or remove this pattern."
    ),
    "literal": Unsupported(
        "{text} is a literal; patterns connect entities",
        "Write the entity itself{such}, or remove this pattern.",
    ),
    "list": Unsupported("lists ( ... ) are not supported", "Write one pattern for each member."),
    "no variable in a pattern": Unsupported(
        "the pattern {pattern} has no variable",
        "Remove it, or replace one of its entities by a variable.",
    ),
    "loop": Unsupported(
        "{name} is on both sides of one pattern",
        "Use two variables, or remove this pattern.",
    ),
    "two classes": Unsupported(
        "{name} has two types, {first} and {second}, and an entity of this graph has one",
        "Keep one of them.",
    ),
    "untied": Unsupported(
        "{name} is not connected to any known entity{through}, so it cannot be predicted",
        "Add a pattern that connects it to an entity, or remove it.",
    ),
    "unconnected": Unsupported(
        "{name} is not connected to ?{target}, the selected variable",
        "Add a pattern that leads from it to ?{target}, or remove it.",
    ),
    "length": Unsupported(
        f"the query is longer than {LONGEST:,} characters or {MOST_TOKENS:,} tokens",
        "Ask a shorter one.",
    ),
    "nesting": Unsupported(f"brackets are nested more than {DEEPEST} deep", "Remove some of them."),
    "size": Unsupported(f"the query has more than {MOST_PATTERNS} patterns", "Ask with fewer."),
}
_BY_NODE = {node: feature for feature, row in UNSUPPORTED.items() for node in row.nodes}
_CLAUSES = {"group_by": "GROUP BY", "having": "HAVING", "order_by": "ORDER BY"}


def refused(feature: str, place: Place | None, **fields: object) -> SparqlError:
    """Return the error for a feature."""
    row = UNSUPPORTED[feature]
    line, column = place or (None, None)
    problem, advice = row.reason.format(**fields), row.advice.format(**fields)
    return SparqlError(problem, feature=feature, line=line, column=column, advice=advice)


def refuse_unsupported(request: tree.Query | tree.Update, source: SourceText) -> None:
    """Raise the error for the first thing in a request that cannot be predicted."""
    feature, word, start = min(_unsupported(request), key=lambda one: one[2], default=("", "", 0))
    if feature:
        raise refused(feature, source.place(start), word=word)


def refuse_forbidden(request: tree.Query | tree.Update, source: SourceText) -> None:
    """Raise the error for what the store is never asked: updates, SERVICE, and functions that it does not have."""
    for node in walk(request):
        if isinstance(node, tree.Service | tree.Update):
            feature, word, start = _feature(node)
            raise refused(feature, source.place(start), word=word)
        if isinstance(node, tree.Call) and isinstance(node.function, tree.Iri) and not _is_cast(node):
            raise refused("function", source.place_of(node), name=source.text_of(node.function))


def _is_cast(call: tree.Call) -> bool:
    known = isinstance(call.function, tree.Iri) and call.function.value in CASTS
    return known and len(call.arguments) == 1 and not call.distinct


def _unsupported(request: tree.Query | tree.Update) -> Iterator[tuple[str, str, int]]:
    """Yield feature, keyword and offset of whatever is not supported."""
    for node in walk(request):
        match node:
            case tree.Modifiers():
                yield from ((_CLAUSES[name], name, start) for name, start in node.clauses if name in _CLAUSES)
            case tree.Call() if node.function in AGGREGATES:
                yield "aggregate", str(node.function), node.span[0]
            case tree.Clause(keyword="MINUS") | tree.PathStep(operator="^") | tree.PathList(operator="/" | "|"):
                pass
            case tree.Select() if node is not request:
                yield "subquery", "SELECT", node.span[0]
            case tree.Select():
                named = (one for one in node.projection if isinstance(one, tree.Named))
                yield from (("expression", "AS", one.variable.span[0]) for one in named)
                yield from (("FROM", "FROM", graph.span[0]) for graph in (*node.default_graphs, *node.named_graphs))
            case _ if type(node) in _BY_NODE:
                yield _feature(node)


def _feature(node: tree.SyntaxNode) -> tuple[str, str, int]:
    """Return feature, keyword and offset of a node that is not supported."""
    feature, start = _BY_NODE[type(node)], node.span[0]
    match node:
        case tree.Clause():
            return node.keyword, node.keyword, start
        case tree.PathStep():
            return feature, node.operator, node.span[1] - 1
        case tree.PathList():
            return feature, node.operator, start
        case tree.Update():
            return feature, node.keyword, start
    return feature, type(node).__name__.upper(), start
