"""The schema of the JSON API beside the answers: requests and what /api returns."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from halfgraph.answering.cells import NamedEntity
from halfgraph.errors import SettingError


@dataclass(frozen=True)
class Limits:
    """What a server allows; a request beyond it is cut or refused."""

    time: float = 30.0  # seconds for a query
    rows: int = 10_000  # of an answer, or triples
    answer: int = 50  # megabytes of an answer
    body: int = 1_000_000  # bytes of a request
    query: int = 500_000  # characters of a query; the SPARQL reader takes no more
    top: int = 1_000  # predicted answers
    memory: int = 2_000  # megabytes for a query
    workers: int = 2  # queries at the same time
    queue: int = 256  # queries of one client that wait

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = 0 if name == "queue" else 1e-3 if name == "time" else 1
            if not value >= least:
                raise SettingError(f"--{name}", f"must be at least {least:g}, found {value}")


@dataclass(frozen=True)
class CompletionItem:
    """A name, and what to insert into a query for it; `degree` counts triples, and of a type its entities."""

    iri: str
    label: str
    type: str | None
    what: Literal["entity", "relation", "type"]
    degree: int
    insert: str


@dataclass(frozen=True)
class Completions:
    """Names that start with a text, or nearly so."""

    items: Sequence[CompletionItem]


@dataclass(frozen=True)
class Example:
    """An example query; `missing` if the served triples lack one of its answers."""

    title: str
    query: str
    missing: bool


@dataclass(frozen=True)
class ExampleList:
    """Example queries."""

    examples: Sequence[Example]


@dataclass(frozen=True)
class RelatedEntities:
    """The neighbours of an entity by one relation: the first few, and their number."""

    relation: NamedEntity
    others: Sequence[NamedEntity]
    count: int


@dataclass(frozen=True)
class LiteralValue:
    """A literal of an entity."""

    relation: str
    value: str


@dataclass(frozen=True)
class EntityPage(NamedEntity):
    """What the graph knows about an entity."""

    type: str
    degree: int
    out: Sequence[RelatedEntities]
    incoming: Sequence[RelatedEntities] = field(metadata={"alias": "in"})
    literals: Sequence[LiteralValue]


@dataclass(frozen=True)
class Info:
    """What is served: the graph, the model, its prediction modes (the default first), limits and versions."""

    graph: Mapping[str, Any]
    model: Mapping[str, Any]
    modes: Sequence[str]
    limits: Limits
    versions: Mapping[str, str]
    prefixes: Mapping[str, str]


@dataclass(frozen=True)
class Health:
    """How many workers are ready to answer, and how many queries wait for one."""

    status: Literal["ready"]
    workers: int
    waiting: int


@dataclass(frozen=True)
class Alive:
    """The server answers requests; /api/health says whether it can answer queries."""

    status: Literal["alive"] = "alive"


@dataclass(frozen=True)
class Fault:
    """What is wrong with a request: where in the query (from 1), names that may have been meant, and what to do."""

    message: str
    line: int | None
    column: int | None
    nearest: Sequence[str]
    advice: str | None


@dataclass(frozen=True)
class ErrorBody:
    """The body of every error."""

    error: Fault
