from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from halfgraph.evaluation import validation
from halfgraph.evaluation.protocol import paper_scores
from halfgraph.evaluation.validation import validation_questions, validator
from halfgraph.graph.folder import Graph
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES
from halfgraph.workload.folder import Workload
from halfgraph.workload.jsonl import import_workload
from imported_graphs import made
from query_files import published, sampled, some_queries, split_graph, write_lines
from small_runs import Setting


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def workload(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return sampled(graph, tmp_path_factory.mktemp("workload") / "w")


def test_a_workloads_own_validation_questions_are_taken(graph: Graph, workload: Workload) -> None:
    found = validation_questions(graph, workload, 0)
    assert [questions.structure.name for questions in found] == [structure.name for structure in STRUCTURES]
    for questions in found:
        np.testing.assert_array_equal(questions.answers, workload.questions("valid", questions.structure).answers)


def test_without_a_workload_fresh_ones_are_drawn_that_the_training_graph_cannot_answer(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "DRAWN", 20)
    found = validation_questions(graph, None, 0)
    assert {questions.structure.name for questions in found} == {structure.name for structure in STRUCTURES}
    for questions in found:
        assert not Exact(graph.train).have_answers(questions.batch(), questions.answers).any()
        assert Exact(graph.known).have_answers(questions.batch(), questions.answers).all()
    again = validation_questions(graph, None, 0)
    other = validation_questions(graph, None, 1)
    assert all((a.answers == b.answers).all() for a, b in zip(found, again, strict=True))
    assert any(len(a) != len(b) or (a.answers != b.answers).any() for a, b in zip(found, other, strict=True))


def test_a_graph_without_a_split_has_nothing_to_validate_on(tmp_path: Path) -> None:
    whole = made(tmp_path, "a\tr\tb\nb\ts\tc\n")
    assert validation_questions(whole, None, 0) == []
    assert validator([]) is None


def test_questions_without_any_negative_are_nothing_to_validate_on(graph: Graph, workload: Workload) -> None:
    questions = validation_questions(graph, workload, 0)
    bare = [replace(some, negative=np.full_like(some.negative, -1)) for some in questions]
    assert validator(bare) is None
    assert validator([*bare, questions[0]]) is not None


def test_validation_gives_the_papers_figures_and_the_score_to_choose_by(graph: Graph, workload: Workload) -> None:
    questions = validation_questions(graph, workload, 0)
    validate, encoder = validator(questions), Setting(graph).encoder()
    assert validate is not None
    scores = paper_scores(encoder, questions)
    macro = scores.macro()
    assert validate(encoder) == {
        "score": macro["auc"]["all"],
        "auc": macro["auc"]["all"],
        "auc_hard": macro["auc"]["hard"],
        "apr": macro["apr"]["all"],
        "apr_hard": macro["apr"]["hard"],
        "by_type": dict(scores.auc),
    }
    assert len(scores.auc) == 11


def test_a_published_workload_with_unions_is_validated_on_the_papers_types(graph: Graph, tmp_path: Path) -> None:
    lines = published(graph, some_queries(10), "train", "known")
    write_lines(tmp_path / "q.jsonl", lines)
    workload = import_workload(tmp_path / "q.jsonl", graph, tmp_path / "w").workload
    unions = [structure.name for structure in workload.structures("valid") if "union" in structure.name]
    assert unions
    questions = validation_questions(graph, workload, 0)
    assert questions
    assert not any("union" in some.structure.name for some in questions)
    validate = validator(questions)
    assert validate is not None
    assert np.isfinite(validate(Setting(graph).encoder())["score"])
    for some in questions:
        assert not Exact(graph.known).have_answers(some.batch(), some.negative).any()
        hard = some.take(np.flatnonzero(some.hard_negative >= 0))
        assert not Exact(graph.known).have_answers(hard.batch(), hard.hard_negative).any()
        assert Exact(graph.known, relaxed=True).have_answers(hard.batch(), hard.hard_negative).all()
