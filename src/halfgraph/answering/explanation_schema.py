"""The schema of explanations: how a query was understood, why it is empty, and the witness of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from halfgraph.answering.cells import OPTIONAL, NamedEntity, percent, to_json
from halfgraph.answering.markup import paragraphs, table


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


def status(triple: WitnessTriple) -> str:
    """Say whether a triple is in the graph."""
    if triple.negated:
        return "in the graph, but excluded" if triple.known else "not in the graph, as required"
    confidence = "" if triple.confidence is None else f", confidence {percent(triple.confidence)}"
    return "in the graph" if triple.known else f"missing{confidence}"
