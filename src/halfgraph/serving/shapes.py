"""The shapes of what the API answers, for its description."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    """What every shape is: more fields may come with time."""

    model_config = ConfigDict(extra="allow")


class Wrong(Shape):
    """What is wrong with a request."""

    message: str
    line: int | None = Field(description="Where in the query, from 1.")
    column: int | None
    nearest: list[str] = Field(description="What may have been meant.")
    advice: str | None


class Error(Shape):
    """An error."""

    error: Wrong


class Named(Shape):
    """Something with its IRI and label."""

    entity: str
    label: str


class KnownAnswer(Named):
    """An exact answer, with its whole row."""

    type: str | None = None
    row: dict[str, dict[str, Any]] = Field(default_factory=dict)


class PredictedAnswer(Named):
    """A predicted answer; the confidence is absent where it was not measured."""

    type: str
    score: float
    confidence: float = Field(0.0, ge=0, le=1)


class Asked(Shape):
    """The answers to a question."""

    variables: list[str]
    known: list[KnownAnswer]
    predicted: list[PredictedAnswer]
    explanation: dict[str, Any]
    notes: list[str]
    mode: str
    seconds: float


class Explained(Shape):
    """Why an entity is an answer."""

    answer: dict[str, Any]
    witness: list[dict[str, Any]]
    triples: list[dict[str, Any]]
    notes: list[str]


class Item(Shape):
    """A name, and what to put into a query for it."""

    iri: str
    label: str
    type: str | None
    what: str
    degree: int
    insert: str


class Complete(Shape):
    """Names that begin so."""

    items: list[Item]


class Example(Shape):
    """A question; `missing` where no triple of the served graph answers it."""

    title: str
    query: str
    missing: bool


class Examples(Shape):
    """Questions to begin with."""

    examples: list[Example]


class Neighbours(Shape):
    """The neighbours by one relation: some of them, and how many there are."""

    relation: Named
    others: list[Named]
    count: int


class Entity(Named):
    """What is known of an entity."""

    model_config = ConfigDict(populate_by_name=True)

    type: str
    degree: int
    out: list[Neighbours]
    into: list[Neighbours] = Field(alias="in")
    literals: list[dict[str, str]]


class Info(Shape):
    """What is served."""

    graph: dict[str, Any]
    model: dict[str, Any]
    limits: dict[str, Any]
    versions: dict[str, str]
    prefixes: dict[str, str]


class Health(Shape):
    """Whether there are workers to answer."""

    status: str
    workers: int
    waiting: int
