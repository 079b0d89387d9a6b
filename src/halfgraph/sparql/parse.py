"""Parse SPARQL: a text to its syntax tree, by grammar.lark, with pyoxigraph's parser as second opinion."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from halfgraph.errors import SparqlError
from halfgraph.sparql.actions import ACTIONS
from halfgraph.sparql.mistakes import check_scope, mistake
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.scanner import MOST_TOKENS, Scan, SourceText, Token, scan
from halfgraph.sparql.syntax_tree import Query, Update
from halfgraph.sparql.terminals import UPDATES
from halfgraph.sparql.unsupported import DEEPEST, LONGEST, refused
from halfgraph.sparql.writer import full, write

_LOCK = threading.Lock()


@dataclass(frozen=True)
class Request:
    """A parsed text: its syntax tree, and the source and the prefixes for messages about it."""

    tree: Query | Update
    source: SourceText
    prefixes: Prefixes


def parse(text: str, prefixes: Prefixes) -> Request:
    """Return the syntax tree of a query or an update; undeclared prefixes and the base are the given ones."""
    if len(text) > LONGEST:
        raise refused("length", None)
    scanned = scan(text, prefixes)
    if len(scanned.tokens) > MOST_TOKENS:
        raise refused("length", None)
    if scanned.nesting > DEEPEST:
        raise refused("nesting", None)
    if (update := _update(scanned)) is not None:
        return Request(update, scanned.source, scanned.prefixes)
    tree: Query = _parse(scanned, "query")
    if any(token.type == "FUNCTION" and token.value in ("IRI", "URI") for token in scanned.tokens):
        tree = replace(tree, base=scanned.prefixes.base)
    check_scope(write(tree), scanned)
    return Request(tree, scanned.source, scanned.prefixes)


def parse_update(scanned: Scan) -> Update:
    """Return an update, its operations as text with IRIs in full."""
    _parse(scanned, "update")
    first = next((token for token in scanned.tokens if token.type in UPDATES), None)
    keyword, span = ("", (0, 0)) if first is None else (first.type, first.span)
    return Update(keyword, " ".join(_in_full(scanned.tokens)), span=span)


def _in_full(tokens: list[Token]) -> Iterator[str]:
    """Yield the texts of tokens without declarations."""
    for token in tokens:
        if token.type == "IRI":
            yield full(token.value.value)  # type: ignore[union-attr]
        elif token.type not in ("PREFIX", "PNAME_NS", "BASE", "NAMESPACE"):
            yield token.text


def _update(scanned: Scan) -> Update | None:
    """Return the update if the first word after the declarations is that of one; whatever follows, it is no query."""
    declarations = ("PREFIX", "PNAME_NS", "BASE", "NAMESPACE")
    first = next((token for token in scanned.tokens if token.type not in declarations), None)
    if first is None or first.type not in UPDATES:
        return None
    try:
        return parse_update(scanned)
    except SparqlError:
        raise refused("update", scanned.source.place_of(first), word=first.type) from None


def _parse(scanned: Scan, start: str) -> Any:
    try:
        found = _lalr().parse(scanned.tokens, start=start)
    except UnexpectedToken as error:
        token = error.token if isinstance(error.token, Token) else None  # lark's own token is that of the end
        raise mistake(scanned, token, error.expected) from None
    if scanned.undeclared is not None:
        raise mistake(scanned, scanned.undeclared, ())
    return found


def _lalr() -> Lark:
    """Return the parser; building it takes 0.3 s, once per process."""
    with _LOCK:
        return _load()


@cache
def _load() -> Lark:
    grammar = files("halfgraph.sparql").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer=_TokenList,
        start=["query", "update"],
        transformer=_Callbacks(),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )


class _TokenList(Lexer):
    """A lexer for lark that passes on the scanner's tokens."""

    __future_interface__ = 2

    def __init__(self, _: Any) -> None:
        """Ignore lark's configuration."""

    def lex(self, lexer_state: Any, _: Any) -> Iterator[Any]:
        """Yield the tokens."""
        return iter(lexer_state.text)


class _Callbacks:
    """The actions by the names of their rules, as lark looks them up."""

    def __getattr__(self, name: str) -> Callable[[list[Any]], Any]:
        if name not in ACTIONS:
            raise AttributeError(name)
        return ACTIONS[name]
