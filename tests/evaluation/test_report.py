import re
from pathlib import Path
from typing import Any

import pytest

from halfgraph.errors import FolderError
from halfgraph.evaluation.report import error_tables, markdown, markdown_table, notes, tables, write_report
from halfgraph.evaluation.results import Measured, Row, baseline_remarks, rows_of


def figures(auc: float, mrr: float, questions: int = 100) -> dict[str, Any]:
    """Figures of two structures, the second of which has a hard twin."""
    return {
        "name": "any",
        "auc": {"1-chain": auc, "2-inter": auc + 0.1, "2-inter-hard": auc - 0.1},
        "apr": {"1-chain": auc},
        "macro": {"auc": {"all": auc, "hard": auc - 0.1}, "apr": {"all": auc, "hard": None}, "mrr": mrr, "hits": {}},
        "mrr": {"1p": mrr, "2i": mrr / 2},
        "hits": {"1": {"1p": mrr}, "3": {"1p": mrr}, "10": {"1p": mrr}},
        "by_missing": {"1": {"mrr": {"1p": mrr}, "answers": {"1p": 7}}},
        "easy": {"1p": 0.9},
        "ties": {"1p": 0.0},
        "questions": {"1p": questions, "2i": questions},
        "intervals": {"macro": {"auc": {"all": [auc - 0.02, auc + 0.04]}}},
    }


def three_rows() -> list[Row]:
    return rows_of(
        [
            Measured("popularity", figures(0.6, 0.1, questions=10)),
            Measured("CGA", figures(0.8, 0.3), 0),
            Measured("CGA", figures(0.9, 0.4), 1),
            Measured("GQE", figures(0.7, 0.2), 0),
        ]
    )


def test_runs_of_a_row_are_averaged_and_baselines_come_last() -> None:
    rows = three_rows()
    assert [(row.name, row.seeds) for row in rows] == [("CGA", (0, 1)), ("GQE", (0,)), ("popularity", ())]
    assert rows[0].get("auc", "1-chain") == pytest.approx(0.85)
    assert rows[0].margin("auc", "1-chain") == pytest.approx(0.1 / 2**0.5)
    assert rows[1].margin("macro", "auc", "all") == pytest.approx(0.03)
    assert rows[1].get("macro", "apr", "hard") is None
    assert rows[1].get("auc", "3-chain") is None


def test_the_best_figure_of_a_column_is_bold() -> None:
    auc = next(table for table in tables(three_rows()) if table.title.startswith("ROC AUC"))
    lines = markdown_table(auc).splitlines()
    assert lines[0] == "|  | CGA | GQE | popularity |"
    assert lines[2] == "| 1p | **85.00** | 70.00 | 60.00 |"
    assert lines[4] == "| 2i-hard | **75.00** | 60.00 | 50.00 |"


def test_ties_are_no_merit() -> None:
    ties = next(table for table in tables(three_rows()) if "tie" in table.title)
    assert ties.rows
    assert not ties.best


def test_many_rows_stand_below_one_another() -> None:
    rows = rows_of([Measured(f"row{number}", figures(0.5 + number / 50, 0.1), 0) for number in range(6)])
    auc = next(table for table in tables(rows) if table.title.startswith("ROC AUC"))
    assert list(auc.columns) == ["", "1p", "2i", "2i-hard", "mean"]
    assert len(auc.rows) == 6
    assert set(auc.best) == {(5, column) for column in range(1, 5)}


def test_every_line_of_a_table_has_as_many_cells() -> None:
    text = markdown("Title", three_rows(), ["Lead."])
    assert text.startswith("# Title\n\nLead.\n")
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_notes_say_explain_margins_and_who_had_fewer_questions() -> None:
    said = " ".join(notes(three_rows()))
    assert "popularity on 10 of each at random" in said
    assert "95 % confidence interval" in said
    assert "standard deviation over seeds" in said


def test_a_note_names_where_the_neighbour_vote_is_ahead() -> None:
    measured = [Measured("CGA", figures(0.8, 0.3), 0), Measured("neighbour vote", figures(0.75, 0.35))]
    (said,) = baseline_remarks(rows_of(measured))
    assert said == (
        "The neighbour vote, without training, is better than CGA by MRR on 1p (0.350 against 0.300), "
        "2i (0.175 against 0.150)."
    )
    assert baseline_remarks(rows_of(measured[:1])) == []


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_report(tmp_path / "a" / "b.md", "one")
    write_report(tmp_path / "a" / "b.md", "two")
    assert (tmp_path / "a" / "b.md").read_text() == "two"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.md"]
    for place in (tmp_path / "a" / "b.md" / "c.md", tmp_path / "a"):
        with pytest.raises(FolderError, match="cannot be written"):
            write_report(place, "three")


def test_the_errors_are_listed_by_structure() -> None:
    sure = {"confidence": 0.8, "links": 1200, "right": 0.9, "drawn": 30}
    calibration = {"ece": {"1p": 0.12, "2i": 0.05}, "something_missing": {"ece": {"2i": 0.2}}, "sure_links": sure}
    row = Row("CGA", {"calibration": calibration}, None, (0,), {})
    drawn, held_out, links = error_tables([row, Row("popularity", {}, None, (), {})])
    assert [list(line) for line in drawn.rows] == [["1p", 0.12], ["2i", 0.05]]
    assert [list(line) for line in held_out.rows] == [["2i", 0.2]]
    assert [list(line) for line in links.rows] == [["CGA", 1200, 30, 0.9]]
    assert drawn.columns == held_out.columns == ["", "CGA"]
    calibration["sure_links"] = {"confidence": 0.8, "links": 0.0, "drawn": 0.0}  # means of runs without any
    assert not error_tables([row])[2].rows
    assert not any(table.rows for table in error_tables([Row("popularity", {}, None, (), {})]))
