"""What a query may say that cannot be answered yet: one table of reasons and of what to try."""

from dataclasses import dataclass

from halfgraph.errors import SparqlError
from halfgraph.sparql.tokens import Place, Source, Token

LONGEST = 100_000  # characters
MOST_TOKENS = 5_000
MOST_PATTERNS = 200
DEEPEST = 20  # brackets in brackets
MOST_CHOICES = 32  # queries that one with choices is taken apart into


@dataclass(frozen=True)
class Refusal:
    """Why something is refused and what to try; the words that give it away, which fill {word}."""

    reason: str
    advice: str
    words: tuple[str, ...] = ()
    inside: bool = False  # whether only between the braces


# docs/sparql.md shows this table, and a test holds the two together.
REFUSALS = {
    "OPTIONAL": Refusal(
        "OPTIONAL asks for what may be missing, and here every pattern must hold",
        "Leave the optional part out, or ask for it in a query of its own.",
        ("OPTIONAL",),
    ),
    "UNION": Refusal(
        "the parts of a choice do not all speak of ?{name}, so they are no alternatives for it",
        "Use one variable for the same thing in all parts of the UNION.",
    ),
    "FILTER": Refusal(
        "this FILTER tests {names}, and only ?{target}, which is asked for, and its values can be tested",
        "Compare other variables with entities by =, !=, IN or NOT IN, or leave the FILTER out.",
    ),
    "EXISTS": Refusal(
        "EXISTS stands inside an expression, and patterns cannot be tested there",
        "Write FILTER EXISTS {{ ... }} or FILTER NOT EXISTS {{ ... }} by itself.",
    ),
    "literal type": Refusal(
        "the store cannot compare literals of the type {name}",
        "Use a number, a date, a string or another type of XML Schema.",
    ),
    "negation": Refusal(
        "{word} shares {shared} with what it takes away from, and it must share one variable",
        "Let only the variable whose values are to be taken away stand both inside and outside.",
    ),
    "only negative": Refusal(
        "all that is said of {name} is what it is not, and that has no end of answers",
        "Add a pattern that says what it is.",
    ),
    "choices": Refusal(
        f"there are more than {MOST_CHOICES} ways to choose among the alternatives",
        "Ask some of them in a query of their own.",
    ),
    "BIND": Refusal(
        "BIND computes a value, and a query here is made of triple patterns alone",
        "Write the entity itself into the patterns.",
        ("BIND", "LET"),
    ),
    "VALUES": Refusal(
        "VALUES can list the entities of one variable only",
        "Write a VALUES for each variable, without UNDEF.",
    ),
    "aggregate": Refusal(
        "{word} computes over all answers, and a query here gives the answers themselves",
        "Select the variable, and compute from its answers.",
        ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"),
    ),
    "GROUP BY": Refusal(
        "GROUP BY gathers answers, and a query here gives them one by one",
        "Leave it out, and gather the answers afterwards.",
        ("GROUP",),
    ),
    "HAVING": Refusal(
        "HAVING tests groups of answers, and a query here gives them one by one",
        "Leave it out, and sort the answers afterwards.",
        ("HAVING",),
    ),
    "ORDER BY": Refusal(
        "ORDER BY sets an order, and answers come in the order of how sure they are",
        "Leave it out, and sort the answers afterwards.",
        ("ORDER",),
    ),
    "expression": Refusal(
        "AS names a computed value, and only a variable of the patterns can be selected",
        "Select that variable by itself.",
        ("AS",),
    ),
    "subquery": Refusal(
        "a SELECT inside another cannot be read",
        "Write its patterns among the others: they are joined all the same.",
        ("SELECT",),
        inside=True,
    ),
    "GRAPH": Refusal(
        "GRAPH asks in a named graph, and there is only one graph to predict from",
        "Write the patterns without GRAPH.",
        ("GRAPH",),
    ),
    "SERVICE": Refusal(
        "SERVICE asks another server, and answers come from this graph alone",
        "Write the patterns without SERVICE, or import the other server's triples.",
        ("SERVICE",),
    ),
    "FROM": Refusal(
        "FROM chooses graphs, and there is only one graph to predict from",
        "Leave it out.",
        ("FROM",),
    ),
    "form": Refusal(
        "{word} gives no answers to rank, and only SELECT can be read",
        "Write SELECT ?x WHERE {{ ... }} with the variable whose answers you want.",
        ("ASK", "CONSTRUCT", "DESCRIBE"),
    ),
    "update": Refusal(
        "{word} changes the graph, and a query can only ask",
        "To change the graph, import it again from its changed source.",
        ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "ADD", "MOVE", "COPY", "CREATE", "WITH"),
    ),
    "path operator": Refusal(
        "the path operator {word} leaves open which relations to follow",
        "Write out the path that you mean; / (one relation after another), | (either) and ^ (inverse) can be read.",
        ("*", "+", "?", "!"),
        inside=True,
    ),
    "other words": Refusal("{word} is not among the words that can be read", "Leave it out."),
    "extension": Refusal(
        "this goes beyond SPARQL 1.1, which is what can be read",
        "Use plain triple patterns.",
        ("<<", ">>", "{|", "|}", "~"),
    ),
    "several variables": Refusal(
        "the query selects {count} variables ({names}), and none of them can be predicted from the others",
        "Select the one whose answers you want, or tie them to known entities.",
    ),
    "no variable": Refusal("the query selects no variable", "Put a variable in place of what you want to know."),
    "missing variable": Refusal(
        "?{name} is selected and stands in no pattern", "Select a variable of the patterns, or write a pattern with it."
    ),
    "variable relation": Refusal(
        "{name} stands for a relation, and relations must be known", "Write the relation itself."
    ),
    "variable class": Refusal(
        "{name} stands for a class, and classes must be known", "Write the class itself, or leave this pattern out."
    ),
    "literal": Refusal(
        "{text} is a literal, and patterns here tie entities to entities",
        "Write the entity itself{such}, or leave this pattern out.",
    ),
    "list": Refusal("( ... ) is a list, and lists cannot be read", "Write a pattern for each member."),
    "no variable in a pattern": Refusal(
        "the pattern {pattern} has no variable, so it asks nothing",
        "Leave it out, or put a variable in place of one of its entities.",
    ),
    "loop": Refusal(
        "{name} stands on both sides of one pattern, and a pattern must tie two different things",
        "Use two variables, or leave this pattern out.",
    ),
    "two classes": Refusal(
        "{name} is asked to be of two classes, {first} and {second}, and an entity of this graph has one type",
        "Keep one of them.",
    ),
    "untied": Refusal(
        "{name} is not tied to any known entity{through}, so there is nothing to predict it from",
        "Add a pattern that ties it to an entity, or leave it out.",
    ),
    "unconnected": Refusal(
        "{name} is not connected with ?{target}, which the query asks for",
        "Add a pattern that leads from it to ?{target}, or leave it out.",
    ),
    "length": Refusal(
        f"the query is longer than {LONGEST:,} characters or {MOST_TOKENS:,} words, which is more than is read",
        "Ask a shorter one.",
    ),
    "nesting": Refusal(f"brackets go more than {DEEPEST} deep, which is more than is read", "Write it without them."),
    "size": Refusal(
        f"the query has more than {MOST_PATTERNS} patterns, which is more than is read",
        "Ask with fewer.",
    ),
}


