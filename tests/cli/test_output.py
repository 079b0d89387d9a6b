"""Tables and notes: no table without rows, and on a terminal no line beyond its width."""

import json
import sys

import pytest

from halfgraph.cli.output import note, print_json, print_table

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


HOSTILE = "<script>alert(1)</script> \x1b]0;title\x07\x1b[31mred \x9b2J \u202eright \u2066 \r\b\x00 \ufeff end"
OBEYED = ["\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\r", "\b", "\x00", "\ufeff"]


def test_hostile_labels_are_shown_as_escapes(capsys: Captured) -> None:
    print_table(HOSTILE, [HOSTILE], [(HOSTILE,)])
    note(HOSTILE)
    shown = capsys.readouterr()
    for text in shown:
        assert not [sign for sign in OBEYED if sign in text]
        assert "<script>" in text
        assert all(escape in "".join(text.split()) for escape in ("\\x1b[31mred", "\\u202eright", "\\x9b2J"))


def test_long_labels_are_cut(capsys: Captured) -> None:
    print_table("x" * 1_000_000, ["y" * 1_000_000], [("z" * 1_000_000,)])
    note("n" * 1_000_000)
    shown = capsys.readouterr()
    assert len(shown.out) < 10_000
    assert len(shown.err) < 5_000


@pytest.mark.parametrize("text", [HOSTILE, "x" * 1_000_000, "\ud800", "ünïcode 😀 العربية"])
def test_json_is_exact_and_harmless(capsys: Captured, text: str) -> None:
    print_json({"label": text})
    out = capsys.readouterr().out
    assert json.loads(out) == {"label": text}
    assert not [sign for sign in OBEYED if sign in out]


def test_ordinary_text_stays_as_it_is(capsys: Captured) -> None:
    note("Ünïcode 😀 العربية 日本語 é\u200c\u200d")
    assert capsys.readouterr().err == "Ünïcode 😀 العربية 日本語 é\u200c\u200d\n"
