"""Whether a text is SPARQL: pyoxigraph decides; what is wrong is said by what is commonly wrong, or else by it."""

import re
from collections.abc import Callable
from itertools import pairwise

from pyoxigraph import DefaultGraph, Store
from rapidfuzz import fuzz, process

from halfgraph.errors import SparqlError
from halfgraph.sparql.tokens import Source, Token

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        BASE PREFIX SELECT DISTINCT REDUCED AS CONSTRUCT WHERE DESCRIBE ASK FROM NAMED GROUP BY HAVING ORDER
        ASC DESC LIMIT OFFSET VALUES UNDEF OPTIONAL GRAPH SERVICE SILENT BIND MINUS UNION FILTER NOT EXISTS
        IN A TRUE FALSE COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT SEPARATOR LATERAL VERSION
        """,
    )
)
_CLOSING = {"{": "}", "(": ")", "[": "]"}
_COMPUTING = ("FILTER", "BIND", "HAVING", "ORDER", "AS")  # where < and > compare
_FAR = " " * 20  # more than any keyword is long
Found = tuple[Token | None, str, str]  # where, what is wrong, what to do


def check(source: Source) -> None:
    """Nothing, or an error where the text is not SPARQL."""
    if _problem(source.strict(), source) is None:
        return
    found = next((found for look in LOOKS if (found := look(source)) is not None), None)
    if found is None:
        raise _as_the_parser_says(source)
    token, wrong, advice = found
    line, column = source.place(token) or (None, None)
    raise SparqlError(wrong, feature="syntax", line=line, column=column, advice=advice)


def _problem(text: str, source: Source) -> str | None:
    """What pyoxigraph's parser says of a text, or None if it is well."""
    try:
        # Two settings that exclude each other: the parser comes first, and nothing is evaluated, not even a SERVICE.
        Store().query(
            text,
            base_iri=source.defaults.base,
            prefixes=dict(source.defaults.namespaces),
            use_default_graph_as_union=True,
            default_graph=DefaultGraph(),
        )
    except SyntaxError as error:
        return str(error.msg)
    except UnicodeEncodeError:
        return "not Unicode"
    except ValueError as error:
        if "at the same time" in str(error):
            return None
        raise
    raise AssertionError("pyoxigraph took two settings that exclude each other")


def _no_query(source: Source) -> Found | None:
    """An empty text, or one without any form of query."""
    if not source.tokens:
        return None, "there is no query in this text", "Write one such as SELECT ?x WHERE { ?x :relation :entity }."
    if source.prologue_end == len(source.tokens) or source.tokens[source.prologue_end].says("{"):
        advice = "A query begins with SELECT ?x WHERE {, after its prefixes."
        return source.tokens[0], "this text has no SELECT", advice
    return None


def _undeclared_prefix(source: Source) -> Found | None:
    """A name whose prefix nobody declared."""
    for token in source.tokens[source.prologue_end :]:
        if token.type_id == "name" and source.iri(token.text) is None:
            prefix = token.text.partition(":")[0]
            return token, f"the prefix {prefix}: is not declared", f"Begin the query with PREFIX {prefix}: <...>."
    return None


def _not_closed(source: Source) -> Found | None:
    """A quote, an IRI or a bracket that is not closed, or a bracket that closes nothing."""
    if not any(token.says(*_COMPUTING) for token in source.tokens):
        for token in source.tokens:
            if token.says("<"):
                return token, "this IRI is not closed, or has a space in it", "Write %20 for a space, and > at its end."
    for token in source.tokens:
        if token.says('"', "'"):
            return token, "this quote is not closed", f"Put a {token.text} at its end."
    return _bracket(source)


def _bracket(source: Source) -> Found | None:
    """A bracket without its pair."""
    opened: list[Token] = []
    for token in source.tokens:
        if token.says(*_CLOSING):
            opened.append(token)
        elif token.says(*_CLOSING.values()):
            if not opened:
                return token, f"this {token.text} closes nothing", "Take it out, or open it before."
            last = opened.pop()
            if _CLOSING[last.text] != token.text:
                advice = f"A {_CLOSING[last.text]} should come before."
                return token, f"this {token.text} does not close the {last.text} before it", advice
    if opened:
        return opened[-1], f"this {opened[-1].text} is not closed", f"Put a {_CLOSING[opened[-1].text]} at its end."
    return None


