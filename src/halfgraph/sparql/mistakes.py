"""Messages for texts that are not SPARQL: what is wrong, where, and what was expected."""

import re
from collections.abc import Collection
from itertools import pairwise

from pyoxigraph import DefaultGraph, NamedNode, Store

from halfgraph.errors import SparqlError, suggest
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.scanner import Scan, SourceText, Token, resolve
from halfgraph.sparql.terminals import AGGREGATES, FUNCTIONS, KEYWORDS, MARKS

_CLOSING = {"{": "}", "(": ")", "[": "]"}
_COMPARING = frozenset({"FILTER", "BIND", "HAVING", "ORDER", "AS"})  # keywords after which < and > compare
_FORMS = frozenset({"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"})
_TERMS = frozenset({"VAR", "IRI", "BLANK", "STRING", "INTEGER", "NUMBER", "SIGNED", "BOOLEAN"})
_SAID = {name: mark for mark, name in MARKS.items() if name != "COMPARE"} | {  # terminals as people call them
    "VAR": "a variable",
    "IRI": "a name",
    "INTEGER": "a number",
    "STRING": "a string",
    "NAMESPACE": "an IRI <...>",
    "PNAME_NS": "a prefix such as ex:",
    "$END": "the end",
}
_MOST_EXPECTED = 4
SCOPE = "A BIND must name a new variable, a blank node label belongs to one group, and rows of VALUES are equally long."
Mistake = tuple[Token | None, str, str]  # where, what is wrong, what to do


def mistake(scanned: Scan, token: Token | None, expected: Collection[str]) -> SparqlError:
    """Return the error for a text that the grammar refuses at a token, or at its end if that is None."""
    for look in (_no_query, _unclosed, _unpaired_bracket, _undeclared_prefix, _bare_sign, _unknown_word):
        if (found := look(scanned)) is not None:
            where, problem, advice = found
            return _error(scanned.source, where and where.start, problem, advice)
    earlier = [one for one in scanned.tokens if token is None or one.start < token.start]
    before = earlier[-1] if earlier else None
    advice = _expectation(token, before, expected)
    if token is None:
        return _error(scanned.source, before.end if before else 0, "the query ends too early", advice)
    return _error(scanned.source, token.start, f"unexpected {token.text}", advice)


def _error(source: SourceText, offset: int | None, problem: str, advice: str = "") -> SparqlError:
    line, column = (None, None) if offset is None else source.place(offset)
    return SparqlError(problem, feature="syntax", line=line, column=column, advice=advice)


def _expectation(token: Token | None, before: Token | None, expected: Collection[str]) -> str:
    """Return what should be in the place of a token."""
    if token and before and {token.type, before.type} <= _TERMS and "DOT" in expected:
        return "Is a dot missing before it?"
    if token and token.text[0] == "<" and "COMPARE" in expected:
        return "It is read as an IRI. To compare, put spaces around < and >."
    names = sorted(expected, key=lambda name: (name not in _SAID, _SAID.get(name, name)))
    if before and before.type in ("SELECT", "DISTINCT", "REDUCED"):
        names = ["VAR"]
    elif {"VAR", "IRI"} <= set(expected):
        names = ["VAR", "IRI"]
    said = list(dict.fromkeys(_SAID.get(name, name) for name in names))
    return f"Expected {' or '.join(said)}." if said and len(said) <= _MOST_EXPECTED else ""


def _no_query(scanned: Scan) -> Mistake | None:
    """An empty text, or one without a query form."""
    if not scanned.tokens:
        return None, "the text has no query", "Write one such as SELECT ?x WHERE { ?x :relation :entity }."
    first = next((token for token in scanned.tokens if token.type in _FORMS or token.text == "{"), None)
    if first is None or first.text == "{":
        advice = "A query begins with SELECT ?x WHERE {, after its prefixes."
        return scanned.tokens[0], "the text has no SELECT", advice
    return None


def _undeclared_prefix(scanned: Scan) -> Mistake | None:
    if (token := scanned.undeclared) is None:
        return None
    prefix, known = token.text.partition(":")[0], ", ".join(f"{name}:" for name in sorted(scanned.given.namespaces))
    advice = f"Begin the query with PREFIX {prefix}: <...>." + (f" Known without: {known}." if known else "")
    return token, f"the prefix {prefix}: is not declared", advice


def _unclosed(scanned: Scan) -> Mistake | None:
    """An IRI or a string without its end, or with an escape that does not exist."""
    if not any(token.type in _COMPARING for token in scanned.tokens):
        for token in scanned.tokens:
            if token.text == "<":
                return token, "this IRI is not closed, or has a space in it", "Write %20 for a space, and > at its end."
    for token in scanned.tokens:
        if token.text in ('"', "'"):
            return token, "this quote is not closed", f"Put a {token.text} at its end."
        if token.type == "BAD_STRING":
            return token, "this string has an unknown escape", "Only \\t \\b \\n \\r \\f \\\\ \\\" and \\' are known."
    return None


