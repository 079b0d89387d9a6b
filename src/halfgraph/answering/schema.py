"""The answer schema: answers, explanations and witnesses as dataclasses.

The JSON, the OpenAPI description and the page's TypeScript types are made from these classes. In a field's metadata,
`alias` is its key in JSON, and a field that is `optional` has no key if it is None.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from typing import Any, Literal

from halfgraph.answering.markup import paragraphs, table
from halfgraph.errors import QueryError
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.sparql.results import Binding, Term, entity_term, literal_term, number_term

OPTIONAL = {"optional": True}
MOST_ROWS = 100  # known answers in a notebook's table


@cache
def json_keys(schema: type) -> list[tuple[str, str, bool]]:
    """The fields of a schema class: name, key in JSON, and whether a None is left out."""
    return [
        (one.name, one.metadata.get("alias", one.name), one.metadata.get("optional", False)) for one in fields(schema)
    ]


def to_json(value: Any) -> Any:
    """Return a value of the schema as what the json module can write."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((key, getattr(value, name), optional) for name, key, optional in json_keys(type(value)))
        return {key: to_json(item) for key, item, optional in pairs if item is not None or not optional}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Cell:
    """One value of a row: an IRI, a literal or a blank node."""

    type: Literal["uri", "literal", "bnode"]
    value: str
    label: str
    datatype: str | None = field(default=None, metadata=OPTIONAL)
    language: str | None = field(default=None, metadata=OPTIONAL)

    def term(self) -> Term:
        """Return the value as in SPARQL's JSON results."""
        is_literal = self.type == "literal"
        return literal_term(self.value, self.language, self.datatype) if is_literal else entity_term(self.value)


@dataclass(frozen=True)
class NamedEntity:
    """An entity, relation or type: its IRI and label."""

    entity: str
    label: str


@dataclass(frozen=True)
class KnownAnswer(NamedEntity):
    """An exact answer with its row; entity, label and type are those of the row's first value."""

    type: str | None
    row: Mapping[str, Cell]

    @cached_property
    def json(self) -> str:
        """The answer as JSON; answers of a batch share those of an entity."""
        return json.dumps(to_json(self), ensure_ascii=False)


@dataclass(frozen=True)
class PredictedAnswer(NamedEntity):
    """A predicted answer. The confidence is the probability that it is right, only in the mode links."""

    type: str
    score: float
    confidence: float | None = field(default=None, metadata=OPTIONAL | {"ge": 0, "le": 1})


@dataclass(frozen=True)
class LikelyEntity(NamedEntity):
    """An entity that a variable may stand for."""

    score: float


@dataclass(frozen=True)
class QueryNode:
    """A known entity or a variable of the query."""

    id: int
    role: Literal["anchor", "variable", "target"]
    name: str
    entity: str | None
    type: str | None
    likely: Sequence[LikelyEntity] = ()


@dataclass(frozen=True)
class QueryEdge:
    """A triple pattern in the direction of the walk to the target; `inverse` if the triples point the other way."""

    source: int = field(metadata={"alias": "from"})
    target: int = field(metadata={"alias": "to"})
    relation: str
    label: str
    inverse: bool
    attention: float | None = None  # share among the paths that meet, averaged over the heads
    heads: Sequence[float] | None = None
    negated: bool = False
    alternative: bool = False


@dataclass(frozen=True)
class RelaxedQuery:
    """The query without a part of it: its text, the number of its answers and the first few of them."""

    query: str
    count: int
    some: Sequence[NamedEntity]


@dataclass(frozen=True)
class EmptyReason:
    """Why a query has no exact answer: its smallest part without an answer."""

    part: Sequence[str]
    query: str
    without: RelaxedQuery | None


@dataclass(frozen=True)
class Explanation:
    """The query as it was understood, and why it has no exact answer."""

    nodes: Sequence[QueryNode] = ()
    edges: Sequence[QueryEdge] = ()
    empty: EmptyReason | None = None
    conditions: Sequence[str] = ()  # that nodes and edges do not show, as SPARQL


