"""The groups of a checked text by its words and marks: what is joined, chosen between, taken away and tested.

Only the runs of triple patterns are left to rdflib, which is slow and gives up on long texts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from halfgraph.sparql.refusals import refused
from halfgraph.sparql.tokens import Source, Token

_DOTS_AT_ONCE = 20  # rdflib's parser calls itself at each dot and gives up at about eighty
_BETWEEN_RUNS = ("{", "}", "FILTER", "MINUS", "VALUES")
_NUMBERS = "integer decimal float double long int short byte unsignedLong unsignedInt unsignedShort unsignedByte"
_SIGNED = "nonNegativeInteger positiveInteger negativeInteger nonPositiveInteger"
_TIMES = "date time dateTime gYear gYearMonth gMonthDay gDay gMonth duration dayTimeDuration yearMonthDuration"
KNOWN_TYPES = frozenset(f"string boolean anyURI {_NUMBERS} {_SIGNED} {_TIMES}".split())


@dataclass(frozen=True)
class Run:
    """Triple patterns one after another: which of the text's runs."""

    number: int


@dataclass(frozen=True)
class Choice:
    """Groups of which one must hold."""

    groups: tuple["Raw", ...]


@dataclass(frozen=True)
class Taken:
    """A group that must not hold, by MINUS or FILTER NOT EXISTS."""

    group: "Raw"
    token: Token


@dataclass(frozen=True)
class Among:
    """That a variable is one of some IRIs, or none of them."""

    variable: str
    iris: tuple[str, ...]
    token: Token
    negated: bool = False


@dataclass(frozen=True)
class Test:
    """An expression that the store must find true, its names written in full."""

    text: str
    variables: frozenset[str]
    token: Token


Raw = tuple[Run | Choice | Taken | Among | Test, ...]


@dataclass
class Groups:
    """What walks over the tokens of a text; the runs are collected on the way."""

    source: Source
    runs: list[list[Token]] = field(default_factory=list)
    at: int = 0

    @property
    def token(self) -> Token:
        """The token that is to be read."""
        return self.source.body[self.at]

    def next(self) -> Token:
        """The token that is to be read; it is read now."""
        self.at += 1
        return self.source.body[self.at - 1]

    def whole(self) -> Raw:
        """The group of the whole text, with what VALUES says after it."""
        found = self.group()
        while self.at < len(self.source.body):
            found += (self.values(),) if self.next().says("VALUES") else ()
        return found

    def group(self) -> Raw:
        """A group; one that only stands inside another is joined with it."""
        self.next()
        items: list[Run | Choice | Taken | Among | Test] = []
        while not self.token.says("}"):
            if self.token.says("{"):
                items.extend(self.choice())
            elif self.token.says("MINUS"):
                token = self.next()
                items.append(Taken(self.group(), token))
            elif self.token.says("FILTER"):
                items.extend(self.filter(self.next()))
            elif self.token.says("VALUES"):
                self.next()
                items.append(self.values())
            else:
                self.runs.append(list(self.run()))
                items.append(Run(len(self.runs) - 1))
        self.next()
        return tuple(items)

    def choice(self) -> Raw:
        """Groups with UNION between them, or the items of one group, which stays one if it has more than patterns."""
        groups = [self.group()]
        while self.token.says("UNION"):
            self.next()
            groups.append(self.group())
        joined = len(groups) == 1 and all(isinstance(item, Run) for item in groups[0])
        return groups[0] if joined else (Choice(tuple(groups)),)

    def run(self) -> Iterator[Token]:
        """The tokens up to what is no triple pattern."""
        while not self.token.says(*_BETWEEN_RUNS):
            yield self.next()

    def filter(self, begin: Token) -> Iterator[Taken | Among | Test | Run | Choice]:
        """What a FILTER asks, one by one where it joins several tests by &&."""
        if self.token.says("NOT", "EXISTS"):
            negated = self.next().says("NOT")
            if negated:
                self.next()
            group = self.group()
            yield from (Taken(group, begin),) if negated else group
            return
        tokens = list(self.constraint())
        for part in _conjuncts(tokens):
            yield self.comparison(part, begin)

    def constraint(self) -> Iterator[Token]:
        """The tokens of an expression in brackets, or of a function with its arguments."""
        depth = 0
        while True:
            token = self.next()
            if token.says("EXISTS", "{"):
                raise refused("EXISTS", self.source.place(token))
            depth += token.says("(") - token.says(")")
            yield token
            if token.says(")") and not depth:
                return

    def comparison(self, tokens: list[Token], begin: Token) -> Among | Test:
        """A test: of a variable against entities where it is that, or else by the store."""
        shape = [_sort(token) for token in tokens]
        iris = tuple(iri for token in tokens if _sort(token) == "iri" and (iri := self.source.iri(token.text)))
        variables = [token.text[1:] for token in tokens if token.type_id == "variable"]
        if len(variables) == 1 and shape in (["variable", "=", "iri"], ["iri", "=", "variable"]):
            return Among(variables[0], iris, begin)
        if len(variables) == 1 and shape in (["variable", "!", "=", "iri"], ["iri", "!", "=", "variable"]):
            return Among(variables[0], iris, begin, negated=True)
        negated = shape[1:2] == ["NOT"]
        if shape[:1] == ["variable"] and shape[1 + negated :] == _listed(len(iris)):
            return Among(variables[0], iris, begin, negated)
        self.refuse_types(tokens)
        return Test(self.written(tokens), frozenset(variables), begin)

    def refuse_types(self, tokens: list[Token]) -> None:
        """Nothing, or an error for a literal of a type that the store cannot compare."""
        for mark, token in pairwise(tokens):
            if mark.says("^^"):
                namespace, _, local = (self.source.iri(token.text) or "").rpartition("#")
                if namespace != "http://www.w3.org/2001/XMLSchema" or local not in KNOWN_TYPES:
                    raise refused("literal type", self.source.place(token), name=token.text)

    def written(self, tokens: list[Token]) -> str:
        """Tokens as a text with names in full, spaces where there were some."""
        text, end = "", tokens[0].start
        for token in tokens:
            text += " " if token.start > end and text else ""
            text += f"<{self.source.iri(token.text)}>" if _sort(token) == "iri" else token.text
            end = token.start + len(token.text)
        return text

    def values(self) -> Among:
        """What VALUES says of one variable."""
        begin = self.source.body[self.at - 1]
        names = [token.text[1:] for token in self.until("{") if token.type_id == "variable"]
        rows = [token for token in self.until("}") if not token.says("(", ")", "}")]
        if len(names) != 1 or any(token.says("UNDEF") for token in rows):
            raise refused("VALUES", self.source.place(begin))
        if wrong := next((token for token in rows if _sort(token) != "iri"), None):
            raise refused("literal", self.source.place(wrong), text=wrong.text, such="")
        return Among(names[0], tuple(str(self.source.iri(token.text)) for token in rows), begin)

    def until(self, mark: str) -> Iterator[Token]:
        """The tokens up to a mark and the mark."""
        while True:
            token = self.next()
            yield token
            if token.says(mark):
                return

    def plain(self) -> tuple[str, list[int]]:
        """The text for rdflib, every run in groups of its own, and the number of the run of each group."""
        pieces, numbers = [], []
        for number, run in enumerate(self.runs):
            dots = 0
            pieces.append("{")
            numbers.append(number)
            for before, token in pairwise([Token("mark", ".", 0), *run]):
                dots += token.says(".")
                if token.says(".") and dots % _DOTS_AT_ONCE == 0:
                    pieces.append("} {")
                    numbers.append(number)
                elif _is_glued(before, token):
                    pieces[-1] += token.strict()
                elif not (token.says(".") and (before.says(".") or pieces[-1].endswith("{"))):
                    pieces.append(token.strict())
            pieces.append("}")
        first = self.source.tokens.index(self.source.body[0])
        head = self.source.tokens[self.source.prologue_end : first]
        return " ".join([*(token.strict() for token in head), "{", *pieces, "}", *self.modifiers()]), numbers

    def modifiers(self) -> Iterator[str]:
        """LIMIT and OFFSET with their numbers."""
        for word, number in pairwise(self.source.tokens):
            if word.says("LIMIT", "OFFSET") and number.type_id == "number":
                yield f"{word.text} {number.text}"


