"""The answer schema: the answers to a query as dataclasses.

The JSON, the OpenAPI description and the page's TypeScript types are made from these classes and those of
explanation_schema.py.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from halfgraph.answering.cells import OPTIONAL, Cell, NamedEntity, percent, shown, to_json
from halfgraph.answering.display import frame_of, text_of
from halfgraph.answering.explanation_schema import Explanation
from halfgraph.answering.markup import paragraphs, table
from halfgraph.errors import QueryError
from halfgraph.prediction.modes import EMBEDDING
from halfgraph.sparql.results import Binding, Term, literal_term, number_term

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS = 100  # known answers in a notebook's table


@dataclass(frozen=True)
class KnownAnswer(NamedEntity):
    """An exact answer with its row; entity, label and type are those of the row's first value."""

    type: str | None
    row: Mapping[str, Cell]
    expected: Mapping[str, float] | None = field(default=None, metadata=OPTIONAL)  # of COUNT and SUM, by their column

    @cached_property
    def json(self) -> str:
        """The answer as JSON; answers of a batch share those of an entity."""
        return json.dumps(to_json(self), ensure_ascii=False)


@dataclass(frozen=True)
class PredictedAnswer(NamedEntity):
    """A predicted answer with its row; entity, label and type are those of the row's first value.

    The confidence is the probability that it is right, only in the mode links.
    """

    type: str | None
    score: float
    confidence: float | None = field(default=None, metadata=OPTIONAL | {"ge": 0, "le": 1})
    row: Mapping[str, Cell] = field(default_factory=dict)
    expected: Mapping[str, float] | None = field(default=None, metadata=OPTIONAL)  # of COUNT and SUM, by their column


@dataclass(frozen=True)
class Truth:
    """The answer to ASK: whether the graph's triples say yes, and the probability of yes."""

    known: bool
    probability: float = field(metadata={"ge": 0, "le": 1})

    @property
    def verdict(self) -> str:
        """Say what the graph's triples answer, and how likely yes is otherwise."""
        return (
            "Yes" if self.known else f"No by the known triples; the probability of yes is {percent(self.probability)}"
        )


@dataclass(frozen=True)
class AnswerTriple:
    """A triple of CONSTRUCT or DESCRIBE; a predicted one has a confidence."""

    subject: Cell
    predicate: Cell
    object: Cell
    known: bool
    confidence: float | None = field(default=None, metadata=OPTIONAL | {"ge": 0, "le": 1})


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
    target: str = ""  # the variable that predicted answers are of, if it is one
    missing_rows: Sequence[PredictedAnswer] | None = field(default=None, metadata=OPTIONAL)  # likely, of an aggregate
    truth: Truth | None = field(default=None, metadata=OPTIONAL)  # of ASK
    triples: Sequence[AnswerTriple] | None = field(default=None, metadata=OPTIONAL)  # of CONSTRUCT and DESCRIBE

    def to_dict(self) -> dict[str, Any]:
        return to_json(self)

    def __len__(self) -> int:
        """The number of rows, known and predicted."""
        return len(self.known) + len(self.predicted)

    def __bool__(self) -> bool:
        return True  # an answer without rows is an answer, too

    def __iter__(self) -> Iterator[KnownAnswer | PredictedAnswer]:
        """Iterate over the known rows, then the predicted ones."""
        return iter([*self.known, *self.predicted])

    def __repr__(self) -> str:
        return text_of(self)

    def to_pandas(self) -> "DataFrame":
        """Return a DataFrame with a row for each answer.

        Each variable has a column with its values and one with their labels; `source` is known or predicted. ASK gives
        one row, and CONSTRUCT and DESCRIBE give a row for each triple.
        """
        return frame_of(self)

    def rows(self, *, annotate: bool = False) -> tuple[list[str], list[Binding]]:
        """Return variables and known rows as in SPARQL's JSON results, without predicted cells.

        `annotate` adds the predicted rows, and the columns ?_score, ?_confidence and ?_source to all.
        """
        known = [_terms(answer.row) for answer in self.known]
        if not annotate:
            return list(self.variables), [*known]
        if taken := {"_score", "_confidence", "_source"} & set(self.variables):
            raise QueryError(f"?{min(taken)} is a column of annotated rows", advice="Rename the variable.")
        rows: list[Binding] = [row | {"_source": literal_term("known")} for row in known]
        rows += [_terms(answer.row) | _annotations(answer) for answer in self.predicted]
        return [*self.variables, "_score", "_confidence", "_source"], rows

    def table(self, most_known: int, short: Callable[[str], str] = str) -> tuple[list[str], list[tuple[str, ...]]]:
        """Return the head and the rows of a table for people: a column for each selected variable.

        Then comes the confidence or score, if there are predictions, and for a single variable type and short name.
        """
        is_single, empty = len(self.variables) == 1 and not self._expected, [""] * bool(self.predicted)
        score = "confidence" if any(one.confidence is not None for one in self.predicted) else "score"
        head = [
            "",
            *(f"?{name}" for name in self.variables),
            *(f"expected ?{name}" for name in self._expected),
            *(score for _ in empty),
            *["type", "name"][: 2 * is_single],
        ]
        rows: list[tuple[str, ...]] = []
        for answer in self.known[:most_known]:
            rows.append(("known", *self._cells(answer), *empty, *_details(answer, short, is_single)))
        for one in self.predicted:
            rows.append(("predicted", *self._cells(one), certainty(one), *_details(one, short, is_single)))
        return head, rows

    @cached_property
    def _expected(self) -> list[str]:
        """The columns that have an expected value."""
        answers: list[KnownAnswer | PredictedAnswer] = [*self.known, *self.predicted]
        named = {name for answer in answers for name in answer.expected or ()}
        return [name for name in self.variables if name in named]

    def _cells(self, answer: KnownAnswer | PredictedAnswer) -> list[str]:
        """The cells of an answer as text, then its expected values."""
        expected = answer.expected or {}
        cells = [shown(answer.row[name]) if name in answer.row else "" for name in self.variables]
        return [*cells, *(f"{expected[name]:,.2f}" if name in expected else "" for name in self._expected)]

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


def _terms(row: Mapping[str, Cell]) -> dict[str, Term]:
    return {name: cell.term() for name, cell in row.items() if cell.confidence is None}


def _annotations(answer: PredictedAnswer) -> dict[str, Term]:
    terms = {"_score": number_term(answer.score), "_source": literal_term("predicted")}
    return terms if answer.confidence is None else terms | {"_confidence": number_term(answer.confidence)}


def certainty(answer: PredictedAnswer) -> str:
    """Return the confidence of an answer as text, or its score if it has none."""
    return f"{answer.score:.3f}" if answer.confidence is None else percent(answer.confidence)
