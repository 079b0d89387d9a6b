"""What is refused, what prevents predictions, and what is no query tree: tables of reasons by feature."""

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
_TABLE = f"""
update: {{word}} changes data, and the graph is read-only
    To change the graph, import it again from its changed source.
SERVICE: SERVICE is refused: queries are answered from this graph only
    Write the patterns without SERVICE, or import the other server's triples.
function: the function {{name}} is not known, or takes one argument
    Use a function of SPARQL 1.1, or a cast such as xsd:integer(?x).
length: the query is longer than {LONGEST:,} characters or {MOST_TOKENS:,} tokens
    Ask a shorter one.
nesting: brackets are nested more than {DEEPEST} deep
    Remove some of them.
nothing uncertain: the query asks only for literals and computed values, which are not predicted
    Add a pattern between entities, or with a type.
VALUES after groups: VALUES after the query names a variable that is no key of its groups
    Write VALUES between the braces of the WHERE clause.
size: the query has more than {MOST_PATTERNS} patterns
    Ask with fewer.
"""
UNSUPPORTED = {name: (reason, advice) for name, reason, advice in re.findall(r"(.+?): (.+)\n +(.+)", _TABLE)}

# Why a query is no query tree: a path from entities to one variable. Rows are predicted for such a query.
_NO_TREES = f"""
OPTIONAL: a query tree has no OPTIONAL part
UNION: not every branch of the UNION binds ?{{name}}
FILTER: this FILTER tests {{names}}, and a query tree can test only ?{{target}} and its literals
EXISTS: a query tree has no EXISTS inside a larger expression
literal type: a query tree has no literals of type {{name}}
negation: {{word}} shares {{shared}} with the rest of its group, and in a query tree it shares one variable
only negative: the query only excludes values of {{name}}
BIND: a query tree has no BIND
VALUES: a query tree has VALUES of one variable only, with an entity at least
aggregate: a query tree has no {{word}}
GROUP BY: a query tree has no groups
HAVING: a query tree has no HAVING
ORDER BY: a query tree has no ORDER BY
expression: a query tree has no computed columns
subquery: a query tree has no SELECT inside another
GRAPH: a query tree has no GRAPH
FROM: a query tree has no FROM
triple term: a query tree has no triples about triples
LATERAL: a query tree has no LATERAL
form: {{word}} has no variable that a query tree could lead to
path operator: a query tree has no path operator {{word}}
several variables: the query selects {{count}} variables ({{names}}), and none of them follows from the others
no variable: the query selects no variable
missing variable: ?{{name}} occurs in no pattern
variable relation: {{name}} stands for a relation, and a query tree names its relations
variable class: {{name}} stands for a type, and a query tree names its types
literal: {{text}} is a literal, and a query tree connects entities{{such}}
list: a query tree has no list ( ... )
no variable in a pattern: the pattern {{pattern}} has no variable
loop: {{name}} is on both sides of one pattern
two classes: {{name}} has two types, {{first}} and {{second}}, and in a query tree a variable has one
untied: {{name}} is not connected to any entity{{through}}
unconnected: {{name}} is not connected to ?{{target}}, the selected variable
choices: its alternatives expand into more than {MOST_CHOICES} query trees
"""
_ROWS = "`ask` and `/sparql/predict` predict rows for it."
NO_TREES = {name: (reason, _ROWS) for name, reason in re.findall(r"(.+?): (.+)", _NO_TREES)}
_CLAUSES = {"group_by": "GROUP BY", "having": "HAVING", "order_by": "ORDER BY"}


def refused(feature: str, place: Place | None, **fields: object) -> SparqlError:
    """Return the error for a feature."""
    problem, advice = (text.format(**fields) for text in (UNSUPPORTED.get(feature) or NO_TREES[feature]))
    line, column = place or (None, None)
    return SparqlError(problem, feature=feature, line=line, column=column, advice=advice)


def refuse_unsupported(request: tree.Query | tree.Update, source: SourceText) -> None:
    """Raise the error for the first thing in a request that no query tree has."""
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
    """Yield feature, keyword and offset of whatever no query tree has."""
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