@dataclass(frozen=True)
class Answers:
    """All exact answers, then the predicted ones."""

    variables: Sequence[str]
    known: Sequence[KnownAnswer]
    predicted: Sequence[PredictedAnswer]
    explanation: Explanation = field(default_factory=Explanation)
    notes: Sequence[str] = ()
    mode: str = EMBEDDING
    seconds: float = 0.0
    target: str = ""  # the variable that predicted answers are of

    def to_dict(self) -> dict[str, Any]:
        return to_json(self)

    def rows(self, *, annotate: bool = False) -> tuple[list[str], list[Binding]]:
        """Return variables and known rows as in SPARQL's JSON results.

        `annotate` adds the predicted rows, and the columns ?_score, ?_confidence and ?_source to all.
        """
        known = [{name: cell.term() for name, cell in answer.row.items()} for answer in self.known]
        if not annotate:
            return list(self.variables), [*known]
        if taken := {"_score", "_confidence", "_source"} & set(self.variables):
            raise QueryError(f"?{min(taken)} is a column of annotated rows", advice="Rename the variable.")
        rows: list[Binding] = [row | {"_source": literal_term("known")} for row in known]
        rows += [{self.target: entity_term(answer.entity)} | _annotations(answer) for answer in self.predicted]
        return [*self.variables, "_score", "_confidence", "_source"], rows

    def table(self, most_known: int, short: Callable[[str], str] = str) -> tuple[list[str], list[tuple[str, ...]]]:
        """Return the head and the rows of a table for people: a column for each selected variable.

        Then comes the confidence or score, if there are predictions, and for a single variable type and short name.
        """
        is_single, empty = len(self.variables) == 1, [""] * bool(self.predicted)
        score = "confidence" if any(one.confidence is not None for one in self.predicted) else "score"
        head = [
            "",
            *(f"?{name}" for name in self.variables),
            *(score for _ in empty),
            *["type", "name"][: 2 * is_single],
        ]
        rows: list[tuple[str, ...]] = []
        for answer in self.known[:most_known]:
            cells = [answer.row[name].label if name in answer.row else "" for name in self.variables]
            rows.append(("known", *cells, *empty, *_details(answer, short, is_single)))
        for one in self.predicted:
            cells = [one.label if name == self.target else "" for name in self.variables]
            rows.append(("predicted", *cells, certainty(one), *_details(one, short, is_single)))
        return head, rows

    def _repr_html_(self) -> str:
        hidden = len(self.known) - MOST_ROWS
        more = [f"{hidden:,} more known answers"] if hidden > 0 else []
        return table(*self.table(MOST_ROWS)) + paragraphs([*more, *self.notes])


def _details(answer: KnownAnswer | PredictedAnswer, short: Callable[[str], str], is_single: bool) -> tuple[str, ...]:
    """The type and name of an answer; a literal has no name beside its value."""
    if not is_single:
        return ()
    is_literal = isinstance(answer, KnownAnswer) and any(cell.type == "literal" for cell in answer.row.values())
    return answer.type or "", "" if is_literal or not answer.entity else short(answer.entity)


def _annotations(answer: PredictedAnswer) -> dict[str, Term]:
    terms = {"_score": number_term(answer.score), "_source": literal_term("predicted")}
    return terms if answer.confidence is None else terms | {"_confidence": number_term(answer.confidence)}


@dataclass(frozen=True)
class ExplainedAnswer(NamedEntity):
    """The answer that a witness explains."""

    type: str | None
    known: bool
    score: float | None
    confidence: float | None = field(default=None, metadata=OPTIONAL | {"ge": 0, "le": 1})
    against: str | None = field(default=None, metadata=OPTIONAL)  # why the entity is no answer

    @property
    def verdict(self) -> str:
        """Say whether the entity is an answer, and why not."""
        if self.known or self.against is not None:
            return f"{self.label} is {'known' if self.known else f'not an answer: {self.against}'}"
        confidence = "" if self.confidence is None else f", confidence {percent(self.confidence)}"
        return f"{self.label} is predicted{confidence}"


@dataclass(frozen=True)
class VariableBinding:
    """The entity that stands for a variable in a witness."""

    variable: str
    entity: str
    label: str
    type: str | None


@dataclass(frozen=True)
class WitnessTriple:
    """A triple of a witness; the confidence of a missing one is null if the run has no link models."""

    subject: NamedEntity
    predicate: NamedEntity
    object: NamedEntity
    known: bool
    confidence: float | None = None
    negated: bool = False


@dataclass(frozen=True)
class Witness:
    """Why an entity is an answer: an entity for each variable, and the triples that this needs."""

    answer: ExplainedAnswer
    witness: Sequence[VariableBinding]
    triples: Sequence[WitnessTriple]
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        return to_json(self)

    def _repr_html_(self) -> str:
        rows = [(status(one), one.subject.label, one.predicate.label, one.object.label) for one in self.triples]
        return table(("", "subject", "relation", "object"), rows) + paragraphs([self.answer.verdict, *self.notes])


def percent(confidence: float) -> str:
    """Return a confidence as a person reads it: whole percents, but never 0 or 100 for what is uncertain."""
    return "< 1%" if confidence < 0.01 else "> 99%" if confidence > 0.99 else f"{confidence:.0%}"


def certainty(answer: PredictedAnswer) -> str:
    """Return the confidence of an answer as text, or its score if it has none."""
    return f"{answer.score:.3f}" if answer.confidence is None else percent(answer.confidence)


def status(triple: WitnessTriple) -> str:
    """Say whether a triple is in the graph."""
    if triple.negated:
        return "in the graph, but excluded" if triple.known else "not in the graph, as required"
    confidence = "" if triple.confidence is None else f", confidence {percent(triple.confidence)}"
    return "in the graph" if triple.known else f"missing{confidence}"
