"""Easy and hard answers computed again: which graphs they refer to, and whether a workload has them right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.folder import Graph
from halfgraph.query.exact import Exact, Ragged
from halfgraph.workload.folder import Workload
from halfgraph.workload.nested import GraphNames, to_nested
from halfgraph.workload.sampling import Questions

Keys = NDArray[np.int64]
SAMPLE = 2_000
PIECE = 4_096  # questions whose answers are in memory at once
SHOWN = 5


@dataclass(frozen=True)
class AnswerConvention:
    """The graphs that the easy answers and all answers of a split refer to, and how many of those tried agree."""

    split: str
    easy_on: str
    all_on: str
    tried: int = 0
    equal: int = 0


CONVENTIONS = (
    AnswerConvention("valid", "train", "known"),  # validation questions
    AnswerConvention("test", "known", "whole"),  # test questions as the literature publishes them
    AnswerConvention("test", "train", "whole"),  # our own test questions: easy is what the training graph answers
)


def find_convention(
    graph: Graph, questions: Sequence[Questions], split: str, generator: np.random.Generator
) -> AnswerConvention:
    """Return the convention that most of a random sample agree with, among those of the split unless it is "auto"."""
    chosen = [sample for sample in _sample(questions, generator) if len(sample)]
    tried = sum(map(len, chosen))
    answers = {name: [_answers(graph, name, sample) for sample in chosen] for name in ("train", "known", "whole")}

    def measure(convention: AnswerConvention) -> AnswerConvention:
        rows = zip(chosen, answers[convention.easy_on], answers[convention.all_on], strict=True)
        different = sum(len(differing_rows(*row, len(graph.entities))) for row in rows)
        return replace(convention, tried=tried, equal=tried - different)

    allowed = [convention for convention in CONVENTIONS if split in ("auto", convention.split)]
    return max(map(measure, allowed), key=lambda convention: convention.equal)


def _sample(sets: Sequence[Questions], generator: np.random.Generator) -> list[Questions]:
    """Draw up to SAMPLE of the questions uniformly."""
    total = sum(map(len, sets))
    rows = np.sort(generator.choice(total, min(total, SAMPLE), replace=False, shuffle=False))
    starts = np.cumsum([0, *map(len, sets)])
    return [
        questions.take(rows[(rows >= first) & (rows < last)] - first)
        for questions, first, last in zip(sets, starts, starts[1:], strict=False)
    ]


def _answers(graph: Graph, name: str, questions: Questions) -> Ragged:
    return Exact(graph.view(name)).answer_sets(questions.batch())


def differing_rows(questions: Questions, easy: Ragged, everything: Ragged, entity_count: int) -> NDArray[np.int64]:
    """Return the rows whose easy or hard answers differ from these, or whose answer is not an answer."""
    # Every key occurs once: without assume_unique numpy spends most of the time on checking that.
    all_keys, easy_keys = _keys(everything, entity_count), _keys(easy, entity_count)
    if questions.structure.has_negation:  # wrong answers that a missing triple fails to exclude
        easy_keys = np.intersect1d(easy_keys, all_keys, assume_unique=True)
    wrong = []
    if questions.easy is not None:
        wrong.append(np.setxor1d(_keys(questions.easy, entity_count), easy_keys, assume_unique=True))
    if questions.hard is not None:
        hard = np.setdiff1d(all_keys, easy_keys, assume_unique=True)
        wrong.append(np.setxor1d(_keys(questions.hard, entity_count), hard, assume_unique=True))
    answers = np.arange(len(questions)) * entity_count + questions.answers
    wrong.append(np.setdiff1d(answers, all_keys, assume_unique=True))
    return np.unique(np.concatenate(wrong) // entity_count)


def _keys(sets: Ragged, entity_count: int) -> Keys:
    """Return one number for each row and entity of the sets."""
    keys: Keys = np.repeat(np.arange(len(sets)), sets.sizes()) * entity_count + sets.values
    return keys


@dataclass
class Verified:
    """The number of queries, of those with exactly the answers of the graphs, and the first that differ."""

    queries: int = 0
    equal: int = 0
    different: list[dict[str, Any]] = field(default_factory=list)


def verify(graph: Graph, workload: Workload, lines: Mapping[tuple[str, str], Sequence[int]] | None = None) -> Verified:
    """Compute every easy and hard answer of a workload again; `lines` says where each question came from."""
    verified, names = Verified(), GraphNames(graph)
    for split in workload.description["questions"]:
        for structure in workload.structures(split):
            questions = workload.questions(split, structure)
            origins = (lines or {}).get((split, structure.name))
            for first in range(0, len(questions), PIECE):
                piece = questions.take(np.arange(first, min(first + PIECE, len(questions))))
                easy, everything = (_answers(graph, name, piece) for name in workload.graphs(split))
                rows = differing_rows(piece, easy, everything, len(graph.entities))
                verified.queries += len(piece)
                verified.equal += len(piece) - len(rows)
                for row in rows[: max(0, SHOWN - len(verified.different))].tolist():
                    line = {"line": origins[first + row]} if origins else {}
                    difference = _difference(names, piece, row, easy[row], everything[row])
                    verified.different.append({"split": split, **line, **difference})
    return verified


def _difference(names: GraphNames, questions: Questions, row: int, easy: Any, everything: Any) -> dict[str, Any]:
    """Describe what is wrong with a question: the first of its wrong answers, and of those missing."""
    description: dict[str, Any] = {
        "structure": questions.structure.short,
        "query": nested_query(questions, row, names),
    }
    expected = {"easy": np.intersect1d(easy, everything), "hard": np.setdiff1d(everything, easy)}
    for name, right in expected.items():
        if (column := getattr(questions, name)) is not None:
            wrong, missing = np.setdiff1d(column[row], right), np.setdiff1d(right, column[row])
            for key, entities in ((f"wrong_{name}", wrong), (f"missing_{name}", missing)):
                if len(entities):
                    description[key] = [names.entity_name(int(entity)) for entity in entities[:SHOWN]]
    if int(questions.answers[row]) not in everything:
        description["wrong_answer"] = names.entity_name(int(questions.answers[row]))
    return description


def nested_query(questions: Questions, row: int, names: GraphNames) -> list[Any]:
    """Return one of the queries as nested lists."""
    anchors, relations = questions.anchors[row], questions.relations[row]
    return to_nested(
        questions.structure.query,
        lambda column: names.entity_name(int(anchors[column])),
        lambda column: names.graph.relation_name(int(relations[column])),
    )
