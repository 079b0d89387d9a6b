"""The command complete: missing triples of the whole graph, in a file or a table, with measured precision."""

import csv
import io
import json
from pathlib import Path

import pytest

import halfgraph
from command_line import Run, refused
from small_runs import people


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, source = tmp_path_factory.mktemp("completed"), tmp_path_factory.mktemp("source")
    halfgraph.train(people(source, count=120), folder / "run", steps=5, dim=8, heads=2)
    return folder


def test_a_table_has_the_surest_triples_with_reasons_and_measured_precision(run: Run) -> None:
    outcome = run("complete", "run", "--min-confidence", "0.01", "--limit", "30", "--view", "train")
    assert outcome.code == 0
    assert outcome.out.startswith("The 30 surest missing triples")
    assert "because" in outcome.out
    assert "Precision by confidence, measured on held-out triples" in outcome.out
    assert "... and 10 more" in outcome.err


def test_json_has_triples_best_first_of_the_numbers_that_ask_gives(run: Run) -> None:
    found = json.loads(run("complete", "run", "--min-confidence", "0.05", "--json", "--view", "train").out)
    confidences = [row["confidence"] for row in found["triples"]]
    assert confidences == sorted(confidences, reverse=True)
    engine = halfgraph.load("run", view="train")
    for row in found["triples"][:5]:
        answers = engine.ask(f"SELECT ?x {{ <{row['subject']['entity']}> <{row['predicate']['entity']}> ?x }}", top=200)
        same = [one.confidence for one in answers.predicted if one.entity == row["object"]["entity"]]
        assert same == [row["confidence"]]
    assert {"from", "to", "links", "right", "drawn"} == set(found["precision"][0])
    assert (found["pairs"], found["left_out"]) == (144 * 6, 0)


def test_a_relation_and_a_type_restrict_the_triples(run: Run) -> None:
    chosen = (
        "--relation",
        "lives in",
        "--type",
        "person",
        "--view",
        "train",
        "--min-confidence",
        "0.001",
        "--out",
        "missing.csv",
    )
    refused(run("complete", "run", *chosen), "no relation lives in", "Did you mean :livesIn")
    outcome = run("complete", "run", "--relation", "livesIn", *chosen[2:])
    assert outcome.err.splitlines()[-1].endswith("missing triples written to missing.csv")
    rows = list(csv.DictReader(io.StringIO(Path("missing.csv").read_text(encoding="utf-8"))))
    assert {row["predicate_label"] for row in rows} == {"livesIn"}
    assert {row["subject_label"].rstrip("0123456789") for row in rows} == {"person"}
    assert f"{len(rows):,} missing" in outcome.err


def test_the_surest_may_not_be_sure_enough(run: Run) -> None:
    outcome = run("complete", "run", "--min-confidence", "1")
    assert outcome.out == "0 missing triples\n"
    assert "No missing triple has a confidence of 100% or more. Pass a lower --min-confidence." in outcome.err


def test_what_cannot_be_done_is_refused(run: Run) -> None:
    refused(run("complete", "run", "--out", "missing.txt"), '--out: missing.txt has ".txt", which names no format')
    refused(run("complete", "run", "--min-confidence", "2"), "--min-confidence: must be between 0 and 1, found 2")
    refused(run("complete", "run", "--type", "persn"), "no type persn", "Did you mean :person")