def _is_glued(before: Token, token: Token) -> bool:
    """Whether a token belongs to the literal that the one before it begins."""
    signed = before.says("-", "+") and token.type_id == "number"
    return signed or token.type_id == "language" or token.says("^^") or before.says("^^")


def _sort(token: Token) -> str:
    """What sort of thing a token is, of those that a comparison is told by."""
    return {"variable": "variable", "iri": "iri", "name": "iri"}.get(token.type_id, token.text.upper())


def _listed(count: int) -> list[str]:
    """The sorts of the tokens of a list of so many entities after IN."""
    return ["IN", "(", *(["iri", ","] * count)[:-1], ")"]


def _conjuncts(tokens: list[Token]) -> Iterator[list[Token]]:
    """The parts of an expression between its outermost &&, each without brackets around it."""
    tokens = _bare(tokens)
    depth, part = 0, list[Token]()
    alternatives = _has_outermost(tokens, "||")
    for token in () if alternatives else tokens:
        depth += token.says("(") - token.says(")")
        if token.says("&&") and not depth:
            yield from _conjuncts(part)
            part = []
        else:
            part.append(token)
    if alternatives or len(part) == len(tokens):
        yield tokens
    else:
        yield from _conjuncts(part)


def _has_outermost(tokens: list[Token], mark: str) -> bool:
    """Whether a mark stands outside of all brackets."""
    depth = 0
    for token in tokens:
        depth += token.says("(") - token.says(")")
        if token.says(mark) and not depth:
            return True
    return False


def _bare(tokens: list[Token]) -> list[Token]:
    """The tokens without brackets around them all."""
    while tokens and tokens[0].says("("):
        depths = accumulate(token.says("(") - token.says(")") for token in tokens)
        if list(depths).index(0) < len(tokens) - 1:
            break
        tokens = tokens[1:-1]
    return tokens
