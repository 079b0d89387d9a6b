"""The paper's Table 2 for any graph: every row is trained on one workload for the same number of steps, and measured.

A step has the same number of questions for every row, and counting steps makes the result independent of other work on
the machine. A budget in minutes is converted to steps once, by the speed of the default row.
"""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from halfgraph.errors import FolderError
from halfgraph.evaluation.questions import EvaluationSet, from_workload
from halfgraph.evaluation.results import Measured, evaluate
from halfgraph.evaluation.validation import validation_questions, validator
from halfgraph.graph.description import FORMAT
from halfgraph.graph.files import write_atomically
from halfgraph.graph.folder import Graph
from halfgraph.graph.manifest import read_json, remove_file, require_fields
from halfgraph.model.architecture import Architecture
from halfgraph.model.variants import ROWS
from halfgraph.prediction.base import Predictor
from halfgraph.prediction.baselines import NEIGHBOUR_VOTE, POPULARITY, neighbour_vote, popularity
from halfgraph.prediction.embedding import EmbeddingPredictor
from halfgraph.training.batches import Batches, FromWorkload
from halfgraph.training.loop import WARM_UP, Budget, Progress, train, tune_memory
from halfgraph.training.recipe import Recipe
from halfgraph.training.run import is_finished, load_encoder, new_encoder, run, start
from halfgraph.training.run_folder import AGAIN, PROVENANCE, STATE, read_provenance
from halfgraph.workload.folder import Plan, Workload, sample

PAPER_ROWS = tuple(row.name for row in ROWS[:10])
SEVERAL_SEEDS = ("GQE[min]", "GQE+KG[min]", "CGA+KG+8[min]")
DEFAULT_ROW = "CGA+KG+8[min]"  # its speed converts minutes to steps
SPEED_STEPS = 36  # steps after the warm-up, of which the faster half counts
PLAN, WORKLOAD, RUNS, RESULTS = "plan.json", "workload", "runs", "results"
DELETE = "Delete it to measure again."
KEPT = ("parameters", "intersection_parameters", "steps", "seconds")  # of a run's provenance


@dataclass(frozen=True)
class Entry:
    """One run of the table: a row with its settings, and a seed."""

    row: str
    architecture: Architecture
    recipe: Recipe
    sections: Mapping[str, Mapping[str, Any]]  # settings as in the run folder
    seed: int

    @property
    def folder(self) -> str:
        """Folder name, for example CGA-KG-8-min-seed0."""
        letters = "".join(letter if letter.isalnum() or letter == "_" else "-" for letter in self.row)
        return f"{letters.strip('-')}-seed{self.seed}"


@dataclass(frozen=True)
class Reproduction:
    """A folder with the runs and results of all rows, their workload, and the steps of each row."""

    folder: Path
    graph: Graph
    workload: Workload
    steps: int

    @cached_property
    def questions(self) -> EvaluationSet:
        return from_workload(self.workload, self.graph, "test", None, 0)


def begin(
    folder: Path,
    graph: Graph,
    questions: Workload | Plan,
    steps: int | None,
    minutes: float,
    default: Entry,
    note: Callable[[str], None] = lambda _: None,
) -> Reproduction:
    """Create or reopen the folder; its workload and number of steps stay as they were at first."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = _read_plan(folder, graph, steps)
    if isinstance(questions, Plan):
        if not (folder / WORKLOAD).exists():
            note("Sampling the questions")
            sample(graph, folder / WORKLOAD, questions)
        questions = Workload.open(folder / WORKLOAD, graph)
    if plan is None:
        plan = {"graph": graph.fingerprint, "workload": str(questions.path), "steps": steps}
        if steps is None:
            note(f"Measuring how many steps of {default.row} fit into {minutes:g} minutes")
            seconds = seconds_per_step(graph, questions, default)
            plan |= {"steps": max(1, round(60.0 * minutes / seconds)), "minutes": minutes, "seconds_a_step": seconds}
        write_sealed(folder / PLAN, plan)
    elif Path(plan["workload"]).resolve() != questions.path.resolve():
        problem = f"was started with the questions of {plan['workload']}"
        raise FolderError(folder, problem, advice="Pass the same --workload, or another --out.")
    return Reproduction(folder, graph, questions, int(plan["steps"]))


def _read_plan(folder: Path, graph: Graph, steps: int | None) -> dict[str, Any] | None:
    """Read the plan of a folder; None if it is new. Raise FolderError if it is for another graph or budget."""
    path = folder / PLAN
    if not os.path.lexists(path):
        return None
    plan = read_sealed(path, "Pass another --out.")
    require_fields(plan, {"graph": str, "workload": str, "steps": int}, path, "Pass another --out.")
    if plan["graph"] != graph.fingerprint:
        raise FolderError(folder, f"was started for graph {plan['graph']}", advice="Pass that graph, or another --out.")
    if steps is not None and steps != plan["steps"]:
        advice = "Pass the same number, or another --out."
        raise FolderError(folder, f"was started with {plan['steps']:,} steps", advice=advice)
    return plan


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with a checksum of its content; a user may delete it, so that no manifest lists it."""
    sealed = {"format": FORMAT, **content}
    write_atomically(path, json.dumps({**sealed, "checksum": _checksum(sealed)}, indent=1))


