from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from halfgraph.evaluation import protocol
from halfgraph.evaluation.metrics import NotANumber
from halfgraph.evaluation.protocol import PaperScores, paper_scores, query_vectors
from halfgraph.model.architecture import Architecture
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import STRUCTURES, structure_named
from halfgraph.workload.sampling import Questions
from model_oracles import cosine
from small_models import SmallModel, small_model, some_questions

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
    monkeypatch.setattr(protocol, "ROWS", 2)
    again = paper_scores(model.encoder, [questions])
    assert again.auc == whole.auc
    assert again.apr == pytest.approx(dict(whole.apr))


def test_query_vectors_are_at_length_one_and_without_a_gradient(model: SmallModel) -> None:
    with torch.no_grad():
        vectors = query_vectors(model.encoder, judged(model, "2-chain"))
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(vectors), dtype=vectors.dtype))
    before = {name: parameter.grad for name, parameter in model.encoder.named_parameters()}
    paper_scores(model.encoder, [judged(model, "2-chain")])
    assert {name: parameter.grad for name, parameter in model.encoder.named_parameters()} == before
