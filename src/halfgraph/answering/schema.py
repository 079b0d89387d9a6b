"""What comes back from asking: answers, an explanation, a witness; as data, as JSON and as a page in a notebook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from typing import Any

RENAMED = {"source": "from", "target": "to"}  # of edges; `from` is no name in Python
DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
ABSENT = ("confidence", "datatype", "language")  # left out where there is none, not invented


def plain(value: Any) -> Any:
    """A value as what JSON can hold; an absent confidence has no key."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((one.name, getattr(value, one.name)) for one in fields(value))
        names = RENAMED if isinstance(value, Edge) else {}
        return {names.get(name, name): plain(one) for name, one in pairs if one is not None or name not in ABSENT}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Cell:
    """One value of a row: an IRI, a literal or a blank node."""

    type: str  # as in W3C's results: uri, literal, bnode
    value: str
    label: str
    datatype: str | None = None
    language: str | None = None

    def term(self) -> dict[str, str]:
        """The value as W3C's JSON has it."""
        if self.type != "literal":
            return _named(self.value)
        more = {"datatype": self.datatype, "xml:lang": self.language}
        return {"type": "literal", "value": self.value} | {key: text for key, text in more.items() if text is not None}


def _named(iri: str) -> dict[str, str]:
    """An entity as W3C's JSON has it."""
    blank = iri.startswith("_:")
    return {"type": "bnode" if blank else "uri", "value": iri.removeprefix("_:")}


def _noted(source: str, score: float | None, confidence: float | None) -> dict[str, dict[str, str]]:
    """What is noted beside an answer, as W3C's JSON has it."""
    numbers = {"_score": score, "_confidence": confidence}
    noted = {
        name: {"type": "literal", "value": repr(number), "datatype": DOUBLE}
        for name, number in numbers.items()
        if number is not None
    }
    return noted | {"_source": {"type": "literal", "value": source}}


@dataclass(frozen=True)
class Known:
    """An exact answer: the row that the store gives; entity, label and type are those of its first value."""

    entity: str
    label: str
    type: str | None
    row: Mapping[str, Cell]


@dataclass(frozen=True)
class Predicted:
    """A predicted answer; `confidence` is about how many of such answers are right, where that was measured."""

    entity: str
    label: str
    type: str
    score: float
    confidence: float | None = None


@dataclass(frozen=True)
class Likely:
    """An entity that a variable may be."""

    entity: str
    label: str
    score: float


@dataclass(frozen=True)
class Node:
    """A known entity or a variable of the query."""

    id: int
    role: str  # anchor, variable, target
    name: str
    entity: str | None
    type: str | None
    likely: Sequence[Likely] = ()


@dataclass(frozen=True)
class Edge:
    """A triple pattern, in the direction in which the query is walked; `inverse` where the triples go the other way."""

    source: int
    target: int
    relation: str
    label: str
    inverse: bool
    attention: float | None = None  # the share among the paths that meet, over all heads
    heads: Sequence[float] | None = None
    negated: bool = False
    alternative: bool = False


@dataclass(frozen=True)
class Found:
    """An entity by its name and label."""

    entity: str
    label: str


@dataclass(frozen=True)
class Without:
    """What a query without a part of it returns."""

    query: str
    count: int
    some: Sequence[Found]


@dataclass(frozen=True)
class Empty:
    """Why a query has no exact answer: the smallest part of it that has none."""

    part: Sequence[str]
    query: str
    without: Without | None


@dataclass(frozen=True)
class Explanation:
    """The query as it was understood, and why it has no exact answer where it has none."""

    nodes: Sequence[Node] = ()
    edges: Sequence[Edge] = ()
    empty: Empty | None = None


@dataclass(frozen=True)
class Answers:
    """All exact answers, then the likely ones, and what is to be said about them."""

    variables: Sequence[str]
    known: Sequence[Known]
    predicted: Sequence[Predicted]
    explanation: Explanation = field(default_factory=Explanation)
    notes: Sequence[str] = ()
    mode: str = "vector"
    seconds: float = 0.0
    target: str = ""  # the variable that predicted answers are of; the first if not said

    def to_dict(self) -> dict[str, Any]:
        """The answers, ready for JSON."""
        found: dict[str, Any] = plain(self)
        return found

    def rows(self, *, annotate: bool = False) -> tuple[list[str], list[dict[str, dict[str, str]]]]:
        """The variables and the rows as W3C's JSON has them, known ones first; annotated with ?_score and the like."""
        known = [({name: cell.term() for name, cell in one.row.items()}, "known", None, None) for one in self.known]
        target = self.target or next(iter(self.variables), "")
        predicted = [({target: _named(one.entity)}, "predicted", one.score, one.confidence) for one in self.predicted]
        if not annotate:
            return list(self.variables), [row for row, *_ in (*known, *predicted)]
        rows = [row | _noted(source, score, confidence) for row, source, score, confidence in (*known, *predicted)]
        return [*self.variables, "_score", "_confidence", "_source"], rows

    def _repr_html_(self) -> str:
        """The answers as a table in a notebook, known ones first."""
        rows = [("known", one.label, one.type or "", "", one.entity) for one in self.known[:100]]
        rows += [("predicted", one.label, one.type, measure(one), one.entity) for one in self.predicted]
        more = [f"{len(self.known) - 100:,} more known answers"] if len(self.known) > 100 else []
        return table(("", "answer", "type", "how sure", "name"), rows) + paragraphs([*more, *self.notes])


@dataclass(frozen=True)
class Answer:
    """The answer that a witness is for."""

    entity: str
    label: str
    type: str | None
    known: bool
    score: float | None
    confidence: float | None = None


@dataclass(frozen=True)
class Standing:
    """What stands for a variable in a witness."""

    variable: str
    entity: str
    label: str
    type: str | None


@dataclass(frozen=True)
class Stated:
    """A triple of a witness; a missing one has the confidence that it holds, where that was measured."""

    subject: Found
    predicate: Found
    object: Found
    known: bool
    confidence: float | None = None
    negated: bool = False


@dataclass(frozen=True)
class Witness:
    """Why an entity is an answer: an entity for each variable, and the triples that this takes."""

    answer: Answer
    witness: Sequence[Standing]
    triples: Sequence[Stated]
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """The witness, ready for JSON."""
        found: dict[str, Any] = plain(self)
        for triple, stated in zip(found["triples"], self.triples, strict=True):
            triple["confidence"] = stated.confidence  # null where it was not measured
        return found

    def _repr_html_(self) -> str:
        """The triples as a table in a notebook."""
        rows = [(said(one), one.subject.label, one.predicate.label, one.object.label) for one in self.triples]
        return table(("", "subject", "relation", "object"), rows) + paragraphs(self.notes)


def measure(answer: Predicted) -> str:
    """How sure an answer is: its confidence, or else its score."""
    return f"{answer.score:.3f}" if answer.confidence is None else f"{answer.confidence:.0%}"


def said(triple: Stated) -> str:
    """Whether a triple is in the graph, in a word or two."""
    if triple.negated:
        return "in the graph, and should not be" if triple.known else "not in the graph, as asked"
    sure = "" if triple.confidence is None else f", {triple.confidence:.0%} sure"
    return "in the graph" if triple.known else f"missing{sure}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table of HTML."""
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def paragraphs(texts: Sequence[str]) -> str:
    """Texts as HTML."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts)
