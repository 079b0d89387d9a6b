"""A workload on disk: questions of every structure for training, validation and test, as memory-mapped columns."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from halfgraph.errors import EmptyGraph, FolderError, OtherGraph
from halfgraph.graph.arrays import ArrayCheck, load_array, save_array
from halfgraph.graph.description import FORMAT, read_description
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph
from halfgraph.graph.manifest import has_file, require_fields
from halfgraph.graph.new_folder import new_folder
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.structures import NAMED, NEIGHBOURHOODS, STRUCTURES, Structure, structure_named
from halfgraph.workload.negatives import NegativeCounts, add_answers, add_negatives, draw_distinct, held_out_edges
from halfgraph.workload.sampling import Drawn, Questions, Sampler, Uniform, every_edge

DESCRIPTION = "workload.json"
NEEDED = ("anchors", "relations", "answers", "negative", "hard_negative")
# The graphs that the easy answers and all answers of a split refer to.
GRAPHS = {"train": ("train", "train"), "valid": ("train", "known"), "test": ("train", "whole")}
_AGAIN = "Make the workload again."


@dataclass(frozen=True)
class Counts:
    """The number of questions: for training in total with 2 and with 3 edges, for validation and test per structure."""

    two_edges: int = 1_000_000
    three_edges: int = 1_000_000
    valid: int = 1_000
    test: int = 10_000
    neighbourhoods: int | None = None  # of each size; default: the number of entities


@dataclass(frozen=True)
class Plan:
    """What to sample."""

    counts: Counts
    seed: int = 0
    uniform: Uniform = "answers"
    structures: tuple[Structure, ...] = STRUCTURES
    negatives: NegativeCounts = field(default_factory=NegativeCounts)
    threads: int | None = None

    def training(self, structure: Structure, graph: Graph) -> int:
        """Return the number of training questions of a structure; every edge is one."""
        counts, edges = self.counts, structure.relation_count
        if structure in NEIGHBOURHOODS:
            return len(graph.entities) if counts.neighbourhoods is None else counts.neighbourhoods
        if edges == 1:
            return len(graph.train.tails)
        same_size = sum(other.relation_count == edges for other in self.structures)
        return {2: counts.two_edges, 3: counts.three_edges}[edges] // max(1, same_size)


Progress = Callable[[str, Structure, int], None]  # called with a split, a structure and its number of questions


def sample(graph: Graph, out: Path, plan: Plan, progress: Progress = lambda *_: None) -> "Workload":
    """Sample a workload into a new folder."""
    with new_folder(out, made_by="the workload") as folder:
        tallies: dict[str, dict[str, Any]] = {}
        warm_up()
        start = time.perf_counter()
        for split, drawn in draw(graph, plan):
            questions = drawn.questions
            save_questions(folder, split, questions)
            tallies.setdefault(split, {})[questions.structure.name] = summary(questions, drawn.tally)
            progress(split, questions.structure, len(questions))
        seconds = time.perf_counter() - start
        rows = [row for rows in tallies.values() for row in rows.values()]
        total = sum(row["questions"] for row in rows)
        if not total:
            reasons = sum((Counter(row["rejected"]) for row in rows), Counter[str]()).most_common()
            rejections = ", ".join(f"{reason} ({count:,} times)" for reason, count in reasons)
            problem = f"no question was found: {rejections or 'the plan asks for none'}"
            raise EmptyGraph(problem, path=graph.path, advice="Choose other structures, or more questions.")
        graphs = {split: {"easy_on": GRAPHS[split][0], "all_on": GRAPHS[split][1]} for split in tallies}
        others = {"seed": plan.seed, "uniform": plan.uniform, "questions_per_second": round(total / seconds, 1)}
        write_description(folder, graph, tallies, graphs, **others)
    return Workload.open(out)


def warm_up() -> None:
    """Compile the kernels, so that the reported speed excludes it."""
    tiny = KnowledgeGraph.of(np.array([[0, 0, 1]], np.int32), EntityTypes(("Thing",), np.array([0, 2])), 2)
    sampler = Sampler(tiny, threads=1)
    questions = sampler.draw(STRUCTURES[0], 1, 0, negatives=False, hard_negatives=False).questions
    Exact(tiny).answer_sets(questions.batch())
    held_out_edges(tiny, sampler, STRUCTURES[0], 1, 0)


def planned(plan: Plan, graph: Graph) -> dict[str, dict[str, int]]:
    """Return the number of questions to draw, by split and structure."""
    structures = (*plan.structures, *NEIGHBOURHOODS)
    counts = {"train": {structure.name: plan.training(structure, graph) for structure in structures}}
    for split in ("valid", "test") if graph.has_split else ():
        counts[split] = {structure.name: getattr(plan.counts, split) for structure in plan.structures}
    return {split: {name: count for name, count in rows.items() if count} for split, rows in counts.items()}


def draw(graph: Graph, plan: Plan) -> Iterator[tuple[str, Drawn]]:
    """Draw the questions of a plan, structure by structure and with their split, training questions first."""
    sampler = Sampler(graph.train, plan.uniform, threads=plan.threads)
    for structure in (*plan.structures, *NEIGHBOURHOODS):
        if structure.relation_count == 1:
            yield "train", Drawn(every_edge(graph.train, structure), Counter())
        elif count := plan.training(structure, graph):
            negatives = structure not in NEIGHBOURHOODS
            yield "train", sampler.draw(structure, count, plan.seed, negatives=negatives, hard_negatives=negatives)
    if graph.has_split:
        yield from _draw_held_out(graph, plan, "valid", graph.known, graph.train, plan.seed + 1_000_003)
        yield from _draw_held_out(graph, plan, "test", graph.whole, graph.known, plan.seed + 2_000_006)


def _draw_held_out(
    graph: Graph, plan: Plan, split: str, view: KnowledgeGraph, held_from: KnowledgeGraph, seed: int
) -> Iterator[tuple[str, Drawn]]:
    """Draw the validation or test questions, with all their answers and negatives."""
    # A negative is no answer on the whole graph: otherwise a model that predicts a test triple would be counted wrong.
    sampler = Sampler(view, plan.uniform, graph.train, held_from, graph.whole, plan.threads)
    count = getattr(plan.counts, split)
    for structure in plan.structures if count else ():
        if structure.relation_count == 1:
            drawn = held_out_edges(graph.view(split), sampler, structure, count, seed)
        else:
            drawn = draw_distinct(sampler, structure, count, seed)
        questions = add_answers(drawn.questions, sampler, plan.threads)
        yield split, Drawn(add_negatives(questions, graph.whole, seed, plan.negatives, plan.threads), drawn.tally)


def summary(questions: Questions, tally: Mapping[str, int]) -> dict[str, Any]:
    """Return the number of questions, the mean number of answers and the rejections by reason."""
    rejected = {reason: count for reason, count in tally.items() if reason != "kept"}
    row: dict[str, Any] = {"questions": len(questions), "rejected": rejected}
    if questions.easy is not None and questions.hard is not None and len(questions):
        row["mean_easy"] = round(float(questions.easy.sizes().mean()), 2)
        row["mean_hard"] = round(float(questions.hard.sizes().mean()), 2)
    return row


def write_description(
    folder: Path, graph: Graph, tallies: Mapping[str, Mapping[str, Any]], graphs: Mapping[str, Any], **others: Any
) -> None:
    """Write workload.json: counts by split and structure, and the graphs that their answers refer to."""
    counts = {split: {name: row["questions"] for name, row in rows.items()} for split, rows in tallies.items()}
    known = {"format": FORMAT, "graph": graph.fingerprint, "questions": counts, "graphs": graphs, "tallies": tallies}
    (folder / DESCRIPTION).write_text(json.dumps({**known, **others}, indent=1), encoding="utf-8")


def save_questions(folder: Path, split: str, questions: Questions) -> None:
    """Write the questions' columns to the folder."""
    for column in fields(questions):
        value = getattr(questions, column.name)
        stem = f"{split}.{questions.structure.name}.{column.name}"
        if isinstance(value, Ragged):
            save_array(folder / f"{stem}.values.npy", value.values)
            save_array(folder / f"{stem}.offsets.npy", value.offsets)
        elif isinstance(value, np.ndarray):
            save_array(folder / f"{stem}.npy", value)


