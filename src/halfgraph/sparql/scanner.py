"""Split a SPARQL text into tokens with positions and resolved names; the grammar's terminals are their types."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf

from halfgraph.errors import SparqlError
from halfgraph.graph.names import is_iri
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import RDF_TYPE, XSD, BlankNode, Iri, Literal, Span, SyntaxNode, Variable
from halfgraph.sparql.terminals import AGGREGATES, FUNCTIONS, KEYWORDS, MARKS, TOKEN

MOST_TOKENS = 5_000
_KEPT = frozenset({"STAR", "SLASH", "PLUS", "DASH", "QUESTION", "EQUAL", "COMPARE", "DISTINCT", "REDUCED", "SILENT"})
_KEPT |= {"ASC", "DESC", "NAMED", "UNDEF"}
_OPENING, _CLOSING = frozenset({"{", "(", "[", "<<(", "<<", "{|"}), frozenset({"}", ")", "]", ")>>", ">>", "|}"})
_LABELLED = frozenset({"(", "[", "<<", "{|", "~"})  # what can stand for a blank node
_CODEPOINT = re.compile(r"(\\\\)|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_STRING_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_STRING_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}


class Token(NamedTuple):
    """A token; `value` is its syntax node, or the keyword or mark where the tree needs it."""

    type: str
    text: str
    start: int
    end: int
    value: SyntaxNode | str | None = None
    label: str = ""  # of the blank node that a bracket can stand for

    def __getattr__(self, name: str) -> None:
        """Return None for the positions that lark asks for at the end of a text; halfgraph has its own."""
        if name not in ("line", "column", "end_line", "end_column", "start_pos", "end_pos"):
            raise AttributeError(name)

    @property
    def span(self) -> Span:
        """Start and end offset in the original text."""
        return self.start, self.end


class Place(NamedTuple):
    """Line and column of a character, both from one."""

    line: int
    column: int


@dataclass(frozen=True)
class SourceText:
    """A query text: the original, and the one with its codepoint escapes decoded."""

    text: str
    decoded: str
    shifts: tuple[
        tuple[int, int], ...
    ] = ()  # from this offset of the decoded text on, the original is ahead by so much

    @classmethod
    def of(cls, text: str) -> "SourceText":
        """Decode the codepoint escapes of a text and remember where each was."""
        if "\\u" not in text and "\\U" not in text:
            return cls(text, text)
        pieces: list[str] = []
        shifts: list[tuple[int, int]] = []
        end = length = 0
        for match in _CODEPOINT.finditer(text):
            character = match[1] or _character(match)
            pieces += [text[end : match.start()], character]
            length += match.start() - end + len(character)
            end = match.end()
            shifts.append((length, end - length))
        return cls(text, "".join([*pieces, text[end:]]), tuple(shifts))

    def original(self, offset: int) -> int:
        """Return the offset in the original text of an offset in the decoded one."""
        if not self.shifts:
            return offset
        index = bisect_right(self.shifts, (offset, len(self.text)))
        return offset + (self.shifts[index - 1][1] if index else 0)

    def place(self, offset: int) -> Place:
        """Return line and column of an offset in the original text."""
        return Place(self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset))

    def place_of(self, node: SyntaxNode | Token | None) -> Place | None:
        """Return where a node or token begins."""
        return None if node is None else self.place(node.span[0])

    def text_of(self, node: SyntaxNode | Token) -> str:
        """Return a node as the text writes it."""
        return self.text[slice(*node.span)]


def _character(match: re.Match[str]) -> str:
    number = int(match[2] or match[3], 16)
    return chr(number) if number < 0x110000 else match[0]


@dataclass(frozen=True)
class Scan:
    """The tokens of a text, the prefixes before and after its declarations, and the first name with an unknown one."""

    source: SourceText
    tokens: list[Token]
    given: Prefixes
    prefixes: Prefixes
    undeclared: Token | None = None

    @cached_property
    def nesting(self) -> int:
        """Return the depth of the brackets."""
        depth = deepest = 0
        for token in self.tokens:
            if token.text in _OPENING:
                depth += 1
                deepest = max(deepest, depth)
            elif token.text in _CLOSING:
                depth -= 1
        return deepest


@dataclass
class Scanner:
    """Reads tokens one after another and keeps the base and the prefixes declared so far."""

    source: SourceText
    prefixes: Prefixes
    namespaces: dict[str, str] = field(init=False)
    base: str = field(init=False)
    undeclared: Token | None = None
    _anonymous: int = 0
    _labels: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.namespaces, self.base = dict(self.prefixes.namespaces), self.prefixes.base
        if "_:_" in self.source.decoded:
            self._labels = frozenset(re.findall(r"_:(_[0-9]+)", self.source.decoded))

    def scan(self) -> Scan:
        """Return all tokens, without comments."""
        tokens: list[Token] = []
        original = self.source.original if self.source.shifts else None
        declaring = ""  # the keyword or name of a declaration that waits for its IRI
        for match in TOKEN.finditer(self.source.decoded):
            kind, text = str(match.lastgroup), match.group()
            if kind == "COMMENT":
                continue
            start, end = match.span()
            if original is not None:
                start, end = original(start), original(end)
            if declaring:
                token, declaring = self.declare(declaring, kind, text, start, end)
            else:
                token = self.token(kind, text, start, end)
                declaring = token.type if token.type in ("PREFIX", "BASE") else ""
            tokens.append(token)
            if len(tokens) > MOST_TOKENS:
                break
        return Scan(self.source, tokens, self.prefixes, Prefixes(self.namespaces, self.base), self.undeclared)

    def declare(self, declaring: str, kind: str, text: str, start: int, end: int) -> tuple[Token, str]:
        """Read a token of a declaration: the prefix, then its namespace or the base."""
        if declaring == "PREFIX" and kind == "NAME" and text.endswith(":") and text.count(":") == 1:
            return Token("PNAME_NS", text, start, end), text
        if declaring != "PREFIX" and kind == "IRI":
            iri = resolve(text, self.base)
            if declaring == "BASE":
                self.base = iri
            else:
                self.namespaces[declaring[:-1]] = iri
            return Token("NAMESPACE", text, start, end), ""
        return self.token(kind, text, start, end), ""

    def token(self, kind: str, text: str, start: int, end: int) -> Token:
        """Return the token of a match, with its syntax node if it is a term."""
        span = (start, end)
        match kind:
            case "VAR":
                return Token("VAR", text, start, end, Variable(text[1:], span=span))
            case "NAME":
                return self.prefixed(text, start, end)
            case "IRI":
                return Token("IRI", text, start, end, Iri(resolve(text, self.base), span=span))
            case "WORD":
                return _word(text, start, end)
            case "MARK":
                name = MARKS.get(text, "UNKNOWN")
                label = self.label() if text in _LABELLED else ""
                return Token(name, text, start, end, text if name in _KEPT else None, label)
            case "NUMBER":
                datatype = "double" if "e" in text or "E" in text else "decimal" if "." in text else "integer"
                name = "SIGNED" if text[0] in "+-" else "INTEGER" if datatype == "integer" else "NUMBER"
                return Token(name, text, start, end, Literal(text, XSD + datatype, span=span))
            case "STRING":
                return _string(text, start, end)
            case "BLANK":
                return Token("BLANK", text, start, end, BlankNode(text[2:], span=span))
            case "ANON":
                return Token("ANON", text, start, end, BlankNode(self.label(), span=span))
        return Token(kind, text, start, end, text if kind == "LANGTAG" else None)

    def prefixed(self, text: str, start: int, end: int) -> Token:
        """Return the token of a prefixed name."""
        prefix, _, local = text.partition(":")
        namespace = self.namespaces.get(prefix)
        if "\\" in local:
            local = re.sub(r"\\(.)", r"\1", local)
        token = Token("IRI", text, start, end, Iri((namespace or "") + local, span=(start, end)))
        if namespace is None:
            self.undeclared = self.undeclared or token
        return token

    def label(self) -> str:
        """Return a fresh label for a blank node without one."""
        self._anonymous += 1
        while f"_{self._anonymous}" in self._labels:
            self._anonymous += 1
        return f"_{self._anonymous}"


def _word(text: str, start: int, end: int) -> Token:
    """Return the token of a bare word: `a`, a keyword, a function, or a word that SPARQL does not have."""
    upper = text.upper()
    if upper in KEYWORDS:
        return Token(upper, text, start, end, upper if upper in _KEPT else None)
    if text == "a":
        return Token("A", text, start, end, Iri(RDF_TYPE, span=(start, end)))
    if upper in FUNCTIONS:
        return Token("FUNCTION", text, start, end, upper)
    if upper in ("TRUE", "FALSE"):
        return Token("BOOLEAN", text, start, end, Literal(text.lower(), XSD + "boolean", span=(start, end)))
    if upper in AGGREGATES:
        return Token("GROUP_CONCAT" if upper == "GROUP_CONCAT" else "AGGREGATE", text, start, end, upper)
    return Token("UNKNOWN_WORD", text, start, end)


def _string(text: str, start: int, end: int) -> Token:
    quotes = 3 if text[:3] in ("'''", '"""') else 1
    inner = text[quotes:-quotes]
    if "\\" in inner:
        if any(escape not in _STRING_ESCAPES for escape in _STRING_ESCAPE.findall(inner)):
            return Token("BAD_STRING", text, start, end)
        inner = _STRING_ESCAPE.sub(lambda match: _STRING_ESCAPES[match[1]], inner)
    return Token("STRING", text, start, end, Literal(inner, span=(start, end)))


@lru_cache(maxsize=4096)
def resolve(text: str, base: str) -> str:
    """Return the IRI that <...> stands for, resolved as the store does."""
    if is_iri(text[1:-1]):
        return text[1:-1]
    try:
        statement = next(iter(parse_rdf(f"{text} {text} {text} .", RdfFormat.TURTLE, base_iri=base)))
    except SyntaxError:
        return text[1:-1]
    return str(statement.subject.value)


def scan(text: str, prefixes: Prefixes) -> Scan:
    """Return the tokens of a text."""
    source = SourceText.of(text)
    try:
        source.decoded.encode()
    except UnicodeEncodeError as error:
        line, column = source.place(source.original(error.start))
        raise SparqlError("half of a surrogate pair", feature="syntax", line=line, column=column) from error
    return Scanner(source, prefixes).scan()
