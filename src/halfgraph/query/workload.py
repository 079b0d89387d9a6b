"""A workload on disk: questions of every structure for training, validation and test, as memory-mapped columns."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from halfgraph.errors import FolderError, OtherGraph
from halfgraph.graph.folder import Graph, load_array, new_folder, save_array
from halfgraph.query.exact import Ragged
from halfgraph.query.negatives import Judging, draw_distinct, held_out_edges, judged
from halfgraph.query.sampling import Drawn, Questions, Sampler, Uniform, every_edge
from halfgraph.query.shapes import NEIGHBOURHOODS, STRUCTURES, Shape, shape_named

FORMAT = 1
DESCRIPTION = "workload.json"
_AGAIN = "Make the workload again."


@dataclass(frozen=True)
class Counts:
    """How many questions of a structure: of 2 and of 3 edges in all for training, of each for validation and test."""

    two_edges: int = 1_000_000
    three_edges: int = 1_000_000
    valid: int = 1_000
    test: int = 10_000
    neighbourhoods: int | None = None  # of each size; as many as there are entities if not given

    def training(self, shape: Shape, structures: tuple[Shape, ...], entity_count: int) -> int:
        """How many training questions of a structure."""
        if shape in NEIGHBOURHOODS:
            return entity_count if self.neighbourhoods is None else self.neighbourhoods
        total = {2: self.two_edges, 3: self.three_edges}[shape.relation_count]
        return total // max(1, sum(other.relation_count == shape.relation_count for other in structures))


@dataclass(frozen=True)
class Plan:
    """What to sample."""

    counts: Counts
    seed: int = 0
    uniform: Uniform = "answers"
    structures: tuple[Shape, ...] = STRUCTURES
    judging: Judging = field(default_factory=Judging)
    threads: int | None = None


Told = Callable[[str, Shape, int], None]  # a split, a structure, and how many of its questions are there


def sample(graph: Graph, out: Path, plan: Plan, told: Told = lambda *_: None) -> "Workload":
    """The workload that a plan makes of a graph, in its folder."""
    with new_folder(out, made_by="the workload") as folder:
        tallies: dict[str, dict[str, Any]] = {}
        begun = time.perf_counter()
        for split, drawn in draw(graph, plan):
            save_questions(folder, split, drawn.questions)
            tallies.setdefault(split, {})[drawn.questions.shape.name] = summary(drawn)
            told(split, drawn.questions.shape, len(drawn.questions))
        seconds = time.perf_counter() - begun
        total = sum(row["questions"] for rows in tallies.values() for row in rows.values())
        description = {
            "format": FORMAT,
            "graph": graph.fingerprint,
            "seed": plan.seed,
            "uniform": plan.uniform,
            "questions": {
                split: {name: row["questions"] for name, row in rows.items()} for split, rows in tallies.items()
            },
            "tallies": tallies,
            "questions_per_second": round(total / seconds, 1),
        }
        write_description(folder, description)
    return Workload.open(out)


def draw(graph: Graph, plan: Plan) -> Iterator[tuple[str, Drawn]]:
    """Each set of questions of the plan with its split, training questions first."""
    threads: Any = {} if plan.threads is None else {"threads": plan.threads}
    sampler = Sampler(graph.train, plan.uniform, **threads)
    for shape in (*plan.structures, *NEIGHBOURHOODS):
        if shape.relation_count == 1:
            yield "train", Drawn(every_edge(graph.train, shape), {})
            continue
        count = plan.counts.training(shape, plan.structures, len(graph.entities))
        usual = shape not in NEIGHBOURHOODS
        if count:
            yield "train", sampler.draw(shape, count, plan.seed, negatives=usual, hard_negatives=usual)
    if graph.has_split:
        yield from _held_out(
            graph, plan, "valid", Sampler(graph.known, plan.uniform, graph.train, graph.train, **threads)
        )
        yield from _held_out(
            graph, plan, "test", Sampler(graph.whole, plan.uniform, graph.train, graph.known, **threads)
        )


def _held_out(graph: Graph, plan: Plan, split: str, sampler: Sampler) -> Iterator[tuple[str, Drawn]]:
    """The validation or test questions, with all that they are judged by."""
    count = plan.counts.valid if split == "valid" else plan.counts.test
    seed = plan.seed + (1 if split == "valid" else 2) * 1_000_003
    for shape in plan.structures if count else ():
        if shape.relation_count == 1:
            drawn = held_out_edges(graph.view(split), sampler.graph, graph.train, shape, count, seed)
        else:
            drawn = draw_distinct(sampler, shape, count, seed)
        questions = judged(drawn.questions, sampler.graph, graph.train, seed, plan.judging)
        yield split, Drawn(questions, drawn.tally)


def summary(drawn: Drawn) -> dict[str, Any]:
    """What to say of some questions: how many, how many answers they have, how many were rejected and why."""
    questions = drawn.questions
    row: dict[str, Any] = {
        "questions": len(questions),
        "rejected": {k: n for k, n in drawn.tally.items() if k != "kept"},
    }
    if questions.easy is not None and questions.hard is not None and len(questions):
        row["mean_easy"] = round(float(questions.easy.sizes().mean()), 2)
        row["mean_hard"] = round(float(questions.hard.sizes().mean()), 2)
    return row


def write_description(folder: Path, description: Mapping[str, Any]) -> None:
    """Nothing; workload.json is written."""
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=1), encoding="utf-8")


def save_questions(folder: Path, split: str, questions: Questions) -> None:
    """Nothing; the columns of some questions are written."""
    for column in fields(questions):
        value = getattr(questions, column.name)
        stem = f"{split}.{questions.shape.name}.{column.name}"
        if isinstance(value, Ragged):
            save_array(folder / f"{stem}.values.npy", value.values)
            save_array(folder / f"{stem}.offsets.npy", value.offsets)
        elif isinstance(value, np.ndarray):
            save_array(folder / f"{stem}.npy", value)


@dataclass(frozen=True)
class Workload:
    """Questions on disk."""

    path: Path
    description: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | Path, graph: Graph | None = None) -> "Workload":
        """The workload in a folder; of this graph, if one is given."""
        path = Path(path)
        try:
            description = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            problem = "no workload here" if path.is_dir() else "no such folder"
            raise FolderError(path, problem, advice="Make one with: halfgraph sample GRAPH --out FOLDER") from error
        except (OSError, ValueError) as error:
            raise FolderError(path / DESCRIPTION, f"cannot be read: {error}", advice=_AGAIN) from error
        if description.get("format") != FORMAT:
            problem = f"is of format {description.get('format')}, and this halfgraph reads format {FORMAT}"
            raise FolderError(path, problem, advice=_AGAIN)
        if graph is not None and description["graph"] != graph.fingerprint:
            raise OtherGraph(path, expected=description["graph"], found=graph.fingerprint)
        return cls(path, description)

    def structures(self, split: str) -> list[Shape]:
        """The structures that have questions in a split."""
        return [shape_named(name) for name, count in self.description["questions"].get(split, {}).items() if count]

    def questions(self, split: str, shape: Shape) -> Questions:
        """The questions of a structure in a split, memory-mapped."""
        columns: dict[str, Any] = {}
        for column in fields(Questions):
            stem = f"{split}.{shape.name}.{column.name}"
            if (self.path / f"{stem}.npy").exists():
                columns[column.name] = self._array(stem)
            elif (self.path / f"{stem}.values.npy").exists():
                columns[column.name] = Ragged(self._array(f"{stem}.values"), self._array(f"{stem}.offsets"))
        if "answers" not in columns:
            raise FolderError(self.path, f"has no {split} questions of {shape.name}", advice=_AGAIN)
        return Questions(shape, **columns)

    def _array(self, name: str) -> Any:
        try:
            return load_array(self.path / f"{name}.npy")
        except (OSError, ValueError) as error:
            raise FolderError(self.path / f"{name}.npy", f"cannot be read: {error}", advice=_AGAIN) from error
