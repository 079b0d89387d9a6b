"""The paper's Table 2 for any graph: every row trained on one workload with one budget, and measured alike.

The budget is a number of steps, the same for every row: a step takes as many questions whatever the row, and a busy
machine does not change what is learnt. Minutes are turned into steps once, by the pace of the default row.
"""

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from halfgraph.errors import FolderError
from halfgraph.evaluation.comparing import Measured
from halfgraph.evaluation.questions import EvaluationSet, of_workload
from halfgraph.evaluation.results import evaluate
from halfgraph.evaluation.validation import validation_questions, validator
from halfgraph.graph.folder import Graph
from halfgraph.model.architecture import Architecture
from halfgraph.model.variants import ROWS
from halfgraph.prediction.base import Predictor
from halfgraph.prediction.baselines import NEIGHBOUR_VOTE, POPULARITY, neighbour_vote, popularity
from halfgraph.prediction.embedding import EmbeddingPredictor
from halfgraph.training.batches import Batches, FromWorkload
from halfgraph.training.loop import WARM_UP, Budget, Progress, train, tune_memory
from halfgraph.training.recipe import Recipe
from halfgraph.training.run import is_finished, load_encoder, new_encoder, run, start
from halfgraph.training.run_folder import STATE, read_provenance, write_atomically
from halfgraph.workload.folder import Plan, Workload, sample

PAPER_ROWS = tuple(row.name for row in ROWS[:10])
THOROUGH = ("GQE[min]", "GQE+KG[min]", "CGA+KG+8[min]")  # the rows with several seeds
DEFAULT_ROW = "CGA+KG+8[min]"  # whose pace tells how many steps fit into some minutes
PACE_STEPS = 36  # steps after the warming up, the faster half of which is the pace
PLAN, WORKLOAD, RUNS, RESULTS = "plan.json", "workload", "runs", "results"
KEPT = ("parameters", "intersection_parameters", "steps", "seconds")  # of a run's provenance


@dataclass(frozen=True)
class Entry:
    """One run of the table: a row, all that it is made with, and a seed."""

    row: str
    architecture: Architecture
    recipe: Recipe
    sections: Mapping[str, Mapping[str, Any]]  # the settings as a run folder keeps them
    seed: int

    @property
    def folder(self) -> str:
        """The name of its folder: CGA-KG-8-min-seed0."""
        letters = "".join(letter if letter.isalnum() or letter == "_" else "-" for letter in self.row)
        return f"{letters.strip('-')}-seed{self.seed}"


@dataclass(frozen=True)
class Reproduction:
    """A folder in which rows are trained and measured, on one workload, for so many steps each."""

    folder: Path
    graph: Graph
    workload: Workload
    steps: int

    @cached_property
    def asked(self) -> EvaluationSet:
        """The test questions."""
        return of_workload(self.workload, self.graph, "test", None, 0)


def begin(
    folder: Path,
    graph: Graph,
    questions: Workload | Plan,
    steps: int | None,
    minutes: float,
    default: Entry,
    said: Callable[[str], None] = lambda _: None,
) -> Reproduction:
    """The folder with its workload and its budget, both as they were first decided on."""
    folder.mkdir(parents=True, exist_ok=True)
    known = _read_plan(folder, graph, steps)
    if isinstance(questions, Plan):
        place = folder / WORKLOAD
        if not place.exists():
            said("Drawing the questions")
            sample(graph, place, questions)
        questions = Workload.open(place, graph)
    if known is None:
        found: dict[str, Any] = {"graph": graph.fingerprint, "workload": str(questions.path), "steps": steps}
        if steps is None:
            said(f"Measuring how many steps of {default.row} fit into {minutes:g} minutes")
            pace = seconds_a_step(graph, questions, default)
            found |= {"steps": max(1, round(60.0 * minutes / pace)), "minutes": minutes, "seconds_a_step": pace}
        known = found
        write_atomically(folder / PLAN, json.dumps(known, indent=1))
    elif Path(known["workload"]).resolve() != questions.path.resolve():
        problem = f"was begun with the questions of {known['workload']}"
        raise FolderError(folder, problem, advice="Pass the same --workload, or another --out.")
    return Reproduction(folder, graph, questions, int(known["steps"]))


