"""Tables and notes: no table without rows, and on a terminal no line beyond its width."""

import sys

import pytest

from halfgraph.cli.output import note, print_table

LONG = "Without this the query has 1,377 answers: " + ", ".join(["Luke Walker", "Hank Aaron", "Babe Ruth"] * 4)


Captured = pytest.CaptureFixture[str]


def make_stderr_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_a_table_without_rows_is_only_its_title(capsys: Captured) -> None:
    print_table("0 known, 0 predicted", ["", "answer", "score"], [])
    assert capsys.readouterr().out == "0 known, 0 predicted\n"


def test_numbers_are_right_aligned_and_names_shown_as_they_are(capsys: Captured) -> None:
    print_table("Types", ["entities", ""], [(12345, "[bold]"), (1, ":smile:")])
    assert capsys.readouterr().out.splitlines()[2:] == ["  12,345  [bold] ", "       1  :smile:"]


def test_a_long_note_is_broken_between_words_on_a_terminal(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    make_stderr_a_terminal(monkeypatch)
    note(f"first\n{LONG}")
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "first"
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == LONG


def test_a_drawing_keeps_its_indentation_and_long_iris_stay_whole(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stderr_a_terminal(monkeypatch)
    iri = "http://example.org/" + "a-b/" * 30
    note(f"│  └─ season of ← ?team  (likely Atlanta, {iri})")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "│  └─ season of ← ?team  (likely Atlanta,"
    assert second == " " * 10 + iri + ")"


def test_a_note_is_one_line_for_a_program(capsys: Captured) -> None:
    note(LONG)
    assert capsys.readouterr().err == LONG + "\n"
