"""Answers in Python: a few lines of text, and a DataFrame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from halfgraph.answering.cells import Cell, percent
from halfgraph.errors import MissingPackage, printable

if TYPE_CHECKING:
    from pandas import DataFrame

    from halfgraph.answering.schema import Answers, AnswerTriple, KnownAnswer, PredictedAnswer

MOST_LINES = 5  # known rows, and predicted ones
LONGEST = 60  # characters of a row


def text_of(answers: "Answers") -> str:
    """Return the number of answers, and the first few of them."""
    if answers.truth is not None:
        return f"Answers: {answers.truth.verdict}"
    if answers.triples is not None:
        known = sum(triple.known for triple in answers.triples)
        return f"Answers: {known:,} known and {len(answers.triples) - known:,} predicted triples"
    head = f"Answers: {len(answers.known):,} known, {len(answers.predicted):,} predicted"
    return "\n".join([head, *_lines("known", answers.known), *_lines("predicted", answers.predicted)])


def _lines(source: str, answers: "Sequence[KnownAnswer | PredictedAnswer]") -> list[str]:
    lines = [f"  {source:9}  {_row(answer)}" for answer in answers[:MOST_LINES]]
    more = len(answers) - len(lines)
    return [*lines, f"  ... and {more:,} more {source}"] if more else lines


def _row(answer: "KnownAnswer | PredictedAnswer") -> str:
    labels = printable(", ".join(cell.label for cell in answer.row.values()), LONGEST)
    confidence = getattr(answer, "confidence", None)
    return labels if confidence is None else f"{labels}  {percent(confidence)}"


def frame_of(answers: "Answers") -> "DataFrame":
    """Return a DataFrame with a row for each answer."""
    try:
        from pandas import DataFrame
    except ImportError as error:
        command = "pip install pandas"
        raise MissingPackage(package="pandas", needed_for="to_pandas", command=command) from error
    if answers.truth is not None:
        return DataFrame([{"known": answers.truth.known, "probability": answers.truth.probability}])
    if answers.triples is not None:
        return DataFrame([_triple(one) for one in answers.triples], columns=TRIPLE_COLUMNS)
    names = [column for name in answers.variables for column in (name, f"{name}_label")]
    rows = [_values(answers.variables, answer.row) | _certainty(answer) for answer in answers]
    return DataFrame(rows, columns=[*names, "source", "confidence", "score"])


TRIPLE_COLUMNS = ["subject", "predicate", "object", "source", "confidence"]


def _triple(one: "AnswerTriple") -> dict[str, Any]:
    ends = {"subject": one.subject.value, "predicate": one.predicate.value, "object": one.object.value}
    return {**ends, "source": "known" if one.known else "predicted", "confidence": one.confidence}


def _values(variables: Sequence[str], row: Any) -> dict[str, Any]:
    cells: dict[str, Cell] = {name: row[name] for name in variables if name in row}
    values = {name: cell.value for name, cell in cells.items()}
    return values | {f"{name}_label": cell.label for name, cell in cells.items()}


def _certainty(answer: "KnownAnswer | PredictedAnswer") -> dict[str, Any]:
    score = getattr(answer, "score", None)
    source = "known" if score is None else "predicted"
    return {"source": source, "confidence": getattr(answer, "confidence", None), "score": score}