def _check_description(description: Mapping[str, Any], path: Path) -> None:
    """Raise FolderError unless a description has the numbers of questions and the graphs of its splits."""
    require_fields(description, {"graph": str, "questions": dict}, path, _AGAIN)
    known = {structure.name for structure in NAMED}
    for split, rows in description["questions"].items():
        if split not in GRAPHS or not isinstance(rows, dict) or not known.issuperset(rows):
            raise FolderError(path, "has questions of an unknown split or structure", advice=_AGAIN)
        require_fields(rows, dict.fromkeys(rows, int), path, _AGAIN, f"questions.{split}.")
    graphs = description.get("graphs", {})
    if not isinstance(graphs, dict):
        raise FolderError(path, 'has no valid "graphs"', advice=_AGAIN)
    for split, views in graphs.items():
        if not isinstance(views, dict) or not {views.get("easy_on"), views.get("all_on")} <= {
            "train",
            "known",
            "whole",
        }:
            raise FolderError(path, f'has no valid "graphs.{split}"', advice=_AGAIN)


@dataclass(frozen=True)
class Workload:
    """A folder of questions."""

    path: Path
    description: Mapping[str, Any]
    ids: tuple[int, int] = (2**31, 2**31)  # the numbers of relations, in both directions, and entities

    @classmethod
    def open(cls, path: str | Path, graph: Graph | None = None) -> "Workload":
        """Open a workload folder; with a graph, check that it was made for it."""
        path = Path(path)
        made_by = "halfgraph sample GRAPH --out FOLDER"
        description = read_description(path / DESCRIPTION, "workload", made_by, _AGAIN)
        _check_description(description, path / DESCRIPTION)
        if graph is not None and description["graph"] != graph.fingerprint:
            raise OtherGraph(path, expected=description["graph"], found=graph.fingerprint)
        if graph is None:
            return cls(path, description)
        return cls(path, description, (2 * len(graph.relations), len(graph.entities)))

    def structures(self, split: str) -> list[Structure]:
        counts = self.description["questions"].get(split, {})
        return [structure_named(name) for name, count in counts.items() if count]

    def graphs(self, split: str) -> tuple[str, str]:
        """Return the graphs of a split's easy answers and of all its answers: train, known or whole."""
        graphs = self.description["graphs"][split]
        return graphs["easy_on"], graphs["all_on"]

    def questions(self, split: str, structure: Structure) -> Questions:
        """Return the questions of a structure in a split, memory-mapped."""
        stem, columns = f"{split}.{structure.name}", dict[str, Any]()
        if structure.name not in self.description["questions"].get(split, {}):
            raise FolderError(self.path, f"has no {split} questions of {structure.name}", advice=_AGAIN)
        for column in fields(Questions):
            path = self.path / f"{stem}.{column.name}.npy"
            values, offsets = path.with_suffix(".values.npy"), path.with_suffix(".offsets.npy")
            if column.name == "structure":
                continue
            if has_file(values, _AGAIN) or has_file(offsets, _AGAIN):
                columns[column.name] = Ragged(
                    load_array(values, _AGAIN, np.int32), load_array(offsets, _AGAIN, np.int64)
                )
            elif has_file(path, _AGAIN) or column.name in NEEDED:
                ndim = 2 if column.name in ("anchors", "relations") else 1
                columns[column.name] = load_array(path, _AGAIN, np.int32, ndim)
        self._check(stem, structure, columns, self.description["questions"][split][structure.name])
        return Questions(structure, **columns)

    def _check(self, stem: str, structure: Structure, columns: Mapping[str, Any], count: int) -> None:
        """Raise FolderError unless all columns have `count` rows, with ids of the graph."""
        check, most = ArrayCheck.of(self.path, _AGAIN), np.iinfo(np.int32).max
        relations, entities = self.ids
        for name, column in columns.items():
            below = {"relations": relations, "missing": most}.get(name, entities)
            least = -1 if name.endswith("negative") else 0
            if isinstance(column, Ragged):
                check.ranges(f"{stem}.{name}.offsets.npy", column.offsets, len(column.values), count)
                check.ids(f"{stem}.{name}.values.npy", column.values, len(column.values), below)
            else:
                check.ids(f"{stem}.{name}.npy", column, count, below, least)
        widths = {"anchors": structure.anchor_count, "relations": structure.relation_count}
        for name, width in widths.items():
            if columns[name].shape[1] != width:
                problem = f"has {columns[name].shape[1]} columns, expected {width}"
                raise FolderError(self.path / f"{stem}.{name}.npy", problem, advice=_AGAIN)
