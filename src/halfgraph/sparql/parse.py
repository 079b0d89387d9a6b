"""Parse SPARQL: a text to its syntax tree, by grammar.lark, with pyoxigraph's parser as second opinion."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from halfgraph.errors import SparqlError
from halfgraph.sparql.actions import ACTIONS
from halfgraph.sparql.mistakes import check_scope, mistake
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.scanner import MOST_TOKENS, Scan, SourceText, Token, scan
from halfgraph.sparql.syntax_tree import Iri, Query, Update
from halfgraph.sparql.terminals import CLOSING, DECLARATIONS, OPENING, UPDATES
from halfgraph.sparql.unsupported import DEEPEST, LONGEST, refused
from halfgraph.sparql.writer import write


@dataclass(frozen=True)
class Request:
    """A parsed text: its syntax tree, and the source and the prefixes for messages about it."""

    tree: Query | Update
    source: SourceText
    prefixes: Prefixes


def parse(text: str, prefixes: Prefixes) -> Request:
    """Return the syntax tree of a query or an update; undeclared prefixes and the base are the given ones."""
    scanned = scan(text, prefixes) if len(text) <= LONGEST else None
    if scanned is None or len(scanned.tokens) > MOST_TOKENS:
        raise refused("length", None)
    steps = ((token.text in OPENING) - (token.text in CLOSING) for token in scanned.tokens)
    if max(accumulate(steps), default=0) > DEEPEST:
        raise refused("nesting", None)
    return Request(_update(scanned) or _query(scanned), scanned.source, scanned.prefixes)


def _query(scanned: Scan) -> Query:
    tree: Query = _parse(scanned, "query")
    if any(token.type == "FUNCTION" and token.value in ("IRI", "URI") for token in scanned.tokens):
        tree = replace(tree, base=scanned.base)
    check_scope(write(tree), scanned)
    return tree


def _update(scanned: Scan) -> Update | None:
    """Return the update if the first word after the declarations is that of one; whatever follows, it is no query."""
    first = next((token for token in scanned.tokens if token.type not in DECLARATIONS), None)
    if first is None or first.type not in UPDATES:
        return None
    try:
        return parse_update(scanned)
    except SparqlError:
        raise refused("update", scanned.source.place_of(first), word=first.type) from None


def parse_update(scanned: Scan) -> Update:
    """Return an update, its operations as text with IRIs in full."""
    _parse(scanned, "update")
    tokens = [token for token in scanned.tokens if token.type not in DECLARATIONS]
    texts = (write(token.value) if isinstance(token.value, Iri) else token.text for token in tokens)
    return Update(tokens[0].type if tokens else "", " ".join(texts), span=tokens[0].span if tokens else (0, 0))


def _parse(scanned: Scan, start: str) -> Any:
    try:
        tree = _lalr().parse(scanned.tokens, start=start)
    except UnexpectedToken as error:
        token = error.token if isinstance(error.token, Token) else None  # lark's own token is that of the end
        raise mistake(scanned, token, error.expected) from None
    if scanned.undeclared is not None:
        raise mistake(scanned, scanned.undeclared, ())
    return tree


@cache
def _lalr() -> Lark:
    """Return the parser; building it takes 0.3 s, once per process."""
    grammar = files("halfgraph.sparql").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer=_TokenList,
        start=["query", "update"],
        transformer=SimpleNamespace(**ACTIONS),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )


class _TokenList(Lexer):
    """A lexer for lark that passes on the scanner's tokens."""

    __future_interface__ = 2

    def __init__(self, _: Any) -> None:
        pass

    def lex(self, lexer_state: Any, _: Any) -> Iterator[Any]:
        return iter(lexer_state.text)
