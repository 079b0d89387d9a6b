from dataclasses import replace
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from halfgraph.evaluation import validation
from halfgraph.evaluation.metrics import NotANumber
from halfgraph.evaluation.validation import (
    PaperScores,
    paper_scores,
    query_embeddings,
    validation_questions,
    validator,
)
from halfgraph.graph.folder import Graph
from halfgraph.model.architecture import Architecture
from halfgraph.query.exact import Exact, Ragged
from halfgraph.query.structures import STRUCTURES, structure_named
from halfgraph.workload.folder import Workload
from halfgraph.workload.jsonl import import_workload
from halfgraph.workload.sampling import Questions
from imported_graphs import made
from model_oracles import cosine
from query_files import published, sampled, some_queries, split_graph, write_lines
from small_models import SmallModel, small_model, some_questions
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
    monkeypatch.setattr(validation, "SAMPLED", 20)
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
        by_some_path = Exact(graph.known).answer_sets(hard.batch(), relaxed=True)
        assert all(entity in reached for entity, reached in zip(hard.hard_negative, by_some_path, strict=True))


HARD = ["2-inter", "3-inter", "3-inter_chain", "3-chain_inter"]


@pytest.fixture(scope="module")
def model() -> SmallModel:
    return small_model(Architecture(heads=2), dim=4)


def judged(model: SmallModel, name: str, count: int = 12) -> Questions:
    """Questions with many negatives for every third; the answer, which would tie with itself, is none of them."""
    questions = some_questions(model.graph, structure_named(name), count)
    generator = np.random.default_rng(0)
    drawn = [np.sort(generator.choice(18, 7, replace=False)).astype(np.int32) for _ in range(len(questions))]
    many = [
        own[own != answer][: 7 * (row % 3 == 0)]
        for row, (own, answer) in enumerate(zip(drawn, questions.answers, strict=True))
    ]
    some = [row[:4] for row in many]
    return replace(questions, negatives=Ragged.of(many), hard_negatives=Ragged.of(some))


def cosines(model: SmallModel, questions: Questions, row: int, entities: list[int]) -> list[float]:
    """The cosine of a question and some entities, by the equations."""
    vector = model.oracle.vector(questions.query(row))
    return [cosine(vector, model.oracle.entity(entity)) for entity in entities]


def expected_auc(model: SmallModel, questions: Questions, negative: np.ndarray) -> float:
    """One positive and one negative score for each question, all pooled, one ROC AUC."""
    labels, scores = [], []
    for row in range(len(questions)):
        if negative[row] >= 0:
            labels += [1, 0]
            scores += cosines(model, questions, row, [int(questions.answers[row]), int(negative[row])])
    return float(roc_auc_score(labels, scores))


def expected_apr(model: SmallModel, questions: Questions, negatives: Ragged) -> float:
    """The mean over questions of the share of their negatives that the answer is above."""
    found = []
    for row in range(len(questions)):
        if len(negatives[row]):
            right, *wrong = cosines(model, questions, row, [int(questions.answers[row]), *negatives[row].tolist()])
            beaten = [1.0 if score < right - 1e-12 else 0.5 if score < right + 1e-12 else 0.0 for score in wrong]
            found.append(mean(beaten))
    return mean(found)


def test_auc_and_apr_are_the_papers(model: SmallModel) -> None:
    sets = [judged(model, structure.name) for structure in STRUCTURES]
    found = paper_scores(model.encoder, sets)
    assert list(found.auc) == list(found.apr)
    assert set(found.auc) == {structure.name for structure in STRUCTURES} | {f"{name}-hard" for name in HARD}
    for questions in sets:
        name = questions.structure.name
        assert questions.negatives is not None
        assert questions.hard_negatives is not None
        assert found.auc[name] == pytest.approx(expected_auc(model, questions, questions.negative))
        # An entity that is the answer itself ties with it but for rounding, which a hundredth allows for.
        assert found.apr[name] == pytest.approx(expected_apr(model, questions, questions.negatives), abs=0.05)
        if name in HARD:
            hard = expected_auc(model, questions, questions.hard_negative)
            assert found.auc[f"{name}-hard"] == pytest.approx(hard)
            assert found.apr[f"{name}-hard"] == pytest.approx(
                expected_apr(model, questions, questions.hard_negatives), abs=0.05
            )


def test_the_macro_figures_are_means_over_eleven_and_over_four_types() -> None:
    auc = {structure.name: 0.1 * place for place, structure in enumerate(STRUCTURES)} | {
        f"{name}-hard": 0.9 for name in HARD
    }
    macro = PaperScores(auc, {"1-chain": 0.3}).macro()
    assert len(auc) == 11
    assert macro["auc"]["all"] == pytest.approx(mean(auc.values()))
    assert macro["auc"]["hard"] == pytest.approx(0.9)
    assert macro["apr"]["all"] == pytest.approx(0.3)
    assert np.isnan(macro["apr"]["hard"])


def test_questions_without_a_negative_are_left_out(model: SmallModel) -> None:
    questions = judged(model, "2-inter")
    negative = questions.negative.copy()
    negative[::2] = -1
    found = paper_scores(model.encoder, [replace(questions, negative=negative)])
    assert found.auc["2-inter"] == pytest.approx(expected_auc(model, questions, negative))
    none = np.full_like(negative, -1)
    empty = Ragged.of([np.empty(0, np.int32)] * len(questions))
    bare = replace(questions, negative=none, hard_negative=none, negatives=empty, hard_negatives=None)
    assert paper_scores(model.encoder, [bare]) == PaperScores({}, {})


@pytest.mark.parametrize("where", ["answer", "negative", "weights"])
def test_a_model_that_has_diverged_gets_no_score(where: str) -> None:
    model = small_model(Architecture(heads=2), dim=4)
    questions = judged(model, "2-inter")
    with torch.no_grad():
        if where == "weights":
            model.encoder.projection.weight[:] = float("nan")
        else:
            entity = int(questions.answers[0] if where == "answer" else questions.negatives[0][0])  # type: ignore[index]
            model.encoder.entities.table[entity] = float("nan")
    with pytest.raises(NotANumber):
        paper_scores(model.encoder, [questions])


def test_pieces_of_any_size_give_the_same(model: SmallModel, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = judged(model, "3-inter_chain", 20)
    whole = paper_scores(model.encoder, [questions])
    monkeypatch.setattr(validation, "CHUNK", 2)
    again = paper_scores(model.encoder, [questions])
    assert again.auc == whole.auc
    assert again.apr == pytest.approx(dict(whole.apr))


def test_query_vectors_are_at_length_one_and_without_a_gradient(model: SmallModel) -> None:
    with torch.no_grad():
        vectors = query_embeddings(model.encoder, judged(model, "2-chain"))
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(vectors), dtype=vectors.dtype))
    before = {name: parameter.grad for name, parameter in model.encoder.named_parameters()}
    paper_scores(model.encoder, [judged(model, "2-chain")])
    assert {name: parameter.grad for name, parameter in model.encoder.named_parameters()} == before
