"""Easy and hard answers computed anew: which graphs they are on, and whether a workload has them right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.exact import Exact, Ragged
from halfgraph.workload.folder import Workload
from halfgraph.workload.nested import Names, to_nested
from halfgraph.workload.sampling import Questions

Keys = NDArray[np.int64]
# A split, the graph that easy answers are on, and the graph that all answers are on.
CUSTOMS = (
    ("valid", "train", "known"),  # validation questions, of everybody
    ("test", "known", "whole"),  # test questions as the field publishes them
    ("test", "train", "whole"),  # our own: easy is what the training graph gives
)
SAMPLE = 2_000
PIECE = 4_096  # questions whose answers are in memory at once
SHOWN = 5


@dataclass(frozen=True)
class Custom:
    """What easy and hard answers mean in some questions, and how many of those tried agree."""

    split: str
    easy_on: str
    all_on: str
    tried: int = 0
    equal: int = 0


def custom_of(graph: Graph, some: Sequence[Questions], split: str, generator: np.random.Generator) -> Custom:
    """The custom that most of a random sample agree with; of one split only, if it is given and not "auto"."""
    chosen = [questions for questions in _sample(some, generator) if len(questions)]
    tried = sum(map(len, chosen))
    views = {name: [_answers(graph, name, questions) for questions in chosen] for name in ("train", "known", "whole")}

    def equal(easy_on: str, all_on: str) -> int:
        rows = zip(chosen, views[easy_on], views[all_on], strict=True)
        return tried - sum(len(differing(*row, len(graph.entities))) for row in rows)

    allowed = [custom for custom in CUSTOMS if split in ("auto", custom[0])]
    return max((Custom(*custom, tried, equal(*custom[1:])) for custom in allowed), key=lambda custom: custom.equal)


def _sample(some: Sequence[Questions], generator: np.random.Generator) -> list[Questions]:
    """At most so many of the questions, each as likely."""
    total = sum(map(len, some))
    rows = np.sort(generator.choice(total, min(total, SAMPLE), replace=False, shuffle=False))
    starts = np.cumsum([0, *map(len, some)])
    return [
        questions.take(rows[(rows >= first) & (rows < last)] - first)
        for questions, first, last in zip(some, starts, starts[1:], strict=False)
    ]


def view_named(graph: Graph, name: str) -> KnowledgeGraph:
    """One of the graphs that answers are on."""
    return {"train": lambda: graph.train, "known": lambda: graph.known, "whole": lambda: graph.whole}[name]()


def _answers(graph: Graph, name: str, questions: Questions) -> Ragged:
    return Exact(view_named(graph, name)).answer_sets(questions.batch())


def differing(questions: Questions, easy: Ragged, everything: Ragged, entity_count: int) -> NDArray[np.int64]:
    """The rows whose easy or hard answers are others than these; for questions without them, whose answer is none."""
    # Every key is there once: without assume_unique numpy spends most of the time on making sure of that.
    all_keys, easy_keys = _keys(everything, entity_count), _keys(easy, entity_count)
    if questions.structure.has_negation:  # what only a missing triple keeps from being ruled out is no answer
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
    """One number for each row and entity of some sets."""
    keys: Keys = np.repeat(np.arange(len(sets)), sets.sizes()) * entity_count + sets.values
    return keys


@dataclass
class Verified:
    """How many queries have just the answers that the graphs give, and the first few that have others."""

    queries: int = 0
    equal: int = 0
    different: list[dict[str, Any]] = field(default_factory=list)


def verify(graph: Graph, workload: Workload, lines: Mapping[tuple[str, str], Sequence[int]] | None = None) -> Verified:
    """Every easy and hard answer of a workload, recomputed and compared; `lines`: where each question came from."""
    found, names = Verified(), Names(graph)
    for split in workload.description["questions"]:
        for structure in workload.structures(split):
            questions = workload.questions(split, structure)
            origins = (lines or {}).get((split, structure.name))
            for first in range(0, len(questions), PIECE):
                rows = np.arange(first, min(first + PIECE, len(questions)))
                _compare(found, names, split, workload.graphs(split), questions.take(rows), origins and origins[first:])
    return found


def _compare(
    found: Verified,
    names: Names,
    split: str,
    on: tuple[str, str],
    questions: Questions,
    lines: Sequence[int] | None,
) -> None:
    """Nothing; some questions are recomputed and counted."""
    easy, everything = (_answers(names.graph, name, questions) for name in on)
    rows = differing(questions, easy, everything, len(names.graph.entities))
    found.queries += len(questions)
    found.equal += len(questions) - len(rows)
    for row in rows[: max(0, SHOWN - len(found.different))].tolist():
        line = {} if not lines else {"line": lines[row]}
        found.different.append(
            {"split": split, **line, **_difference(names, questions, row, easy[row], everything[row])}
        )


def _difference(names: Names, questions: Questions, row: int, easy: Any, everything: Any) -> dict[str, Any]:
    """What is wrong with the answers of a question: the first of those that are too many, and of those missing."""

    def some(entities: Any) -> list[str]:
        return [names.entity_name(int(entity)) for entity in entities[:SHOWN]]

    told: dict[str, Any] = {"structure": questions.structure.short, "query": nested_of(questions, row, names)}
    expected = {"easy": np.intersect1d(easy, everything), "hard": np.setdiff1d(everything, easy)}
    for what, right in expected.items():
        given = getattr(questions, what)
        if given is not None:
            wrong, missing = np.setdiff1d(given[row], right), np.setdiff1d(right, given[row])
            told |= {f"wrong_{what}": some(wrong)} if len(wrong) else {}
            told |= {f"missing_{what}": some(missing)} if len(missing) else {}
    if int(questions.answers[row]) not in everything:
        told["wrong_answer"] = names.entity_name(int(questions.answers[row]))
    return told


def nested_of(questions: Questions, row: int, names: Names) -> list[Any]:
    """One of the queries as nested lists."""
    anchors, relations = questions.anchors[row], questions.relations[row]
    return to_nested(
        questions.structure.query,
        lambda place: names.entity_name(int(anchors[place])),
        lambda place: names.graph.relation_name(int(relations[place])),
    )
