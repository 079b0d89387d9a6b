"""Answers in Python: their length, order, text and DataFrame."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfgraph.answering.cells import Cell
from halfgraph.answering.display import LONGEST, MOST_LINES
from halfgraph.answering.schema import Answers, AnswerTriple, KnownAnswer, PredictedAnswer, Truth
from halfgraph.errors import MissingPackage

VARIABLES = ("x", "y")
CELLS = st.builds(lambda text: Cell("uri", f"http://a/{text}", text), st.text(max_size=90))
ROWS = st.dictionaries(st.sampled_from(VARIABLES), CELLS)
KNOWN = st.lists(st.builds(lambda row: KnownAnswer("e", "l", None, row), ROWS), max_size=12)
PREDICTED = st.lists(
    st.builds(lambda row, score: PredictedAnswer("e", "l", None, score, score, row), ROWS, st.floats(0, 1)), max_size=12
)


@given(KNOWN, PREDICTED)
def test_all_rows_are_counted_and_known_ones_come_first(
    known: list[KnownAnswer], predicted: list[PredictedAnswer]
) -> None:
    answers = Answers(VARIABLES, known, predicted)
    assert list(answers) == [*known, *predicted]
    assert len(answers) == len(known) + len(predicted)
    assert answers


@given(KNOWN, PREDICTED)
def test_the_text_has_a_few_short_lines(known: list[KnownAnswer], predicted: list[PredictedAnswer]) -> None:
    lines = repr(Answers(VARIABLES, known, predicted)).split("\n")
    assert lines[0] == f"Answers: {len(known)} known, {len(predicted)} predicted"
    assert len(lines) <= 1 + 2 * (MOST_LINES + 1)
    assert sum("known  " in line for line in lines[1:]) >= min(len(known), MOST_LINES)
    assert ("... and" in repr(lines)) == (max(len(known), len(predicted)) > MOST_LINES)
    assert max(map(len, lines)) <= 10 * LONGEST + 40  # a character may be shown by its escape


def test_the_text_shows_labels_and_confidence() -> None:
    row = {"x": Cell("uri", "http://a/ada", "Ada"), "y": Cell("literal", "36", "36")}
    answers = Answers(VARIABLES, [KnownAnswer("", "", None, row)], [PredictedAnswer("", "", None, 0.5, 0.5, row)])
    assert repr(answers) == "Answers: 1 known, 1 predicted\n  known      Ada, 36\n  predicted  Ada, 36  50%"


@given(KNOWN, PREDICTED)
def test_a_frame_has_a_row_for_each_answer(known: list[KnownAnswer], predicted: list[PredictedAnswer]) -> None:
    frame = Answers(VARIABLES, known, predicted).to_pandas()
    assert list(frame.columns) == ["x", "x_label", "y", "y_label", "source", "confidence", "score"]
    assert list(frame["source"]) == ["known"] * len(known) + ["predicted"] * len(predicted)
    assert list(frame["score"][len(known) :]) == [one.score for one in predicted]
    expected = [answer.row["x"].label if "x" in answer.row else None for answer in (*known, *predicted)]
    assert [None if value != value else value for value in frame["x_label"]] == expected


def test_other_forms_have_a_text_and_a_frame() -> None:
    answers = Answers([], [], [], truth=Truth(False, 0.25))
    assert repr(answers) == "Answers: No by the known triples; the probability of yes is 25%"
    assert answers.to_pandas().to_dict("records") == [{"known": False, "probability": 0.25}]
    cell = Cell("uri", "http://a", "a")
    triples: Sequence[AnswerTriple] = [AnswerTriple(cell, cell, cell, True), AnswerTriple(cell, cell, cell, False, 0.5)]
    answers = Answers([], [], [], triples=triples)
    assert repr(answers) == "Answers: 1 known and 1 predicted triples"
    assert list(answers.to_pandas()["source"]) == ["known", "predicted"]


def test_without_pandas_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    nothing: Any = Answers(VARIABLES, [], [])
    with pytest.raises(MissingPackage, match="pip install pandas"):
        nothing.to_pandas()
