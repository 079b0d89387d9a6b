"""The command check: tables, JSON and files of findings."""

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
    folder, source = tmp_path_factory.mktemp("checked"), tmp_path_factory.mktemp("source")
    halfgraph.train(people(source, count=120), folder / "run", steps=5, dim=8, heads=2)
    return folder


def test_tables_have_the_first_findings_of_each_check(run: Run) -> None:
    outcome = run("check", "run", "--limit", "30")
    assert outcome.code == 0
    assert "Unlikely triples: each scored without itself (the first 30)" in outcome.out
    assert "Types that are rare for the relation (0)" in outcome.out
    assert "... and 10 more; --out FILE or --json gives them all" in outcome.err


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_file_has_the_findings_of_json(run: Run, suffix: str) -> None:
    found = json.loads(run("check", "run", "--limit", "5", "--json").out)
    outcome = run("check", "run", "--limit", "5", "--out", f"findings{suffix}")
    text = Path(f"findings{suffix}").read_text(encoding="utf-8")
    every = [one for own in found.values() for one in own]
    assert f"{len(every)} findings written to findings{suffix}" in outcome.err
    if suffix == ".csv":
        table = csv.DictReader(io.StringIO(text))
        rows = [(row["check"], row["subject"], row["score"], row["reason"]) for row in table]
        assert rows == [(one["check"], one["subject"]["entity"], str(one["score"]), one["reason"]) for one in every]
    else:
        assert [json.loads(line) for line in text.splitlines()] == every


def test_an_unknown_suffix_is_refused(run: Run) -> None:
    refused(run("check", "run", "--out", "findings.ttl"), "Name the file with one of .csv, .jsonl.")