def refused(feature: str, place: Place | None, **fields: object) -> SparqlError:
    """The error for a feature, with its place."""
    row = REFUSALS[feature]
    line, column = place or (None, None)
    problem, advice = row.reason.format(**fields), row.advice.format(**fields)
    return SparqlError(problem, feature=feature, line=line, column=column, advice=advice)


def refuse_size(source: Source) -> None:
    """Nothing, or an error for a text that is too much to look at."""
    if len(source.text) > LONGEST or len(source.tokens) > MOST_TOKENS:
        raise refused("length", None)
    if source.nesting() > DEEPEST:
        raise refused("nesting", None)


def refuse_update(source: Source) -> None:
    """Nothing, or an error for a text that begins as an update does; it is no query, so that it would not parse."""
    words = [token for token in source.tokens[: source.prologue_end] if token.type_id == "word"]
    for token in words[-2:]:
        if token.says(*REFUSALS["update"].words):
            raise refused("update", source.place(token), word=token.text.upper())


# In a valid text a bare word is a keyword or a function; these are the keywords of what can be read.
READ = {
    *("SELECT", "DISTINCT", "REDUCED", "WHERE", "LIMIT", "OFFSET", "PREFIX", "BASE", "A", "TRUE", "FALSE"),
    *("UNION", "MINUS", "FILTER", "NOT", "EXISTS", "VALUES", "UNDEF"),
}
_BY_WORD = {word: feature for feature, row in REFUSALS.items() for word in row.words}


def refuse_service(source: Source) -> None:
    """Nothing, or an error where a query would have the store call another machine, wherever it says so."""
    for token in source.tokens:
        if token.says("SERVICE"):
            raise refused("SERVICE", source.place(token))


def refuse_words(source: Source) -> None:
    """Nothing, or an error for the first word or mark of a valid text that cannot be read."""
    inside = {token.start for token in source.body}
    signs = {token.start - 1 for token in source.tokens if token.type_id == "number"}
    for token in source.tokens:
        feature = _feature(token, token.start in inside)
        if feature is not None and token.start not in signs and token.start not in source.tested:
            raise refused(feature, source.place(token), word=token.text.upper())


def _feature(token: Token, inside: bool) -> str | None:
    """The feature that a word or mark gives away."""
    if token.type_id not in ("word", "mark"):
        return None
    feature = _BY_WORD.get(token.text.upper())
    if feature is not None and (inside or not REFUSALS[feature].inside):
        return feature
    return "other words" if token.type_id == "word" and token.text.upper() not in READ else None
