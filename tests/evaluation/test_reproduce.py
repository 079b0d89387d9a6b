import json
from collections.abc import Callable
from pathlib import Path

import pytest

from halfgraph.errors import FolderError
from halfgraph.evaluation import reproduce
from halfgraph.evaluation.reproduce import (
    PAPER_ROWS,
    PLAN,
    RESULTS,
    RUNS,
    Entry,
    Reproduction,
    begin,
    entries,
    measure_baselines,
    measure_entry,
    results,
)
from halfgraph.evaluation.results import rows_of
from halfgraph.evaluation.table_two import brief_table, table_two, table_values, write_table
from halfgraph.graph.folder import Graph
from halfgraph.settings import training_settings
from halfgraph.training.run_folder import METRICS, MODEL, STATE
from halfgraph.workload.folder import Counts, Plan, Workload, sample
from halfgraph.workload.negatives import NegativeCounts
from small_runs import Killed, killing_at, people

FEW = {"dim": 4, "heads": 2, "one_edge": 16, "longer": 4, "type_negatives": 6, "other_negatives": 6}
SMALL = Plan(Counts(60, 60, 12, 20, 12), negatives=NegativeCounts(20, 2), threads=1)
STEPS = 10


def make(row: str, seed: int, **others: int) -> Entry:
    chosen = training_settings(row, "default", {**FEW, **others})
    return Entry(row, chosen.architecture, chosen.recipe, chosen.sections(), seed)


