"""The questions that models are measured on: of a workload, of a file, or drawn for the purpose."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import FolderError, InputError
from halfgraph.evaluation.ranking import missing_triples
from halfgraph.graph.folder import Graph
from halfgraph.workload.folder import GRAPHS, Counts, Plan, Workload, draw
from halfgraph.workload.jsonl import import_workload
from halfgraph.workload.sampling import Questions

DRAWN = 1_000  # questions of each structure, where none are given
ORDER = ("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up")  # as the newer literature lists them


@dataclass(frozen=True)
class EvaluationSet:
    """Held-out questions, structure by structure, with the fewest missing triples that each hard answer needs."""

    sets: tuple[Questions, ...]
    missing: tuple[NDArray[np.int8], ...]
    split: str
    source: str

    @property
    def counts(self) -> dict[str, int]:
        """How many questions of each structure."""
        return {questions.structure.short: len(questions) for questions in self.sets}

    def some(self, limit: int, seed: int) -> "EvaluationSet":
        """At most so many of each structure, at random."""
        chosen = [_some(questions, limit, seed) for questions in self.sets]
        kept = [
            (questions.take(rows), missing[_places(questions, rows)])
            for questions, missing, rows in zip(self.sets, self.missing, chosen, strict=True)
        ]
        return EvaluationSet(
            tuple(some for some, _ in kept), tuple(numbers for _, numbers in kept), self.split, self.source
        )


def _some(questions: Questions, limit: int, seed: int) -> NDArray[np.int64]:
    """The rows of at most so many questions, ascending; those of a smaller limit are no subset of a larger one's."""
    generator = np.random.default_rng([seed, len(questions)])
    return np.sort(generator.choice(len(questions), min(limit, len(questions)), replace=False, shuffle=False))


def _places(questions: Questions, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the hard answers of some questions stand among all."""
    if questions.hard is None or not len(rows):
        return np.empty(0, np.int64)
    offsets = questions.hard.offsets
    return np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])


def of_workload(workload: Workload, graph: Graph, split: str, limit: int | None, seed: int) -> EvaluationSet:
    """The questions of a split of a workload, at most `limit` of each structure at random."""
    structures = workload.structures(split)
    if not structures:
        has = ", ".join(workload.description["questions"])
        raise FolderError(workload.path, f"has no {split} questions", advice=f"It has: {has}.")
    sets = [workload.questions(split, structure) for structure in structures]
    on = workload.graphs(split) if split in workload.description.get("graphs", {}) else GRAPHS[split]
    return _asked(sets, graph, on, split, str(workload.path), limit, seed)


@contextmanager
def of_file(path: Path, graph: Graph, limit: int | None, seed: int) -> Iterator[EvaluationSet]:
    """The questions of a file of JSON lines or pickles, while its columns are kept in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="halfgraph-") as folder:
        workload = import_workload(path, graph, Path(folder) / "questions").workload
        splits = [split for split in workload.description["questions"] if split != "train"]
        if not splits:
            problem = "no question has hard answers, so there is nothing to measure"
            raise InputError(problem, path=path, advice='Give each its "easy" and "hard" answers.')
        asked = of_workload(workload, graph, splits[-1], limit, seed)
        yield EvaluationSet(asked.sets, asked.missing, asked.split, str(path))


def drawn(graph: Graph, split: str, limit: int | None, seed: int) -> EvaluationSet:
    """Fresh questions of a split that the training graph cannot answer, of the paper's seven structures."""
    if not graph.has_split:
        problem = "has no split, so there are no questions to measure with"
        raise FolderError(graph.path, problem, advice="Import it with --split 90/1/9, or pass --queries FILE.")
    each = DRAWN if limit is None else limit
    counts = Counts(0, 0, each if split == "valid" else 0, each if split == "test" else 0, 0)
    sets = [some.questions for its, some in draw(graph, Plan(counts, seed)) if its == split]
    return _asked(sets, graph, GRAPHS[split], split, f"drawn from {graph.path} with seed {seed}", None, seed)


def _asked(
    sets: list[Questions], graph: Graph, on: tuple[str, str], split: str, source: str, limit: int | None, seed: int
) -> EvaluationSet:
    """The questions in the usual order, with the missing triples counted."""
    kept = sorted((questions for questions in sets if len(questions)), key=_place)
    if limit is not None:
        kept = [questions.take(_some(questions, limit, seed)) for questions in kept]
    known, whole = (graph.view(name) for name in on)
    missing = [missing_triples(questions, whole, known) for questions in kept]
    return EvaluationSet(tuple(kept), tuple(missing), split, source)


def _place(questions: Questions) -> int:
    short = questions.structure.short
    return ORDER.index(short) if short in ORDER else len(ORDER)