def read_sealed(path: Path, advice: str) -> dict[str, Any]:
    """Read a file of `write_sealed`; those of earlier versions have neither format nor checksum."""
    content = read_json(path, advice, listed=False)
    checksum = content.pop("checksum", None)
    if "format" in content or checksum is not None:
        if checksum != _checksum(content):
            raise FolderError(path, "has changed since it was written: its checksum is another one", advice=advice)
        del content["format"]
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def seconds_per_step(graph: Graph, workload: Workload, entry: Entry) -> float:
    """Measure the time of a training step: mean of the faster half, since other work only slows steps down."""
    times: list[float] = []
    batches = Batches(graph.train, FromWorkload(workload), entry.recipe, entry.seed)
    encoder = new_encoder(entry.architecture, graph, entry.seed, "cpu")
    with tempfile.TemporaryDirectory(prefix="halfgraph-") as folder:
        budget = Budget(WARM_UP + SPEED_STEPS, validations=1)
        train(encoder, batches, budget, Path(folder), progress=lambda *_: times.append(time.monotonic()))
    gaps = np.sort(np.diff(times)[WARM_UP - 1 :])
    return float(gaps[: max(1, len(gaps) // 2)].mean())


def measure_entry(work: Reproduction, entry: Entry, threads: int | None, progress: Progress = lambda *_: None) -> bool:
    """Train a run, or continue it, and measure it; return False if that was done already."""
    out, path = work.folder / RUNS / entry.folder, work.folder / RESULTS / f"{entry.folder}.json"
    start(out, work.graph, entry.sections, entry.seed, work.workload, resume=out.exists())
    if os.path.lexists(path):
        return False
    if not is_finished(out):
        _train(work, entry, out, progress)
    predictor = EmbeddingPredictor.of(load_encoder(out, work.graph, entry.architecture), entry.row)
    provenance = read_provenance(out)
    require_fields(provenance, dict.fromkeys(KEPT[:3], int) | {"seconds": float}, out / PROVENANCE, AGAIN)
    others = {key: provenance[key] for key in KEPT} | {"run": str(out), "seed": entry.seed}
    _measure(path, predictor, work.questions, threads, others)
    remove_file(out / STATE)  # not needed any more, and three times the size of the model
    return True


def _train(work: Reproduction, entry: Entry, out: Path, progress: Progress) -> None:
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
    """Measure both baselines on at most `most` test questions of each structure."""
    for make, name in ((popularity, POPULARITY), (neighbour_vote, NEIGHBOUR_VOTE)):
        path = work.folder / RESULTS / f"{name.replace(' ', '-')}.json"
        if not os.path.lexists(path):
            _measure(path, make(work.graph.train), work.questions.sample(most, 0), threads, {})


def _measure(
    path: Path, predictor: Predictor, questions: EvaluationSet, threads: int | None, others: Mapping[str, Any]
) -> None:
    tune_memory()
    figures = evaluate(predictor, questions, threads=threads)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, {**figures, **others})


def results(work: Reproduction) -> list[Measured]:
    """Read all results so far, in the order of the paper's table, baselines last."""
    measured = []
    order = [row.name for row in ROWS] + [POPULARITY, NEIGHBOUR_VOTE]
    for path in sorted((work.folder / RESULTS).glob("*.json")):
        figures = read_sealed(path, DELETE)
        require_fields(figures, {"name": str, **dict.fromkeys(("macro", "auc", "apr", "mrr"), dict)}, path, DELETE)
        if figures["name"] not in order:
            raise FolderError(path, "has no row of the table", advice=DELETE)
        about = {key: figures[key] for key in KEPT if key in figures}
        measured.append(Measured(figures["name"], figures, figures.get("seed"), about))
    return sorted(measured, key=lambda own: (order.index(own.row), own.seed or 0))


def entries(rows: Sequence[str], seeds: int, make: Callable[[str, int], Entry]) -> list[Entry]:
    """List the runs of the rows by seed, then by row, so that the table is complete early."""
    wanted = [(seed, row) for row in rows for seed in range(seeds if row in SEVERAL_SEEDS else 1)]
    return [make(row, seed) for seed, row in sorted(wanted, key=lambda pair: pair[0])]
