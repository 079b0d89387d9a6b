import gzip
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import percentileofscore
from sklearn.metrics import roc_auc_score

from command_line import FEW, Outcome, Run, command
from halfgraph.evaluation.results import TYPES
from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import write_manifest
from halfgraph.training.run_folder import MODEL, load_tensors, save_tensors
from query_files import SMALL, published, sampled, some_queries, split_graph, write_lines

SHORT = ["1p", "2p", "3p", "2i", "3i", "ip", "pi"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a split graph, its workload, a query file, and runs of two rows, one of two seeds."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "d").mkdir()
    split_graph(folder / "d").path.rename(folder / "g")
    graph = Graph.open(folder / "g")
    sampled(graph, folder / "w", SMALL)
    write_lines(folder / "queries.jsonl", published(graph, some_queries(80), "train", "known"))
    (folder / "t.tsv").write_text("".join(f"e{i % 7}\tr{i % 2}\te{(i * i) % 11}\n" for i in range(40)))
    assert command(["import", str(folder / "t.tsv"), "--quiet", "--out", str(folder / "whole")]) == 0
    for name, model, seed in (("cga0", "cga", 0), ("cga1", "cga", 1), ("gqe", "gqe", 0)):
        arguments = ["train", str(folder / "g"), str(folder / "w"), "--model", model, "--seed", str(seed), *FEW]
        assert command([*arguments, "--steps", "5", "--quiet", "--out", str(folder / name)]) == 0
    return folder


def figures(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def lines_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_json_has_what_the_interface_says(run: Run) -> None:
    found = figures(run("evaluate", "cga0", "--workload", "w", "--json"))
    assert list(found["auc"]) == list(TYPES)
    assert set(found["apr"]) <= set(TYPES)
    assert set(found["macro"]) >= {"auc", "apr"}
    assert set(found["macro"]["auc"]) == set(found["macro"]["apr"]) == {"all", "hard"}
    assert list(found["mrr"]) == SHORT
    assert set(found["hits"]) == {"1", "3", "10"}
    assert list(found["hits"]["3"]) == SHORT
    assert found["macro"]["auc"]["all"] == pytest.approx(np.mean(list(found["auc"].values())))
    hard = [value for name, value in found["auc"].items() if name.endswith("-hard")]
    assert len(hard) == 4
    assert found["macro"]["auc"]["hard"] == pytest.approx(np.mean(hard))
    assert set(found["baselines"]) == {"popularity", "neighbour vote"}
    assert set(found["by_missing"]) <= {"1", "2", "3"}
    for low, high in found["intervals"]["auc"].values():
        assert low <= high
    assert found["run"] == "cga0"
    assert found["split"] == "test"


def test_the_same_command_prints_the_same_on_any_number_of_threads(run: Run) -> None:
    arguments = ("evaluate", "cga0", "--workload", "w", "--json", "--threads")
    assert run(*arguments, "1").out == run(*arguments, "2").out


def test_another_program_finds_the_same_figures_from_the_scores(run: Run, tmp_path: Path) -> None:
    arguments = ("evaluate", "cga0", "--workload", "w", "--json", "--no-baselines")
    found = figures(run(*arguments, "--scores", "s.jsonl.gz", "--every-score"))
    lines = lines_in(tmp_path / "s.jsonl.gz")
    pairs: dict[str, list[tuple[float, float]]] = {}
    shares: dict[str, list[float]] = {}
    ranks: dict[str, list[list[float]]] = {}
    names = {"1p": "1-chain", "2p": "2-chain", "3p": "3-chain", "2i": "2-inter", "3i": "3-inter"}
    names |= {"pi": "3-inter_chain", "ip": "3-chain_inter"}
    for line in lines:
        name, scores, every = names[line["structure"]], line["scores"], line["entities"]
        assert len(every) == 30
        assert scores["answer"] == every[line["answer"]]
        for suffix, one, many in (("", "negative", "negatives"), ("-hard", "hard_negative", "hard_negatives")):
            if one in scores:
                assert scores[one] == every[line[one]]
                pairs.setdefault(name + suffix, []).append((scores["answer"], scores[one]))
            if many in scores:
                assert scores[many] == [every[entity] for entity in line[many]]
                share = percentileofscore(scores[many], scores["answer"], kind="mean") / 100
                shares.setdefault(name + suffix, []).append(share)
        answers = {*line["easy"], *line["hard"]}
        others = [score for entity, score in every.items() if entity not in answers]
        own = []
        for answer in line["hard"]:
            higher = sum(score > every[answer] for score in others)
            own.append(1 + higher + sum(score == every[answer] for score in others) / 2)
            assert line["ranks"][answer] == own[-1]
        ranks.setdefault(line["structure"], []).append(own)
    for name, some in pairs.items():
        labels = [1] * len(some) + [0] * len(some)
        expected = roc_auc_score(labels, [right for right, _ in some] + [wrong for _, wrong in some])
        assert found["auc"][name] == pytest.approx(expected)
    assert found["apr"] == pytest.approx({name: np.mean(some) for name, some in shares.items()})
    for short, some in ranks.items():
        assert found["mrr"][short] == pytest.approx(np.mean([np.mean([1 / rank for rank in own]) for own in some]))
        assert found["hits"]["3"][short] == pytest.approx(np.mean([np.mean([r <= 3 for r in own]) for own in some]))


def test_a_query_file_needs_no_workload(run: Run) -> None:
    found = figures(run("evaluate", "cga0", "--queries", "queries.jsonl", "--json"))
    there = ["1p", "2p", "3p", "2i", "ip", "pi", "2u", "up"]  # three paths hardly meet in so small a graph
    assert list(found["mrr"]) == list(found["questions"]) == there
    assert found["auc"] == {}
    assert found["macro"]["auc"] == {"all": None, "hard": None}
    assert found["split"] == "valid"


def test_without_questions_some_are_drawn(run: Run) -> None:
    found = figures(run("evaluate", "cga0", "--limit", "7", "--split", "valid", "--json", "--no-baselines"))
    assert set(found["mrr"]) == set(SHORT)
    assert max(found["questions"].values()) <= 7
    assert found["split"] == "valid"
    assert found["baselines"] == {}


def test_a_limit_takes_some_of_each_by_the_seed(run: Run) -> None:
    arguments = ("evaluate", "cga0", "--workload", "w", "--json", "--no-baselines", "--limit", "3", "--seed")
    first, again, other = (figures(run(*arguments, seed)) for seed in ("1", "1", "2"))
    assert first == again
    assert first["mrr"] != other["mrr"]
    assert set(first["questions"].values()) == {3}


def test_runs_of_one_row_are_seeds_and_rows_are_compared(run: Run) -> None:
    found = figures(run("evaluate", "cga0", "cga1", "gqe", "--workload", "w", "--json"))
    assert [one["run"] for one in found["runs"]] == ["cga0", "cga1", "gqe"]
    rows = found["rows"]
    assert set(rows) == {"CGA+KG+8[min]", "GQE[min]"}
    values = [one["macro"]["auc"]["all"] for one in found["runs"]]
    row = rows["CGA+KG+8[min]"]
    assert row["seeds"] == [0, 1]
    assert row["mean"]["macro"]["auc"]["all"] == pytest.approx(np.mean(values[:2]))
    assert row["spread"]["macro"]["auc"]["all"] == pytest.approx(np.std(values[:2], ddof=1))
    assert rows["GQE[min]"]["spread"] is None


def test_tables_are_printed_and_written(run: Run, tmp_path: Path) -> None:
    outcome = run("evaluate", "cga0", "--workload", "w", "--markdown", "a/report.md")
    assert outcome.code == 0, outcome.err
    assert "CGA+KG+8[min]" in outcome.out
    assert "neighbour vote" in outcome.out
    assert "Predicted by links" in outcome.err
    text = (tmp_path / "a/report.md").read_text()
    assert text.startswith("# CGA+KG+8[min] on g\n")
    for line in re.findall(r"^\|.*\|$", text, re.MULTILINE):
        assert line.count("|") > 2
    assert run("evaluate", "cga0", "--workload", "w", "--markdown", "a/report.md", "--quiet").out == ""


class Page(HTMLParser):
    """Parser of a page: its tags, closed in order, and the addresses it requests."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.asked: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.asked += [str(value) for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]
        if tag not in ("meta", "rect", "line"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "line") or self.open[-1] == tag:
            assert self.open.pop() == tag


@pytest.mark.parametrize("runs", [["cga0"], ["cga0", "cga1", "gqe"]])
def test_the_report_is_one_page_that_asks_for_nothing(run: Run, tmp_path: Path, runs: list[str]) -> None:
    assert run("evaluate", *runs, "--workload", "w", "--html", "report.html", "--quiet").code == 0
    text = (tmp_path / "report.html").read_text()
    svgs = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(svgs) == 3 + len({name.rstrip("01") for name in runs})  # and one for the confidences of each row
    for svg in svgs:
        ElementTree.fromstring(svg)
    page = Page(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))
    assert not page.open
    assert not page.asked
    assert "script" not in page.seen
    assert "url(" not in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "prefers-color-scheme: dark" in text
    assert "CGA+KG+8[min]" in text


def test_a_diverged_model_fails_loudly(run: Run, made: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in (made / "cga0").iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    tensors, about = load_tensors(broken / MODEL)
    tensors["projection.weight"][0, 0, 0] = math.nan
    save_tensors(broken / MODEL, tensors, about)
    outcome = run("evaluate", "broken", "--workload", "w", "--json")
    assert outcome.code == 1
    assert not outcome.out
    assert "model.safetensors: has numbers that are not finite: projection.weight" in outcome.err
    assert len(outcome.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "nothing: no such folder. Make one with: halfgraph train"),
        (["cga0", "--graph", "whole"], "cga0: belongs to graph"),
        (["cga0", "--workload", "w", "--queries", "queries.jsonl"], "--workload: and --queries are both given"),
        (["cga0", "--queries", "none.jsonl"], "none.jsonl"),
        (["cga0", "--workload", "g"], "g: no workload here"),
        (["cga0", "--every-score"], "--every-score: needs a file"),
        (["cga0", "--workload", "w", "--scores", "cga0"], "cga0"),
        (["cga0", "--workload", "w", "--html", "w/workload.json/x.html"], "cannot be written"),
    ],
)
def test_a_request_that_cannot_be_met_is_reported_in_one_line(run: Run, arguments: list[str], said: str) -> None:
    outcome = run("evaluate", *arguments)
    assert outcome.code == 1
    assert said in outcome.err
    assert outcome.err.startswith("halfgraph: ")
    assert len(outcome.err.splitlines()) == 1


def test_a_graph_that_has_moved_is_asked_for(run: Run, made: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in (made / "cga0").iterdir():
        (moved / path.name).write_bytes(path.read_bytes())
    said = json.loads((moved / "provenance.json").read_text())
    (moved / "provenance.json").write_text(json.dumps(said | {"graph_path": "/nowhere/g"}))
    write_manifest(moved)
    outcome = run("evaluate", "moved", "--workload", "w")
    assert outcome.code == 1
    assert "moved: was trained on /nowhere/g, which is not there. Pass its folder as --graph" in outcome.err
    assert run("evaluate", "moved", "--workload", "w", "--graph", "g", "--quiet").code == 0


def test_the_table_of_the_paper_is_made_and_gone_on_with(run: Run, tmp_path: Path) -> None:
    arguments = ["reproduce", "--graph", "g", "--workload", "w", "--seeds", "2", "--out", "t", *FEW, "--threads", "1"]
    first = figures(run(*arguments, "--rows", "gqe", "--steps", "3", "--json"))
    assert [row["name"] for row in first["rows"]] == ["GQE[min]", "popularity", "neighbour vote"]
    again = run(*arguments, "--rows", "cga,TransE[mean]")
    assert again.code == 0, again.err
    assert "TransE[mean]" in again.out
    table = json.loads((tmp_path / "t/table.json").read_text())
    assert [row["name"] for row in table["rows"][:3]] == ["TransE[mean]", "GQE[min]", "CGA+KG+8[min]"]
    assert [row["seeds"] for row in table["rows"]] == [[0], [0, 1], [0, 1], [], []]
    assert run(*arguments, "--rows", "gqe", "--steps", "4").code == 1
    assert "has no split" in run("reproduce", "--graph", "whole", "--out", "u").err
    assert "there is no model named" in run("reproduce", "--graph", "g", "--rows", "nobody", "--out", "u").err


def test_compare_prints_one_table_with_paired_differences(run: Run) -> None:
    outcome = run("compare", "cga0", "gqe", "--workload", "w", "--baselines", "--markdown", "table.md")
    assert outcome.code == 0
    lines = [line.split() for line in outcome.out.splitlines() if line.startswith("MRR")]
    assert [line[1] for line in lines] == ["cga0", "gqe", "popularity", "neighbour"]
    assert "paired bootstrap test" in outcome.err
    assert "| MRR | gqe |" in Path("table.md").read_text(encoding="utf-8")


def test_compare_has_the_figures_of_evaluate(run: Run) -> None:
    compared = json.loads(run("compare", "cga0", "gqe", "--workload", "w", "--json").out)
    evaluated = json.loads(run("evaluate", "gqe", "--workload", "w", "--json", "--no-baselines").out)
    assert compared["reference"] == "cga0"
    figure = compared["rows"]["gqe"]["macro"]["mrr"]
    assert figure["value"] == pytest.approx(evaluated["macro"]["mrr"])
    first = compared["rows"]["cga0"]["macro"]["mrr"]["value"]
    assert figure["difference"] == pytest.approx(figure["value"] - first)
    assert 0 < figure["p"] <= 1