def _unpaired_bracket(scanned: Scan) -> Mistake | None:
    opened: list[Token] = []
    for token in scanned.tokens:
        if token.text in _CLOSING:
            opened.append(token)
        elif token.text in _CLOSING.values():
            if not opened:
                return token, f"this {token.text} closes nothing", "Remove it, or open it before."
            last = opened.pop()
            if _CLOSING[last.text] != token.text:
                problem = f"this {token.text} does not close the {last.text} before it"
                return token, problem, f"Put a {_CLOSING[last.text]} before it."
    if opened:
        return opened[-1], f"this {opened[-1].text} is not closed", f"Put a {_CLOSING[opened[-1].text]} at its end."
    return None


def _unknown_word(scanned: Scan) -> Mistake | None:
    """A bare word that is neither a keyword nor a function."""
    for token, after in zip(scanned.tokens, [*scanned.tokens[1:], None], strict=True):
        if token.type == "UNKNOWN_WORD":
            is_function = after is not None and after.text[0] == "("
            known = FUNCTIONS | AGGREGATES if is_function else KEYWORDS
            near = suggest(token.text.upper(), sorted(known), cutoff=70)
            what = "function" if is_function else "keyword"
            advice = f"Did you mean {near[0]}?" if near else f"A variable is ?{token.text}, a name :{token.text}."
            return token, f"{token.text} is not a {what} of SPARQL", advice
    return None


def _bare_sign(scanned: Scan) -> Mistake | None:
    """A name that continues with a character that needs a backslash: dbr:Titanic_(film)."""
    for token, after in pairwise(scanned.tokens):
        adjacent = token.type == "IRI" and token.text[0] != "<" and after.start == token.end
        if adjacent and after.text[0] in "(!&'":
            sign = after.text[0]
            advice = f"Write \\{sign} there, or the whole IRI between < and >."
            return after, f"{sign} in the name {token.text} needs a backslash", advice
    return None


def _invalid_iri(scanned: Scan) -> Mistake | None:
    """An IRI that is none, such as <http://[>; a BASE counts for the IRIs after it."""
    base, before = scanned.given.base, ""
    for token in scanned.tokens:
        if token.type in ("IRI", "NAMESPACE") and token.text[0] == "<":
            iri = resolve(token.text, base)
            try:
                NamedNode(iri)
            except ValueError:
                what = f"the BASE {token.text}" if before == "BASE" else token.text
                return token, f"{what} is not a valid IRI", "Write a whole one, such as <http://example.org/>."
            base = iri if before == "BASE" else base
        before = token.type
    return None


def check_scope(written: str, scanned: Scan) -> None:
    """Raise an error if pyoxigraph refuses a query that the grammar takes: scope rules of variables and blank nodes."""
    if (problem := _problem(written)) is None:
        return
    if (found := _invalid_iri(scanned)) is not None:
        token, invalid, advice = found
        raise _error(scanned.source, token and token.start, invalid, advice)
    # The same mistake in the original text has a position that helps, unless other liberties of it come first.
    positioned = _problem(scanned.source.decoded, scanned.given)
    offset, text = None, scanned.source.decoded
    if match := re.match(r"error at (\d+):(\d+): ", positioned or ""):
        line, column = map(int, match.groups())
        start = sum(len(one) + 1 for one in text.split("\n")[: line - 1])
        offset = scanned.source.original(min(start + column - 1, len(text)))
    sentence = re.search(r"[A-Z]\w*(?: \w+){2,}", problem)
    said = sentence[0][0].lower() + sentence[0][1:] if sentence else "variables or blank nodes are out of scope here"
    raise _error(scanned.source, offset, said, "" if sentence else SCOPE)


def _problem(text: str, prefixes: Prefixes | None = None) -> str | None:
    """Return what pyoxigraph's parser says against a text, or None."""
    try:
        # Two options that exclude each other: the parser runs first, and nothing is evaluated, not even a SERVICE.
        known = {} if prefixes is None else {"prefixes": dict(prefixes.namespaces), "base_iri": prefixes.base}
        Store().query(text, **known, use_default_graph_as_union=True, default_graph=DefaultGraph())  # type: ignore[arg-type]
    except SyntaxError as error:
        return str(error.msg)
    except ValueError as error:
        if "at the same time" in str(error):
            return None
        raise
    raise AssertionError("pyoxigraph took two options that exclude each other")
