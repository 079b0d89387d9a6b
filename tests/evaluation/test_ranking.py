"""Filtered ranks, AUC and APR against plain loops, scikit-learn and scipy."""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import percentileofscore
from sklearn.metrics import roc_auc_score

from halfgraph.evaluation.measures import Column, Measures, all_measures
from halfgraph.evaluation.metrics import NotANumber, percentiles
from halfgraph.evaluation.ranking import ScoredQuestions, missing_triples, score_questions
from halfgraph.evaluation.validation import paper_scores
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.base import Scores
from halfgraph.prediction.embedding import EmbeddingPredictor
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import DRAWN, Structure, structure_named
from halfgraph.query.tree import Project, nodes
from halfgraph.workload.folder import Counts, Plan, draw
from halfgraph.workload.negatives import NegativeCounts
from halfgraph.workload.sampling import Questions
from query_oracles import ways
from small_graphs import Split, splits
from small_models import small_model
from small_runs import people

ENTITIES = 12


@dataclass
class Fixed:
    """An predictor whose scores for a query are a row of a table: the row of its first anchor."""

    table: Scores
    name: str = "fixed"
    asked: list[int] = field(default_factory=list)

    def scores(self, structure: Structure, anchors: np.ndarray, relations: np.ndarray) -> Scores:  # noqa: ARG002
        self.asked.append(len(anchors))
        return self.table[anchors[:, 0]]


@dataclass(frozen=True)
class Case:
    """Questions with answers and negatives drawn by lot, and scores of few values, so that many tie."""

    questions: Questions
    predictor: Fixed


def case(seed: int, count: int = 9, short: str = "2i", values: int = 4) -> Case:
    rng = np.random.default_rng(seed)
    table = (rng.integers(0, values, (count, ENTITIES)) / 3).astype(np.float32)
    structure = structure_named(short)
    easy, hard, negatives, hard_negatives = [], [], [], []
    for _ in range(count):
        order = rng.permutation(ENTITIES).astype(np.int32)
        cuts = np.sort(rng.integers(0, 7, 2))
        easy.append(np.sort(order[: cuts[0]]))
        hard.append(np.sort(order[cuts[0] : cuts[1]]))
        negatives.append(np.sort(order[7 : 7 + rng.integers(0, 5)]))
        hard_negatives.append(np.sort(order[7 : 7 + rng.integers(0, 3)]))
    one = np.array([some[0] if len(some) else -1 for some in negatives], np.int32)
    other = np.array([some[0] if len(some) else -1 for some in hard_negatives], np.int32)
    answers = np.array([(*some, *more, 0)[0] for some, more in zip(hard, easy, strict=True)], np.int32)
    anchors = np.stack([np.arange(count, dtype=np.int32)] * structure.anchor_count, axis=1)
    relations = np.zeros((count, structure.relation_count), np.int32)
    sets = map(Ragged.of, (easy, hard, negatives, hard_negatives))
    questions = Questions(structure, anchors, relations, answers, one, other, None, *sets)
    return Case(questions, Fixed(table))


def slow_rank(scores: Scores, answer: int, answers: set[int]) -> float:
    """The filtered rank of an answer, entity by entity."""
    rank = 1.0
    for entity, score in enumerate(scores):
        if entity not in answers:
            rank += 1.0 if score > scores[answer] else 0.5 if score == scores[answer] else 0.0
    return rank


def slow_ranks(case: Case, which: str) -> list[list[float]]:
    """The ranks of a question's easy or hard answers."""
    questions, table = case.questions, case.predictor.table
    assert questions.easy is not None
    assert questions.hard is not None
    found = []
    for row in range(len(questions)):
        answers = {*questions.easy[row].tolist(), *questions.hard[row].tolist()}
        found.append([slow_rank(table[row], answer, answers) for answer in getattr(questions, which)[row].tolist()])
    return found


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_ranks_are_those_of_a_plain_loop(seed: int, values: int) -> None:
    one = case(seed, values=values)
    result = score_questions(one.predictor, one.questions, threads=1)
    assert result.ranks.tolist() == [rank for ranks in slow_ranks(one, "hard") for rank in ranks]
    for row, ranks in enumerate(slow_ranks(one, "easy")):
        assert result.recovered[row] == pytest.approx(np.mean([1 / rank for rank in ranks]) if ranks else 0.0)


