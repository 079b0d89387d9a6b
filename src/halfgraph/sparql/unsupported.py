"""What SPARQL can say and predictions do not support: one table of reasons and advice, found by node of the tree."""

import re
from collections.abc import Iterator

from halfgraph.errors import SparqlError
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.scanner import MOST_TOKENS, Place, SourceText
from halfgraph.sparql.syntax_tree import walk
from halfgraph.sparql.terminals import AGGREGATES

LONGEST = 500_000  # characters
MOST_PATTERNS = 200
DEEPEST = 64  # brackets in brackets; each takes a few frames of Python's stack of 1,000
MOST_CHOICES = 32  # queries that one with alternatives is expanded into
MOST_BRANCHES = 64  # conjunctions that a query for rows is expanded into
_CASTS = """
string boolean integer decimal float double date time dateTime duration dayTimeDuration yearMonthDuration gYear
gYearMonth gMonthDay gDay gMonth
"""
CASTS = frozenset(tree.XSD + name for name in _CASTS.split())  # of the store

# Feature, reason and, in the next line, advice; docs/sparql.md shows this table, and a test compares the two.
_TABLE = """
OPTIONAL: OPTIONAL cannot be predicted: every pattern of a predicted query must hold
    Remove the optional part, or ask for it in a separate query.
UNION: not every branch of the UNION binds ?{name}
    Use the same variable in all branches.
FILTER: this FILTER tests {names}; for predictions only ?{target}, which is selected, and its literals can be tested
    Compare other variables with entities by =, !=, IN or NOT IN, or remove the FILTER.
EXISTS: EXISTS inside a larger expression cannot be predicted
    Write FILTER EXISTS {{ ... }} or FILTER NOT EXISTS {{ ... }} on its own.
literal type: predicted answers cannot be compared with literals of type {name}
    Use a number, a date, a string or another type of XML Schema.
function: the function {name} is not known, or takes one argument
    Use a function of SPARQL 1.1, or a cast such as xsd:integer(?x).
negation: {word} shares {shared} with the rest of its group; to be predicted, it must share exactly one variable
    Rename the other variables inside it.
only negative: the query only excludes values of {name}
    Add a pattern that {name} must match.
BIND: BIND cannot be predicted: predictions are entities, not computed values
    Write the entity directly into the patterns.
VALUES: VALUES with several variables, with UNDEF or without a row cannot be predicted
    Write one VALUES for each variable, with an entity at least.
aggregate: {word} cannot be predicted: predictions are entities, not aggregates
    Select the variable and aggregate its answers afterwards.
GROUP BY: GROUP BY cannot be predicted
    Remove it and group the answers afterwards.
HAVING: HAVING cannot be predicted
    Remove it and filter the answers afterwards.
ORDER BY: ORDER BY cannot be predicted: predictions are ordered by their score
    Remove it and sort the answers afterwards.
expression: AS cannot be predicted: predictions are values of the variables in the patterns
    Select the variable itself.
subquery: a SELECT inside another cannot be predicted
    Move its patterns to the outer query.
GRAPH: GRAPH cannot be predicted: predictions are made from one graph
    Write the patterns without GRAPH.
SERVICE: SERVICE is refused: queries are answered from this graph only
    Write the patterns without SERVICE, or import the other server's triples.
FROM: FROM cannot be predicted: predictions are made from one graph
    Remove it.
triple term: triples about triples (SPARQL 1.2) cannot be predicted
    Use plain triple patterns.
LATERAL: LATERAL cannot be predicted
    Write its patterns among the others.
form: {word} has no answers to rank; only SELECT can be predicted
    Write SELECT ?x WHERE {{ ... }} with the variable that you want.
update: {word} changes data, and the graph is read-only
    To change the graph, import it again from its changed source.
path operator: the path operator {word} cannot be predicted
    Write out the path; / (sequence), | (alternative) and ^ (inverse) can be predicted.
several variables: the query selects {count} variables ({names}), and none of them can be predicted from the others
    Select the one that you want, or connect them to known entities.
no variable: the query selects no variable
    Replace what you want to know by a variable.
missing variable: ?{name} occurs in no pattern
    Use a variable of the patterns, or add a pattern with it.
variable relation: {name} stands for a relation, and predictions need given relations
    Write the relation itself.
variable class: {name} stands for a type, and predictions need given types
    Write the type itself, or remove this pattern.
literal: {text} is a literal, and predictions connect entities
    Write the entity itself{such}, or remove this pattern.
list: lists ( ... ) cannot be predicted
    Write one pattern for each member.
no variable in a pattern: the pattern {pattern} has no variable
    Remove it, or replace one of its entities by a variable.
loop: {name} is on both sides of one pattern
    Use two variables, or remove this pattern.
two classes: {name} has two types, {first} and {second}, and predictions know one type of each entity
    Keep one of them.
untied: {name} is not connected to any known entity{through}, so it cannot be predicted
    Add a pattern that connects it to an entity, or remove it.
nothing uncertain: the query asks only for literals and computed values, which are not predicted
    Add a pattern between entities, or with a type.
VALUES after groups: VALUES after the query names a variable that is no key of its groups
    Write VALUES between the braces of the WHERE clause.
unconnected: {name} is not connected to ?{target}, the selected variable
    Add a pattern that leads from it to ?{target}, or remove it.
"""
_LIMITS = f"""
choices: to predict them, the alternatives of this query expand into more than {MOST_CHOICES} queries
    Split it into several queries.
length: the query is longer than {LONGEST:,} characters or {MOST_TOKENS:,} tokens
    Ask a shorter one.
nesting: brackets are nested more than {DEEPEST} deep
    Remove some of them.
size: the query has more than {MOST_PATTERNS} patterns
    Ask with fewer.
"""
UNSUPPORTED = {name: (reason, advice) for name, reason, advice in re.findall(r"(.+?): (.+)\n +(.+)", _TABLE + _LIMITS)}
_CLAUSES = {"group_by": "GROUP BY", "having": "HAVING", "order_by": "ORDER BY"}


