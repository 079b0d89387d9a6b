"""The words and marks of a query text with their places, since rdflib's parser does not keep them."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from pyoxigraph import RdfFormat, parse

from halfgraph.graph.names import is_iri
from halfgraph.graph.statements import TYPE
from halfgraph.sparql.prefixes import PN_CHARS, PN_CHARS_BASE, Prefixes

_VARIABLE = PN_CHARS.removesuffix("-")
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
# DBpedia's own endpoint, and the paper's Listing 1, write dbr:University_of_California,_Los_Angeles without the
# backslash that SPARQL asks for. No comma stands before an underscore in a valid query unless it is that of _:b1.
_BARE_COMMA = r",(?=_[^:])"
_LONGEST_PREFIX = 100  # without a bound, a text of dots and letters would take time by the square of its length
_TOKEN = re.compile(
    rf"""
      (?P<comment> \#[^\n\r]* )
    | (?P<iri> <(?: [^<>"{{}}|^`\\\x00-\x20] | \\u[0-9A-Fa-f]{{4}} | \\U[0-9A-Fa-f]{{8}} )*> )
    | (?P<string> '''(?:[^\\]|\\.)*?''' | \"\"\"(?:[^\\]|\\.)*?\"\"\" | '(?:[^'\\\n\r]|\\.)*' | "(?:[^"\\\n\r]|\\.)*" )
    | (?P<variable> [?$][{PN_CHARS_BASE}_0-9][{_VARIABLE}]* )
    | (?P<blank> _:[{PN_CHARS_BASE}_0-9](?:[{PN_CHARS}.]*[{PN_CHARS}])? )
    | (?P<name> (?:[{PN_CHARS_BASE}](?:[{PN_CHARS}.]{{0,{_LONGEST_PREFIX}}}[{PN_CHARS}])?)?:
        (?: (?:[{PN_CHARS_BASE}_:0-9]|{_ESCAPED}) (?: (?:[{PN_CHARS}.:]|{_ESCAPED}|{_BARE_COMMA})*
            (?:[{PN_CHARS}:]|{_ESCAPED}) )? )? )
    | (?P<number> (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)? )
    | (?P<word> [A-Za-z][A-Za-z0-9_]* )
    | (?P<language> @[A-Za-z]+(?:-[A-Za-z0-9]+)* )
    | (?P<mark> \^\^ | \|\| | && | << | >> | \{{\| | \|\}} | \S )
    """,
    re.VERBOSE | re.DOTALL,
)
_FORMS = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE")


class Place(NamedTuple):
    """Where something is in a text, both from one."""

    line: int
    column: int


class Token(NamedTuple):
    """A word or mark of a text; the type is a group of the expression above."""

    type_id: str
    text: str
    start: int

    def says(self, *words: str) -> bool:
        """Whether it is one of some keywords or marks."""
        return self.type_id in ("word", "mark") and self.text.upper() in words

    def strict(self) -> str:
        """The text, with a backslash before each bare comma of a name."""
        return re.sub(r"(?<!\\),", r"\\,", self.text) if self.type_id == "name" else self.text


@dataclass(frozen=True)
class Source:
    """A query text with its tokens; undeclared prefixes and the base are those given."""

    text: str
    defaults: Prefixes

    @cached_property
    def tokens(self) -> list[Token]:
        """The words and marks, without comments."""
        found = (Token(str(match.lastgroup), match.group(), match.start()) for match in _TOKEN.finditer(self.text))
        return [token for token in found if token.type_id != "comment"]

    @cached_property
    def prologue_end(self) -> int:
        """How many tokens come before the form of the query, such as SELECT."""
        places = (place for place, token in enumerate(self.tokens) if token.says("{", *_FORMS))
        return next(places, len(self.tokens))

    @cached_property
    def body(self) -> list[Token]:
        """The tokens from the first brace to the last."""
        braces = [place for place, token in enumerate(self.tokens) if token.says("{", "}")]
        return self.tokens[braces[0] : braces[-1] + 1] if braces else []

    @cached_property
    def prefixes(self) -> Prefixes:
        """The prefixes and the base, those declared by the text before the given ones."""
        namespaces, base = dict(self.defaults.namespaces), self.defaults.base
        prologue = self.tokens[: self.prologue_end]
        for place, token in enumerate(prologue):
            match prologue[place + 1 : place + 3]:
                case [Token("iri", iri, _), *_] if token.says("BASE"):
                    base = resolved(iri, base)
                case [Token("name", name, _), Token("iri", iri, _)] if token.says("PREFIX"):
                    namespaces[name.removesuffix(":")] = resolved(iri, base)
        return Prefixes(namespaces, base)

    def strict(self) -> str:
        """The text with a backslash before each bare comma in a name, as the standard asks."""
        pieces, end = [], 0
        for token in self.tokens:
            if token.type_id == "name" and "," in token.text:
                pieces += [self.text[end : token.start], token.strict()]
                end = token.start + len(token.text)
        return "".join([*pieces, self.text[end:]])

    def iri(self, text: str) -> str | None:
        """The IRI that <...> or a prefixed name stands for; None where its prefix is not declared."""
        if text.startswith("<"):
            return resolved(text, self.prefixes.base)
        prefix, _, local = text.partition(":")
        if prefix not in self.prefixes.namespaces:
            return None
        return self.prefixes.namespaces[prefix] + re.sub(r"\\(.)", r"\1", local)

    def place(self, token: Token | None) -> Place | None:
        """Where a token is."""
        return None if token is None else self.place_at(token.start)

    def place_at(self, start: int) -> Place:
        """The line and column of a character."""
        return Place(self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start))

    def nesting(self) -> int:
        """How deep the brackets go."""
        depth = deepest = 0
        for token in self.tokens:
            depth += token.says("{", "(", "[", "{|", "<<") - token.says("}", ")", "]", "|}", ">>")
            deepest = max(deepest, depth)
        return deepest

    def meaning(self, token: Token) -> str:
        """What a token says, in one way for all ways to say it: <IRI>, ?variable, or its text."""
        if token.type_id in ("iri", "name"):
            return f"<{self.iri(token.text)}>"
        if token.type_id == "variable":
            return f"?{token.text[1:]}"
        return f"<{TYPE}>" if token.text == "a" else token.text

    def of_iri(self, iri: str) -> Token | None:
        """The first token between the braces that stands for an IRI."""
        return next((token for token in self.body if self.meaning(token) == f"<{iri}>"), None)

    @cached_property
    def tested(self) -> frozenset[int]:
        """Where the tokens of expressions begin, the function and the brackets of a FILTER."""
        found, depth, testing = set[int](), 0, False
        for before, token in pairwise(self.body):
            testing = testing or token.says("FILTER")
            if before.says("FILTER") and not token.says("NOT", "EXISTS"):
                found.add(token.start)
            depth += testing and token.says("(")
            if depth:
                found.add(token.start)
            depth -= testing and token.says(")")
            testing = testing and not (token.says("{") or (token.says(")") and not depth))
        return frozenset(found)


def resolved(text: str, base: str) -> str:
    """The IRI that <...> stands for, as the store resolves it."""
    if is_iri(text[1:-1]):
        return text[1:-1]
    try:
        statement = next(iter(parse(f"{text} {text} {text} .", RdfFormat.TURTLE, base_iri=base)))
    except SyntaxError:
        return text[1:-1]
    return str(statement.subject.value)