def _unknown_word(source: Source) -> Found | None:
    """A bare word that is neither a keyword nor a function."""
    following = [*source.tokens[1:], None]
    for token, after in zip(source.tokens, following, strict=True):
        is_function = after is not None and after.says("(")
        if token.type_id == "word" and token.text.upper() not in _KEYWORDS and not is_function:
            near = process.extractOne(token.text.upper(), _KEYWORDS, scorer=fuzz.ratio, score_cutoff=70)
            advice = f"Did you mean {near[0]}?" if near else f"A variable is ?{token.text}, a name :{token.text}."
            return token, f"{token.text} is not a word of SPARQL", advice
    return None


def _bare_sign(source: Source) -> Found | None:
    """A name that goes on with a sign which needs a backslash: dbr:Titanic_(film)."""
    for token, after in pairwise(source.tokens):
        if (
            token.type_id == "name"
            and after.start == token.start + len(token.text)
            and after.says("(", "!", "&", "'", "&&")
        ):
            advice = f"Write \\{after.text[0]} there, or the whole IRI between < and >."
            return after, f"the sign {after.text[0]} cannot stand in the name {token.text} as it is", advice
    return None


LOOKS: tuple[Callable[[Source], Found | None], ...] = (
    _no_query,
    _bare_sign,
    _not_closed,
    _undeclared_prefix,
    _unknown_word,
)


def _as_the_parser_says(source: Source) -> SparqlError:
    """The parser's error: its place, what was found there and what was expected."""
    spread, starts = _spread(source.tokens)
    found = re.match(r"error at 1:(\d+): expected (?:one of )?(.*)", _problem(spread, source) or "", re.DOTALL)
    if found is None:
        return SparqlError("this is not SPARQL", feature="syntax")
    expected = re.sub(r"\[[^\]]*\]", "", found[2])  # classes of characters help nobody
    offset = int(found[1]) - 1
    number = max(place for place, start in enumerate(starts) if start <= max(offset, 0))
    token = source.tokens[number]
    line, column = source.place_at(token.start)
    sentence = re.search(r"[A-Z]\w*(?: \w+){2,}", expected)  # what the parser says of a text that is otherwise well
    if sentence is not None:
        return SparqlError(_lowered(sentence[0]), feature="syntax", line=line, column=column)
    if offset >= len(spread):
        problem, column = "the query ends too early", column + len(token.text)
    else:
        problem = f"{token.text} cannot stand here"
    return SparqlError(
        problem, feature="syntax", line=line, column=column, advice=_expectation(source, number, expected)
    )


def _spread(tokens: list[Token]) -> tuple[str, list[int]]:
    """The tokens on one line, far apart, and where each begins.

    When a keyword does not fit, the parser says where the keyword would have ended. With enough space after each
    token that is still before the next, so that the place tells the token.
    """
    text, starts = "", []
    for token in tokens:
        if token.type_id == "language" or token.says("^^"):
            text = text.rstrip()
        starts.append(len(text))
        text += token.strict() + _FAR
    return text, starts


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _expectation(source: Source, number: int, expected: str) -> str:
    """What should stand in the place of a token."""
    token, before = source.tokens[number], source.tokens[number - 1]
    if before.says("SELECT", "DISTINCT", "REDUCED"):
        return "Expected a variable."
    if token.says("LIMIT", "OFFSET") or before.says("LIMIT", "OFFSET"):
        return "Expected a number."
    terms = ("variable", "iri", "name", "blank")
    if token.type_id in terms and before.type_id in (*terms, "string", "number"):
        return "Perhaps a dot is missing before it."
    signs = re.findall(r'"([^"]+)"', expected)
    if "?" in signs:
        return "Expected a variable or a name." if ":" in signs else "Expected a variable."
    return f"Expected {' or '.join(signs)}." if signs and len(signs) < 6 else ""