def _read_plan(folder: Path, graph: Graph, steps: int | None) -> dict[str, Any] | None:
    """What was decided on when the folder was begun, or nothing."""
    path = folder / PLAN
    if not path.exists():
        return None
    try:
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FolderError(path, f"cannot be read: {error}", advice="Pass another --out.") from error
    if known["graph"] != graph.fingerprint:
        raise FolderError(folder, f"was begun for graph {known['graph']}", advice="Pass that graph, or another --out.")
    if steps is not None and steps != known["steps"]:
        raise FolderError(folder, f"was begun with {known['steps']:,} steps", advice="Pass as many, or another --out.")
    return known


def seconds_a_step(graph: Graph, workload: Workload, entry: Entry) -> float:
    """How long a step takes: the mean of the faster half, for other work on the machine only makes steps slower."""
    times: list[float] = []
    batches = Batches(graph.train, FromWorkload(workload), entry.recipe, entry.seed)
    encoder = new_encoder(entry.architecture, graph, entry.seed, "cpu")
    with tempfile.TemporaryDirectory(prefix="halfgraph-") as folder:
        budget = Budget(WARM_UP + PACE_STEPS, validations=1)
        train(encoder, batches, budget, Path(folder), progress=lambda *_: times.append(time.monotonic()))
    gaps = np.sort(np.diff(times)[WARM_UP - 1 :])
    return float(gaps[: max(1, len(gaps) // 2)].mean())


def measure_entry(work: Reproduction, entry: Entry, threads: int | None, progress: Progress = lambda *_: None) -> bool:
    """Whether there was anything to do: a run is begun, gone on with, measured, or found to be measured already."""
    out, path = work.folder / RUNS / entry.folder, work.folder / RESULTS / f"{entry.folder}.json"
    start(out, work.graph, entry.sections, entry.seed, work.workload, resume=out.exists())
    if path.exists():
        return False
    if not is_finished(out):
        _train(work, entry, out, progress)
    predictor = EmbeddingPredictor.of(load_encoder(out, work.graph, entry.architecture), entry.row)
    about = read_provenance(out)
    others = {key: about[key] for key in KEPT} | {"run": str(out), "seed": entry.seed}
    _save(path, predictor, work.asked, threads, others)
    (out / STATE).unlink(missing_ok=True)  # there is nothing to go on with, and it is three times the model's size
    return True


def _train(work: Reproduction, entry: Entry, out: Path, progress: Progress) -> None:
    """Nothing; a run is brought to its end."""
    run(
        out,
        work.graph,
        new_encoder(entry.architecture, work.graph, entry.seed, "cpu"),
        entry.recipe,
        Budget(work.steps, patience=1_000),  # every row takes all its steps; its best weights are kept
        name=entry.row,
        seed=entry.seed,
        workload=work.workload,
        validate=validator(validation_questions(work.graph, work.workload, entry.seed)),
        progress=progress,
    )


def measure_baselines(work: Reproduction, most: int, threads: int | None) -> None:
    """Nothing; the two baselines are measured, on at most so many test questions of each structure."""
    for make, name in ((popularity, POPULARITY), (neighbour_vote, NEIGHBOUR_VOTE)):
        path = work.folder / RESULTS / f"{name.replace(' ', '-')}.json"
        if not path.exists():
            _save(path, make(work.graph.train), work.asked.some(most, 0), threads, {})


def _save(
    path: Path, predictor: Predictor, asked: EvaluationSet, threads: int | None, others: Mapping[str, Any]
) -> None:
    """Nothing; the figures of an predictor are found and written."""
    tune_memory()
    figures = evaluate(predictor, asked, threads=threads)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({**figures, **others}, indent=1))


def results(work: Reproduction) -> list[Measured]:
    """All that was measured so far, in the order of the paper's table; baselines last."""
    found = []
    for path in sorted((work.folder / RESULTS).glob("*.json")):
        try:
            figures = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FolderError(path, f"cannot be read: {error}", advice="Remove it, to be measured again.") from error
        about = {key: figures[key] for key in KEPT if key in figures}
        found.append(Measured(figures["name"], figures, figures.get("seed"), about))
    order = [row.name for row in ROWS] + [POPULARITY, NEIGHBOUR_VOTE]
    return sorted(found, key=lambda one: (order.index(one.row), one.seed or 0))


def entries(rows: Sequence[str], seeds: int, make: Callable[[str, int], Entry]) -> list[Entry]:
    """The runs of some rows, by seed and then by row, so that the table is soon complete."""
    wanted = [(seed, row) for row in rows for seed in range(seeds if row in THOROUGH else 1)]
    return [make(row, seed) for seed, row in sorted(wanted, key=lambda pair: pair[0])]
