import json
import os
import pickle
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import Run, command, refused
from halfgraph.graph.folder import Graph
from halfgraph.workload.folder import Workload
from imported_graphs import tsv
from query_files import published, read_json_lines, some_queries, write_lines

FEW = ("--two-edges", "40", "--three-edges", "40", "--valid", "4", "--test", "6", "--neighbourhoods", "5")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a split graph, one without a split, one of two triples, and a workload."""
    folder = tmp_path_factory.mktemp("made")
    rng = random.Random(0)
    triples = {(f"e{rng.randrange(30)}", f"r{rng.randrange(4)}", f"e{rng.randrange(30)}") for _ in range(260)}
    (folder / "t.tsv").write_text(tsv(sorted(triples)))
    (folder / "two.tsv").write_text("a\tr\tb\na\ts\tc\n")
    for name, source, more in (("g", "t", ["--split", "70/12/18"]), ("whole", "t", []), ("two", "two", [])):
        command(["import", str(folder / f"{source}.tsv"), "--quiet", "--out", str(folder / name), *more])
    command(["sample", str(folder / "g"), "--quiet", "--out", str(folder / "w"), *FEW])
    return folder


def test_a_sample_shows_its_questions_and_what_was_rejected(run: Run) -> None:
    outcome = run("sample", "g", "--out", "out", *FEW)
    assert outcome.code == 0
    for words in ("Training questions", "Held-out questions", "3-inter_chain", "mean hard", "Rejected candidates"):
        assert words in outcome.out
    assert "questions/s" in outcome.err
    assert Workload.open("out", Graph.open("g")).description["graphs"] == {
        "train": {"easy_on": "train", "all_on": "train"},
        "valid": {"easy_on": "train", "all_on": "known"},
        "test": {"easy_on": "train", "all_on": "whole"},
    }


def test_a_sample_prints_counts_by_structure_and_its_pace_as_json(run: Run) -> None:
    outcome = run("sample", "g", "--out", "out", "--json", "--structures", "2p, 3-inter,pi", *FEW)
    printed = json.loads(outcome.out)
    assert printed["questions"]["test"] == {"2-chain": 6, "3-inter": 6, "3-inter_chain": 6}
    assert printed["questions"]["train"] == {
        "2-chain": 40,
        "3-inter": 20,
        "3-inter_chain": 20,
        **{f"{size}-inter": 5 for size in (4, 5, 6, 7)},
    }
    assert printed["questions_per_second"] > 0
    assert printed["questions"] == Workload.open("out").description["questions"]
    assert printed["tallies"]["test"]["2-chain"]["mean_hard"] >= 1


def test_a_sample_can_be_quiet(run: Run) -> None:
    assert run("sample", "g", "--out", "out", "-q", *FEW) == (0, "", "")


def test_a_sample_is_the_same_for_any_number_of_workers(run: Run) -> None:
    for name, workers in (("one", "1"), ("three", "3")):
        run("sample", "g", "--out", name, "--workers", workers, "--seed", "7", "-q", *FEW)
    names = sorted(path.name for path in Path("one").glob("*.npy"))
    assert names == sorted(path.name for path in Path("three").glob("*.npy"))
    assert all((Path("one") / name).read_bytes() == (Path("three") / name).read_bytes() for name in names)


@pytest.mark.parametrize("uniform", ["answers", "relations", "triples"])
def test_a_sample_can_be_uniform_over_each_of_three(run: Run, uniform: str) -> None:
    assert run("sample", "g", "--out", "out", "--uniform", uniform, "-q", *FEW).code == 0
    assert Workload.open("out").description["uniform"] == uniform


def test_no_test_questions_are_drawn_if_none_are_wanted(run: Run) -> None:
    printed = json.loads(run("sample", "g", "--out", "out", "--json", *FEW, "--test", "0").out)
    assert set(printed["questions"]) == {"train", "valid"}


WRONG = "--test=-1 --two-edges=-5 --negatives=-1 --seed=-1 --one-in=0 --workers=0 --valid=many --uniform=nonsense"


@pytest.mark.parametrize("given", WRONG.split())
def test_settings_out_of_range_are_usage_errors(run: Run, given: str) -> None:
    refused(run("sample", "g", "--out", "out", given), "Invalid value for", given.partition("=")[0], code=2)


@pytest.mark.parametrize(
    ("structures", "said"),
    [("2p,4x", 'there is none named "4x"'), ("4i", "4-inter cannot be sampled"), (" ,", "is empty")],
)
def test_structures_that_cannot_be_drawn_are_refused(run: Run, structures: str, said: str) -> None:
    refused(run("sample", "g", "--out", "out", "--structures", structures), said)


def test_missing_questions_are_reported_and_the_rest_kept(run: Run) -> None:
    outcome = run("sample", "two", "--out", "out", "--json", *FEW)
    assert outcome.code == 0
    assert "The graph has no split, so only training questions are sampled." in outcome.err
    assert "Only 0 of 10 train questions of structure 3-inter were found in the graph." in outcome.err
    assert json.loads(outcome.out)["questions"]["train"]["1-chain"] == 4


def test_a_sample_of_nothing_makes_no_folder(run: Run) -> None:
    outcome = run("sample", "two", "--out", "out", "--structures", "3i", *FEW)
    assert outcome.code == 1
    assert "halfgraph: two: no question was found: " in outcome.err
    assert not Path("out").exists()
    zero = [word if word.startswith("-") else "0" for word in FEW]
    refused(run("sample", "g", "--out", "out", "--structures", "3i", *zero), "the plan asks for none")


def test_a_workload_goes_out_and_comes_in(run: Run) -> None:
    assert run("workload", "export", "w", "--graph", "g", "--out", "q.jsonl.gz").err == "q.jsonl.gz: 42 questions\n"
    outcome = run("workload", "import", "q.jsonl.gz", "--graph", "g", "--out", "out", "--verify", "--json")
    assert outcome.code == 0
    printed = json.loads(outcome.out)
    assert (printed["queries"], printed["equal"], printed["different"]) == (42, 42, [])
    assert printed["graphs"]["test"] == {"easy_on": "train", "all_on": "whole", "tried": 42, "equal": 42}
    assert "Imported as test questions: easy answers on the training triples, all answers on all triples" in outcome.err
    for name in ("anchors", "answers", "hard.values", "negatives.offsets", "missing"):
        again = Path("out") / f"test.2-inter.{name}.npy"
        assert again.read_bytes() == (Path("w") / again.name).read_bytes()


def test_an_export_goes_to_standard_output_or_reports_its_counts(run: Run) -> None:
    out = run(
        "workload", "export", "w", "-g", "g", "-o", "-", "--split", "train", "--structures", "ip", "--limit", "2"
    ).out
    assert [json.loads(line)["structure"] for line in out.splitlines()] == ["ip", "ip"]
    printed = json.loads(run("workload", "export", "w", "-g", "g", "-o", "q.jsonl", "--split", "valid", "--json").out)
    assert sum(printed["questions"]["valid"].values()) == len(read_json_lines(Path("q.jsonl"))) == 28


def test_published_queries_are_imported_and_verified(run: Run) -> None:
    lines = published(Graph.open("g"), some_queries(10), "train", "known")
    write_lines(Path("q.jsonl"), [*lines, {"query": ["e1", ["r0", "n"]], "easy": ["e1"], "hard": []}])
    outcome = run("workload", "import", "q.jsonl", "--graph", "g", "--out", "out", "--verify")
    assert outcome.code == 0
    assert "3-chain_union" in outcome.out
    assert "Imported as valid questions" in outcome.err
    assert "Not imported, because of other structures: with a negation that stands alone (1)" in outcome.err
    assert f"{len(lines)} of {len(lines)} queries have exactly the answers that the graph gives" in outcome.err


def test_verification_lists_differences_and_exits_with_1(run: Run) -> None:
    lines = published(Graph.open("g"), some_queries(10), "train", "known")
    tampered = next(place for place, line in enumerate(lines) if len(line["hard"]) > 1)
    gone = lines[tampered]["hard"].pop()
    write_lines(Path("q.jsonl"), lines)
    outcome = run("workload", "import", "q.jsonl", "--graph", "g", "--out", "out", "--verify", "--json")
    assert outcome.code == 1
    printed = json.loads(outcome.out)
    assert (printed["queries"], printed["equal"]) == (len(lines), len(lines) - 1)
    assert [(row["line"], row["missing_hard"]) for row in printed["different"]] == [(tampered + 1, [gone])]
    assert Workload.open("out").description["questions"]["valid"]
    shutil.rmtree("out")
    assert f'"missing_hard": ["{gone}"]' in run("workload", "import", "q.jsonl", "-g", "g", "-o", "out", "--verify").err


class Wicked:
    def __reduce__(self) -> Any:
        return os.system, ("touch mark",)


def test_bad_input_ends_in_one_line_and_leaves_nothing(run: Run) -> None:
    good = '{"query": ["e1", ["r0"]], "easy": [], "hard": ["e2"]}'
    write_lines(Path("broken.jsonl"), [good, good[:-1]])
    write_lines(Path("unknown.jsonl"), [good, good.replace("e1", "e99")])
    write_lines(Path("nothing.jsonl"), [good, good.replace('"e2"', "")])
    Path("valid-queries.pkl").write_bytes(pickle.dumps({"1p": Wicked()}))
    Path("id2ent.pkl").write_bytes(pickle.dumps({0: "e0"}))
    Path("id2rel.pkl").write_bytes(pickle.dumps({0: "r0"}))
    said = {
        "broken.jsonl": "broken.jsonl, line 2, column 53: not valid JSON",
        "unknown.jsonl": "unknown.jsonl, line 2: no entity e99 in this graph. Did you mean e9",
        "nothing.jsonl": "nothing.jsonl, line 2: the query has no answers",
        "valid-queries.pkl": "valid-queries.pkl: holds posix.system, and only plain",
        "absent.jsonl": "absent.jsonl: no such file",
    }
    for name, words in said.items():
        refused(run("workload", "import", name, "--graph", "g", "--out", "out", "--verify", "--json"), words)
    assert not Path("mark").exists()


def test_a_workload_made_for_another_graph_is_refused(run: Run) -> None:
    refused(run("workload", "export", "w", "--graph", "two", "--out", "out"), "w: belongs to graph", "this is graph")
    refused(run("workload", "export", "g", "--graph", "g", "--out", "out"), "g: no workload here")
    refused(run("workload", "export", "absent", "--graph", "g", "--out", "out"), "absent: no such folder")
    refused(run("sample", "w", "--out", "out"), "w: no graph here")


def test_nothing_is_overwritten(run: Run) -> None:
    write_lines(Path("q.jsonl"), published(Graph.open("g"), some_queries(1), "train", "known"))
    before = Path("q.jsonl").read_bytes()
    for arguments in (
        ["sample", "g", "--out", "two"],
        ["workload", "import", "q.jsonl", "-g", "g", "--out", "two"],
        ["workload", "export", "w", "-g", "g", "--out", "q.jsonl"],
    ):
        refused(run(*arguments), "exists already. Remove it")
    assert Path("q.jsonl").read_bytes() == before


@pytest.mark.parametrize("arguments", [["sample"], ["workload", "export"], ["workload", "import"]])
def test_every_command_has_help_with_an_example(run: Run, arguments: list[str]) -> None:
    assert f"Example: halfgraph {' '.join(arguments)}" in run(*arguments, "--help").out


def test_a_bar_with_the_pace_is_shown_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    outcome = run("sample", "g", "--out", "out", *FEW)
    assert outcome.code == 0
    assert "questions 518 of 518, " in outcome.err
    assert "/s" in outcome.err