def test_a_tie_counts_half() -> None:
    table = np.array([[0.5, 0.5, 0.5, 0.9, 0.1]], np.float32)
    hard = Ragged.of([np.array([0], np.int32)])
    easy = Ragged.of([np.array([3], np.int32)])
    none = np.array([-1], np.int32)
    zeros = np.zeros((1, 1), np.int32)
    questions = Questions(structure_named("1p"), zeros, zeros, np.array([0], np.int32), none, none, None, easy, hard)
    result = score_questions(Fixed(table), questions)
    assert result.above.tolist() == [0]  # the easy answer is filtered out
    assert result.equal.tolist() == [2]
    assert result.ranks.tolist() == [2.0]
    ties = all_measures(result)["ties", "1p"]
    assert ties.value() == 1.0


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("at_once", [1, 3 * ENTITIES, 1 << 23])
def test_results_depend_on_neither_chunks_nor_threads(at_once: int, threads: int) -> None:
    one = case(1, count=40)
    expected = score_questions(one.predictor, one.questions, threads=1)
    found = score_questions(one.predictor, one.questions, threads=threads, chunk=at_once)
    for name in ("answer", "negative", "hard_negative", "negatives", "hard_negatives", "above", "equal", "recovered"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_no_more_scores_are_asked_for_than_fit() -> None:
    one = case(2, count=30)
    score_questions(one.predictor, one.questions, chunk=4 * ENTITIES)
    assert max(one.predictor.asked) == 4
    assert sum(one.predictor.asked) == 30


def test_what_watches_sees_every_row_once_and_in_order() -> None:
    one = case(3, count=20)
    seen: list[int] = []

    def watch(found: ScoredQuestions, rows: slice, scores: Scores) -> None:
        np.testing.assert_array_equal(scores, one.predictor.table[rows])
        seen.extend(range(rows.start, rows.stop))

    score_questions(one.predictor, one.questions, chunk=3 * ENTITIES, threads=4, watch=watch)
    assert seen == list(range(20))


def test_torch_has_its_threads_back_afterwards() -> None:
    before = torch.get_num_threads()
    one = case(4)
    score_questions(one.predictor, one.questions, threads=2)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_fails_loudly(bad: float) -> None:
    one = case(5)
    one.predictor.table[7, 3] = bad
    with pytest.raises(NotANumber, match="fixed, 2-inter"):
        score_questions(one.predictor, one.questions)


def test_no_questions_have_no_ranks() -> None:
    one = case(6)
    none = one.questions.take(np.empty(0, np.int64))
    assert len(score_questions(one.predictor, none).ranks) == 0
    assert not one.predictor.asked


@given(st.integers(0, 10_000))
def test_mrr_and_hits_are_means_over_a_questions_answers_and_then_over_questions(seed: int) -> None:
    one = case(seed)
    measures = all_measures(score_questions(one.predictor, one.questions, threads=1))
    ranks = [some for some in slow_ranks(one, "hard") if some]
    if not ranks:
        assert ("mrr", "2i") not in measures
        return
    expected = {"mrr": np.mean([np.mean([1 / rank for rank in some]) for some in ranks])}
    for most in (1, 3, 10):
        expected[f"hits@{most}"] = np.mean([np.mean([rank <= most for rank in some]) for some in ranks])
    for name, value in expected.items():
        assert measures[name, "2i"].value() == pytest.approx(value), name
    easy = [np.mean([1 / rank for rank in some]) for some in slow_ranks(one, "easy") if some]
    assert measures["easy", "2i"].value() == pytest.approx(np.mean(easy)) if easy else ("easy", "2i") not in measures


@given(st.integers(0, 10_000))
def test_auc_is_that_of_scikit_learn(seed: int) -> None:
    one = case(seed, count=15)
    measures = all_measures(score_questions(one.predictor, one.questions, threads=1))
    table, questions = one.predictor.table, one.questions
    for name, negative in (("2-inter", questions.negative), ("2-inter-hard", questions.hard_negative)):
        rows = np.flatnonzero(negative >= 0)
        if not len(rows):
            assert ("auc", name) not in measures
            continue
        scores = np.concatenate([table[rows, questions.answers[rows]], table[rows, negative[rows]]])
        expected = roc_auc_score([1] * len(rows) + [0] * len(rows), scores)
        assert measures["auc", name].value() == pytest.approx(expected)


@given(st.integers(0, 10_000))
def test_apr_is_that_of_scipy(seed: int) -> None:
    one = case(seed, count=15)
    measures = all_measures(score_questions(one.predictor, one.questions, threads=1))
    for name, many in (("2-inter", one.questions.negatives), ("2-inter-hard", one.questions.hard_negatives)):
        assert many is not None
        expected = [
            percentileofscore(one.predictor.table[row, many[row]], one.predictor.table[row, answer], kind="mean") / 100
            for row, answer in enumerate(one.questions.answers)
            if len(many[row])
        ]
        assert measures["apr", name].value() == pytest.approx(np.mean(expected))


def test_percentiles_without_others_are_nothing() -> None:
    assert percentiles(np.array([0.5, 0.5]), np.array([0.1]), np.array([0, 0, 1])).tolist() == [0.0, 1.0]


def test_the_paper_s_measures_are_those_of_validation(tmp_path: Path) -> None:
    graph = people(tmp_path)
    plan = Plan(Counts(0, 0, 30, 0, 0), negatives=NegativeCounts(50, 3), threads=1)
    sets = [drawn.questions for split, drawn in draw(graph, plan) if split == "valid"]
    encoder = Encoder(Architecture(dim=8), graph.train, torch.Generator().manual_seed(0))
    quick = paper_scores(encoder, sets)
    measures: Measures = {}
    for questions in sets:
        measures |= all_measures(score_questions(EmbeddingPredictor.of(encoder), questions))
    for measure in ("auc", "apr"):
        found = {name: column.value() for (its, name), column in measures.items() if its == measure}
        assert found == pytest.approx(dict(getattr(quick, measure)), abs=2e-3)  # a near tie may fall either way


def fewest(split: Split, questions: Questions, row: int, answer: int) -> int:
    """The fewest triples of a way to an answer that the training graph lacks; every way is tried."""
    query, known = questions.query(row), split.train.plain
    counts = [
        sum(
            (values[id(node.source)], int(node.relation), values[id(node)]) not in known.edges
            for node in nodes(query)
            if isinstance(node, Project) and id(node) in values
        )
        for values in ways(split.whole.plain, query, answer, {})
    ]
    return min(counts, default=-1)


@given(splits(most_entities=6), st.sampled_from(DRAWN), st.integers(0, 1000))
def test_missing_triples_are_the_fewest_of_all_ways(split: Split, structure: Structure, seed: int) -> None:
    rng = np.random.default_rng(seed)
    entities, relations = len(split.whole.plain.types), split.whole.relation_count
    count = 5
    anchors = rng.integers(0, entities, (count, structure.anchor_count)).astype(np.int32)
    columns = rng.integers(0, relations, (count, structure.relation_count)).astype(np.int32)
    everybody = Ragged.of([np.arange(entities, dtype=np.int32)] * count)
    none = np.full(count, -1, np.int32)
    questions = Questions(structure, anchors, columns, none, none, none, None, None, everybody)
    found = missing_triples(questions, split.whole.graph, split.train.graph, threads=1)
    expected = [fewest(split, questions, row, answer) for row in range(count) for answer in range(entities)]
    assert found.tolist() == expected


def test_metrics_by_missing_triples_cover_the_answers_that_lack_that_number() -> None:
    one = case(8)
    result = score_questions(one.predictor, one.questions)
    assert one.questions.hard is not None
    rng = np.random.default_rng(0)
    missing = rng.integers(-1, 3, len(result.ranks)).astype(np.int8)
    measures = all_measures(result, missing)
    offsets = one.questions.hard.offsets
    for number in (0, 1, 2):
        means = []
        for first, last in pairwise(offsets.tolist()):
            own = [
                1 / rank
                for rank, its in zip(result.ranks[first:last], missing[first:last], strict=True)
                if its == number
            ]
            means += [np.mean(own)] if own else []
        column = measures[f"mrr/{number}", "2i"]
        assert isinstance(column, Column)
        assert column.value() == pytest.approx(np.mean(means))
    assert not any(measure.endswith("/-1") for measure, _ in measures)


def test_every_structure_can_be_ranked() -> None:
    model = small_model(Architecture())
    for structure in DRAWN:
        rng = np.random.default_rng(0)
        anchors = rng.integers(0, 18, (3, structure.anchor_count)).astype(np.int32)
        relations = rng.integers(0, 6, (3, structure.relation_count)).astype(np.int32)
        hard = Ragged.of([np.array([1, 4], np.int32)] * 3)
        none = np.full(3, -1, np.int32)
        questions = Questions(structure, anchors, relations, none + 1, none, none, None, None, hard)
        assert (score_questions(EmbeddingPredictor.of(model.encoder), questions).ranks >= 1).all()
