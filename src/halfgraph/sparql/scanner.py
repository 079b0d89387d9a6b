"""Split a SPARQL text into tokens with positions and resolved names; the grammar's terminals are their types."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf

from halfgraph.errors import SparqlError
from halfgraph.graph.names import is_iri
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import RDF_TYPE, XSD, BlankNode, Iri, Literal, Span, SyntaxNode, Variable
from halfgraph.sparql.terminals import AGGREGATES, FUNCTIONS, KEPT, KEYWORDS, MARKS, TOKEN

MOST_TOKENS = 25_000  # 10,000 names in VALUES and more; such a text is parsed in 0.3 s
Place = tuple[int, int]  # line and column, both from one
_LABELLED = frozenset({"(", "[", "<<", "{|", "~"})  # what can stand for a blank node
_UNIT = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|.", re.DOTALL)  # a character or its escape
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
        return self.start, self.end


@dataclass(frozen=True)
class SourceText:
    """A query text, and the same with its codepoint escapes decoded."""

    text: str
    decoded: str
    offsets: tuple[int, ...] = ()  # in the original, of each character of the decoded text; empty if they are equal

    @classmethod
    def of(cls, text: str) -> "SourceText":
        """Decode the codepoint escapes of a text."""
        if "\\u" not in text and "\\U" not in text:
            return cls(text, text)
        decoded, offsets = "", list[int]()
        for match in _UNIT.finditer(text):
            code = int(match[1] or match[2] or "110000", 16)
            unit = chr(code) if code < 0x110000 else match[0]
            decoded += unit
            offsets += range(match.start(), match.start() + len(unit))
        return cls(text, decoded, (*offsets, len(text)))

    def original(self, offset: int) -> int:
        """Return the offset in the original text of an offset in the decoded one."""
        return self.offsets[offset] if self.offsets else offset

    def place(self, offset: int) -> Place:
        """Return line and column of an offset in the original text."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def place_of(self, node: SyntaxNode | Token | None) -> Place | None:
        return None if node is None else self.place(node.span[0])

    def text_of(self, node: SyntaxNode | Token) -> str:
        """Return a node as the text writes it."""
        return self.text[slice(*node.span)]


@dataclass
class Scan:
    """The tokens of a text, the prefixes before and after its declarations, and the first name with an unknown one."""

    source: SourceText
    given: Prefixes
    namespaces: dict[str, str]
    base: str
    labels: Iterator[int]  # numbers that no blank node of the text is labelled with
    tokens: list[Token] = field(default_factory=list)
    undeclared: Token | None = None

    @property
    def prefixes(self) -> Prefixes:
        return Prefixes(self.namespaces, self.base)

    def run(self) -> None:
        """Read all tokens, without comments."""
        declaring = ""  # the keyword or name of a declaration that waits for its IRI
        for match in TOKEN.finditer(self.source.decoded):
            terminal, text = str(match.lastgroup), match.group()
            if terminal == "COMMENT":
                continue
            start, end = match.span()
            if self.source.offsets:
                start, end = self.source.offsets[start], self.source.offsets[end]
            if declaring:
                token, declaring = self.declare(declaring, terminal, text, start, end)
            else:
                token = self.token(terminal, text, start, end)
                declaring = token.type if token.type in ("PREFIX", "BASE") else ""
            self.tokens.append(token)
            if len(self.tokens) > MOST_TOKENS:
                break

    def declare(self, declaring: str, terminal: str, text: str, start: int, end: int) -> tuple[Token, str]:
        """Read a token of a declaration: the prefix, then its namespace or the base."""
        if declaring == "PREFIX" and terminal == "NAME" and text.endswith(":") and text.count(":") == 1:
            return Token("PNAME_NS", text, start, end), text
        if declaring != "PREFIX" and terminal == "IRI":
            iri = resolve(text, self.base)
            if declaring == "BASE":
                self.base = iri
            else:
                self.namespaces[declaring[:-1]] = iri
            return Token("NAMESPACE", text, start, end), ""
        return self.token(terminal, text, start, end), ""

    def token(self, terminal: str, text: str, start: int, end: int) -> Token:
        """Return the token of a match, with its syntax node if it is a term."""
        span = (start, end)
        match terminal:
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
                return Token(name, text, start, end, text if name in KEPT else None, label)
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
        return Token(terminal, text, start, end, text if terminal == "LANGTAG" else None)

    def prefixed(self, text: str, start: int, end: int) -> Token:
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
        return f"_{next(self.labels)}"


def _word(text: str, start: int, end: int) -> Token:
    """Return the token of a bare word: `a`, a keyword, a function, or a word that SPARQL does not have."""
    upper = text.upper()
    if upper in KEYWORDS:
        return Token(upper, text, start, end, upper if upper in KEPT else None)
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


def with_declarations(text: str, prefixes: Prefixes) -> str:
    """Return a text with declarations of the given prefixes, and of the base, that it uses undeclared."""
    tokens = scan(text, prefixes).tokens
    declared = {token.text[:-1] for token in tokens if token.type == "PNAME_NS"}
    names = [token.text for token in tokens if token.type == "IRI"]
    used = {name.partition(":")[0] for name in names if name[0] != "<"} & set(prefixes.namespaces)
    lines = [f"PREFIX {prefix}: <{prefixes.namespaces[prefix]}>" for prefix in sorted(used - declared)]
    is_relative = any(name[0] == "<" and not is_iri(name[1:-1]) for name in names)
    if is_relative and not any(token.type == "BASE" for token in tokens):
        lines.insert(0, f"BASE <{prefixes.base}>")
    return "\n".join([*lines, text])


@lru_cache(maxsize=4096)
def resolve(text: str, base: str) -> str:
    """Return the IRI that <...> stands for, resolved as the store does."""
    if is_iri(text[1:-1]):
        return text[1:-1]
    try:
        statement = next(iter(parse_rdf(f"{text} {text} {text} .", RdfFormat.TURTLE, base_iri=base)))
    except (SyntaxError, ValueError):  # the IRI, or the base
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
    labels = count(1 + max(map(int, re.findall(r"_:_([0-9]{1,9})", source.decoded)), default=0))
    scanned = Scan(source, prefixes, dict(prefixes.namespaces), prefixes.base, labels)
    scanned.run()
    return scanned