def refused(feature: str, place: Place | None, **fields: object) -> SparqlError:
    """Return the error for a feature."""
    problem, advice = (text.format(**fields) for text in UNSUPPORTED[feature])
    line, column = place or (None, None)
    return SparqlError(problem, feature=feature, line=line, column=column, advice=advice)


def refuse_unsupported(request: tree.Query | tree.Update, source: SourceText) -> None:
    """Raise the error for the first thing in a request that cannot be predicted."""
    feature, word, start = min(_unsupported(request), key=lambda found: found[2], default=("", "", 0))
    if feature:
        raise refused(feature, source.place(start), word=word)


def refuse_forbidden(request: tree.Query | tree.Update, source: SourceText) -> None:
    """Raise the error for what the store is never asked: updates, SERVICE, and functions that it does not have."""
    for node in walk(request):
        match node:
            case tree.Update():
                raise refused("update", source.place_of(node), word=node.keyword)
            case tree.Clause(keyword="SERVICE"):
                raise refused("SERVICE", source.place_of(node))
            case tree.Call(function=tree.Iri() as function):
                if function.value not in CASTS or len(node.arguments) != 1 or node.distinct:
                    raise refused("function", source.place_of(node), name=source.text_of(function))


def _unsupported(request: tree.Query | tree.Update) -> Iterator[tuple[str, str, int]]:
    """Yield feature, keyword and offset of whatever is not supported."""
    for node in walk(request):
        start, end = node.span
        match node:
            case tree.Modifiers():
                yield from ((_CLAUSES[name], name, begin) for name, begin in node.clauses if name in _CLAUSES)
            case tree.Call() if node.function in AGGREGATES:
                yield "aggregate", str(node.function), start
            case tree.Clause() if node.keyword != "MINUS":
                yield node.keyword, node.keyword, start
            case tree.Bind():
                yield "BIND", "BIND", start
            case tree.TripleTerm():
                yield "triple term", "", start
            case tree.PathOperation(operator="*" | "+" | "?" as operator):
                yield "path operator", operator, end - 1
            case tree.PathOperation(operator="!"):
                yield "path operator", "!", start
            case tree.Select() if node is not request:
                yield "subquery", "SELECT", start
            case tree.Select():
                named = (part for part in node.projection if isinstance(part, tree.Named))
                yield from (("expression", "AS", part.variable.span[0]) for part in named)
                yield from (("FROM", "FROM", graph.span[0]) for _, graph in node.graphs)
            case tree.Form():
                yield "form", type(node).__name__.upper(), start