GQE, CGA = make("GQE[min]", 0), make("CGA+KG+8[min]", 0)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="module")
def workload(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return sample(graph, tmp_path_factory.mktemp("questions") / "w", SMALL)


@pytest.fixture
def work(graph: Graph, workload: Workload, tmp_path: Path) -> Reproduction:
    return begin(tmp_path / "table", graph, workload, STEPS, 1.0, CGA)


def untimed(path: Path) -> dict[str, object]:
    return {
        name: value
        for name, value in json.loads(path.read_text()).items()
        if name not in ("seconds", "run", "checksum")
    }


def test_three_rows_have_several_seeds_and_the_first_seed_comes_first() -> None:
    named = entries(PAPER_ROWS, 3, make)
    assert len(PAPER_ROWS) == 10
    assert len(named) == 16
    assert [entry.row for entry in named[:10]] == list(PAPER_ROWS)
    assert {entry.row for entry in named[10:]} == {"GQE[min]", "GQE+KG[min]", "CGA+KG+8[min]"}
    assert [entry.seed for entry in named[10:]] == [1, 1, 1, 2, 2, 2]
    assert len({entry.folder for entry in named}) == 16


def test_only_rows_with_the_kg_phase_learn_from_neighbourhoods() -> None:
    for entry in entries(PAPER_ROWS, 1, make):
        assert (entry.recipe.neighbourhoods > 0) == ("+KG" in entry.row)


def test_questions_are_drawn_once(graph: Graph, tmp_path: Path) -> None:
    said: list[str] = []
    first = begin(tmp_path, graph, SMALL, STEPS, 1.0, CGA, said.append)
    again = begin(tmp_path, graph, SMALL, None, 1.0, CGA, said.append)
    assert said == ["Sampling the questions"]
    assert again.workload.path == first.workload.path
    assert again.steps == STEPS


def test_minutes_become_steps_once(
    graph: Graph, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce, "SPEED_STEPS", 4)
    first = begin(tmp_path, graph, workload, None, 0.01, CGA)
    plan = json.loads((tmp_path / PLAN).read_text())
    assert first.steps == max(1, round(0.6 / plan["seconds_a_step"]))
    monkeypatch.setattr(reproduce, "seconds_per_step", refused)
    assert begin(tmp_path, graph, workload, None, 7.0, CGA).steps == first.steps


def refused(*_: object, **__: object) -> float:
    raise AssertionError("this was done already")


def test_a_finished_row_is_not_trained_again(work: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure_entry(work, GQE, 1)
    before = untimed(work.folder / RESULTS / f"{GQE.folder}.json")
    monkeypatch.setattr(reproduce, "run", refused)
    assert not measure_entry(work, GQE, 1)
    assert untimed(work.folder / RESULTS / f"{GQE.folder}.json") == before


def test_a_row_that_was_trained_and_not_measured_is_only_measured(
    work: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(reproduce, "_measure", killed)
        with pytest.raises(Killed):
            measure_entry(work, GQE, 1)
    monkeypatch.setattr(reproduce, "run", refused)
    assert measure_entry(work, GQE, 1)
    assert not (work.folder / RUNS / GQE.folder / STATE).exists()
    assert (work.folder / RUNS / GQE.folder / MODEL).exists()


def killed(*_: object) -> None:
    raise Killed


def test_an_interrupted_row_resumes_to_the_same_result(
    work: Reproduction, graph: Graph, workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = reproduce.Budget
    monkeypatch.setattr(
        reproduce, "Budget", lambda steps, patience: often(steps, patience=patience, checkpoint_seconds=0.0)
    )
    with pytest.raises(Killed):
        measure_entry(work, CGA, 1, killing_at(6))
    assert measure_entry(work, CGA, 1)
    other = begin(tmp_path / "other", graph, workload, STEPS, 1.0, CGA)
    measure_entry(other, CGA, 1)
    ends = [untimed(folder.folder / RESULTS / f"{CGA.folder}.json") for folder in (work, other)]
    assert ends[0] == ends[1]


def test_every_row_takes_all_its_steps(work: Reproduction) -> None:
    measure_entry(work, make("TransE[mean]", 0, learning_rate=50.0), 1)  # so that no validation is better
    run = work.folder / RUNS / "TransE-mean-seed0"
    steps = [json.loads(line)["step"] for line in (run / METRICS).read_text().splitlines()]
    assert steps == list(range(1, STEPS + 1))


@pytest.mark.parametrize("change", ["graph", "steps", "workload", "settings"])
def test_a_folder_begun_otherwise_is_refused(
    change: str, work: Reproduction, graph: Graph, workload: Workload, tmp_path: Path
) -> None:
    measure_entry(work, GQE, 1)
    again: dict[str, Callable[[], object]] = {
        "graph": lambda: begin(work.folder, people(tmp_path, seed=5), workload, STEPS, 1.0, CGA),
        "steps": lambda: begin(work.folder, graph, workload, STEPS + 1, 1.0, CGA),
        "workload": lambda: begin(work.folder, graph, SMALL, STEPS, 1.0, CGA),
        "settings": lambda: measure_entry(work, make("GQE[min]", 0, dim=5), 1),
    }
    with pytest.raises(FolderError, match="was started"):
        again[change]()


def test_a_broken_plan_or_result_is_named(work: Reproduction, graph: Graph, workload: Workload) -> None:
    measure_baselines(work, 5, 1)
    path = work.folder / RESULTS / "popularity.json"
    path.write_text("{")
    with pytest.raises(FolderError, match=r"popularity\.json: cannot be read"):
        results(work)
    (work.folder / PLAN).write_text("{")
    with pytest.raises(FolderError, match=r"plan\.json: cannot be read"):
        begin(work.folder, graph, workload, STEPS, 1.0, CGA)


def test_the_table_has_gains_parameters_and_baselines(work: Reproduction) -> None:
    measure_baselines(work, 10, 1)
    for entry in (CGA, GQE, make("GQE[min]", 1)):
        measure_entry(work, entry, 1)
    rows = rows_of(results(work))
    assert [row.name for row in rows] == ["GQE[min]", "CGA+KG+8[min]", "popularity", "neighbour vote"]
    assert rows[0].seeds == (0, 1)
    gqe, cga = (row.get("macro", "auc", "hard") for row in rows[:2])
    assert gqe is not None
    assert cga is not None
    figures = table_values(rows, {"steps": STEPS})["rows"]
    assert figures[0]["gain"]["auc"]["hard"] is None
    assert figures[1]["gain"]["auc"]["hard"] == pytest.approx(100 * (cga - gqe) / gqe)
    # L types of people, cities, countries and languages; d = 4, K = 2: 2Ld^2 and Ld(d + 2K + 1).
    assert figures[0]["intersection_parameters"] == 2 * 4 * 4 * 4
    assert figures[1]["intersection_parameters"] == 4 * 4 * (4 + 2 * 2 + 1)
    assert [row["baseline"] for row in figures] == [False, False, True, True]
    table = table_two(rows)
    assert "±" in table.text(0, 1)
    assert "±" not in table.text(1, 1)
    assert table.text(1, 6) == f"{100 * (cga - gqe) / gqe:+.2f}"
    assert brief_table(rows).rows[1][6] == pytest.approx(100 * (cga - gqe) / gqe)


def test_the_table_is_written_in_every_form(work: Reproduction) -> None:
    measure_baselines(work, 10, 1)
    for entry in (CGA, GQE):
        measure_entry(work, entry, 1)
    write_table(work.folder, "A table", rows_of(results(work)), ["700 steps."], {"steps": STEPS})
    names = {path.name for path in work.folder.iterdir()}
    assert names >= {"table.md", "table.json", "report.html", "auc.svg", "apr.svg", "mrr.svg"}
    text = (work.folder / "table.md").read_text()
    assert text.startswith("# A table\n\n700 steps.")
    assert text.count("| CGA+KG+8[min] |") >= 1
    assert len(json.loads((work.folder / "table.json").read_text())["rows"]) == 4
