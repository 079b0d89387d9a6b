"""What the tools for agents return. Each statement and each row says whether it is known or predicted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from halfgraph.answering.cells import OPTIONAL, NamedEntity, to_json
from halfgraph.answering.schema import Truth
from halfgraph.serving.schema import CompletionItem, LiteralValue

MEANING = (
    "known: stated in the graph. predicted: not in the graph; an estimate of the model, and `confidence` is the "
    "probability that it is right. Report a predicted answer as a prediction, with its confidence. What is neither "
    "known nor predicted here may still be true: the graph is incomplete."
)
LONGEST_TEXT = 500  # characters of a label or literal
Status = Literal["known", "predicted"]
T = TypeVar("T", bound="ToolResult")


@dataclass(frozen=True)
class ToolResult:
    """What every result says: what known and predicted mean, and what was left out to keep it short."""

    meaning: str = MEANING
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class SearchResult(ToolResult):
    """Names that match a text. `insert` is how a name is written in a query."""

    matches: Sequence[CompletionItem] = ()


@dataclass(frozen=True)
class StatementItem:
    """A triple of the graph, or one that the model predicts."""

    status: Status
    subject: NamedEntity
    predicate: NamedEntity
    object: NamedEntity
    confidence: float | None = field(default=None, metadata=OPTIONAL)  # of a predicted one


@dataclass(frozen=True)
class DescribedEntity(ToolResult):
    """What is known about an entity, and which further statements about it the model predicts."""

    entity: str = ""
    label: str = ""
    types: Sequence[NamedEntity] = ()
    known_count: int = 0
    known: Sequence[StatementItem] = ()
    literals: Sequence[LiteralValue] = ()
    predicted: Sequence[StatementItem] = ()


@dataclass(frozen=True)
class RowItem:
    """A row of an answer: each variable with an IRI or literal, and its label."""

    status: Status
    row: Mapping[str, NamedEntity]
    confidence: float | None = field(default=None, metadata=OPTIONAL)  # of a predicted one
    score: float | None = field(default=None, metadata=OPTIONAL)  # of a predicted one without a confidence
    expected: Mapping[str, float] | None = field(default=None, metadata=OPTIONAL)  # of COUNT and SUM


@dataclass(frozen=True)
class QueryAnswer(ToolResult):
    """The exact rows of a query, then the predicted ones, the likeliest first.

    ASK has a truth instead, with the probability of yes, and CONSTRUCT and DESCRIBE have triples. An aggregate also has
    the likeliest rows that are missing from what it counts.
    """

    variables: Sequence[str] = ()
    known_count: int = 0
    known: Sequence[RowItem] = ()
    predicted: Sequence[RowItem] = ()
    missing_rows: Sequence[RowItem] | None = field(default=None, metadata=OPTIONAL)
    truth: Truth | None = field(default=None, metadata=OPTIONAL)
    triples: Sequence[StatementItem] | None = field(default=None, metadata=OPTIONAL)
    no_exact_answer_because: Sequence[str] = ()  # the smallest part of the query that has no match


@dataclass(frozen=True)
class EvidenceItem:
    """A triple that an answer needs; one that the query excludes must not hold, and is known or absent."""

    status: Literal["known", "predicted", "absent"]
    subject: NamedEntity
    predicate: NamedEntity
    object: NamedEntity
    confidence: float | None = field(default=None, metadata=OPTIONAL)
    excluded: bool = False


@dataclass(frozen=True)
class AnswerReason(ToolResult):
    """Why an entity is an answer: the triples that this needs, and which of them the graph has."""

    verdict: str = ""
    status: Literal["known", "predicted", "no answer"] = "predicted"
    confidence: float | None = field(default=None, metadata=OPTIONAL)
    variables: Mapping[str, NamedEntity] = field(default_factory=dict)
    triples: Sequence[EvidenceItem] = ()


@dataclass(frozen=True)
class MissingResult(ToolResult):
    """Statements that the graph lacks and the model predicts, the surest first."""

    predicted: Sequence[StatementItem] = ()


def shortened(result: T, characters: int) -> T:
    """Cut the longest list of a result until its JSON has at most this many characters; a note says what was cut."""
    lists: dict[str, Any] = {
        name: list(value) for name, value in vars(result).items() if isinstance(value, list) and name != "notes"
    }
    sizes = {name: len(items) for name, items in lists.items()}
    fits = result
    while _length(fits) > characters and any(map(len, lists.values())):
        longest = max(lists, key=lambda name: _length(lists[name]))
        del lists[longest][len(lists[longest]) // 2 :]
        fits = replace(result, notes=[*result.notes, _cut_note(sizes, lists, characters)], **lists)
    return fits


def _cut_note(sizes: Mapping[str, int], lists: Mapping[str, Sequence[Any]], characters: int) -> str:
    cut = [f"{len(left)} of {sizes[name]} {name}" for name, left in lists.items() if len(left) < sizes[name]]
    return f"Cut to {characters:,} characters: only {', '.join(cut)} are given. Ask for less."


def _length(value: Any) -> int:
    return len(json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":")))


def short_text(text: str) -> str:
    """Cut a long label or literal."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
