"""The questions that models are evaluated on: from a workload, from a file, or sampled."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError, InputError
from halfgraph.evaluation.ranking import missing_triples, sets_of
from halfgraph.graph.folder import Graph
from halfgraph.query.structures import STRUCTURES, Structure
from halfgraph.workload.folder import GRAPHS, Counts, Plan, Workload, draw
from halfgraph.workload.jsonl import import_workload
from halfgraph.workload.negatives import NegativeCounts
from halfgraph.workload.sampling import Questions

SAMPLED = 1_000  # questions of each structure, if none are given
ORDER = ("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up")  # as recent papers list them


@dataclass(frozen=True)
class EvaluationSet:
    """Held-out questions by structure, with the fewest missing triples that each hard answer needs."""

    sets: tuple[Questions, ...]
    missing: tuple[NDArray[np.int8], ...]
    split: str
    source: str
    view: str  # of the graph: the triples that easy answers need, which count as known

    @property
    def counts(self) -> dict[str, int]:
        return {questions.structure.short: len(questions) for questions in self.sets}

    @property
    def total(self) -> int:
        return sum(map(len, self.sets))

    def sample(self, limit: int, seed: int) -> "EvaluationSet":
        """Draw at most `limit` questions of each structure."""
        sets, missing = [], []
        for questions, numbers in zip(self.sets, self.missing, strict=True):
            rows = _sample_rows(questions, limit, seed)
            of_answers = np.repeat(np.arange(len(questions)), sets_of(questions, "hard").sizes())
            sets.append(questions.take(rows))
            missing.append(numbers[np.isin(of_answers, rows)])
        return replace(self, sets=tuple(sets), missing=tuple(missing))


def _sample_rows(questions: Questions, limit: int, seed: int) -> NDArray[np.int64]:
    """Draw at most `limit` rows, ascending; a smaller limit does not give a subset of a larger one's."""
    generator = np.random.default_rng([seed, len(questions)])
    return np.sort(generator.choice(len(questions), min(limit, len(questions)), replace=False, shuffle=False))


def from_workload(workload: Workload, graph: Graph, split: str, limit: int | None, seed: int) -> EvaluationSet:
    """Take the questions of a split of a workload, at most `limit` of each structure at random."""
    structures = workload.structures(split)
    if not structures:
        has = ", ".join(workload.description["questions"])
        raise FolderError(workload.path, f"has no {split} questions", advice=f"It has: {has}.")
    sets = [workload.questions(split, structure) for structure in structures]
    if limit is not None:
        sets = [questions.take(_sample_rows(questions, limit, seed)) for questions in sets]
    views = workload.graphs(split) if split in workload.description.get("graphs", {}) else GRAPHS[split]
    return _evaluation_set(sets, graph, views, split, str(workload.path))


@contextmanager
def from_file(path: Path, graph: Graph, limit: int | None, seed: int) -> Iterator[EvaluationSet]:
    """Read the questions of a file of JSON lines or pickles into a temporary workload."""
    with tempfile.TemporaryDirectory(prefix="halfgraph-") as folder:
        workload = import_workload(path, graph, Path(folder) / "questions").workload
        splits = [split for split in workload.description["questions"] if split != "train"]
        if not splits:
            problem = "no question has hard answers, so there is nothing to measure"
            raise InputError(problem, path=path, advice='Give each its "easy" and "hard" answers.')
        yield replace(from_workload(workload, graph, splits[-1], limit, seed), source=str(path))


def sample_questions(graph: Graph, split: str, limit: int | None, seed: int) -> EvaluationSet:
    """Sample questions of the paper's seven structures that the training graph cannot answer."""
    if not graph.view(split).triple_count:
        problem = f"has no {split} triples, so there are no questions to measure with"
        other = "pass --split valid, " if split == "test" and graph.valid.triple_count else ""
        raise FolderError(graph.path, problem, advice=f"Import it with --split 90/1/9, {other}or pass --queries FILE.")
    sets = held_out_questions(graph, split, SAMPLED if limit is None else limit, seed)
    return _evaluation_set(sets, graph, GRAPHS[split], split, f"sampled from {graph.path} with seed {seed}")


def held_out_questions(
    graph: Graph,
    split: str,
    each: int,
    seed: int,
    structures: Sequence[Structure] = STRUCTURES,
    negatives: NegativeCounts | None = None,
) -> list[Questions]:
    """Draw fresh questions of a split for each structure; none if the graph has no split."""
    if not graph.has_split:
        return []
    counts = Counts(0, 0, each if split == "valid" else 0, each if split == "test" else 0, 0)
    plan = Plan(counts, seed, structures=tuple(structures), negatives=negatives or NegativeCounts())
    return [drawn.questions for drawn_split, drawn in draw(graph, plan) if drawn_split == split and drawn.questions]


def _evaluation_set(
    sets: list[Questions], graph: Graph, views: tuple[str, str], split: str, source: str
) -> EvaluationSet:
    """Order the questions by structure and count their missing triples."""
    known, whole = (graph.view(name) for name in views)
    kept = sorted((questions for questions in sets if len(questions)), key=_order)
    missing = [missing_triples(questions, whole, known) for questions in kept]
    return EvaluationSet(tuple(kept), tuple(missing), split, source, views[0])


def _order(questions: Questions) -> int:
    short = questions.structure.short
    return ORDER.index(short) if short in ORDER else len(ORDER)
