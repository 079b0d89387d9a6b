"""Learning: a toy graph is fitted, implied triples are predicted, and random ones are not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from halfgraph.evaluation.validation import PaperScores, paper_scores, validator
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.model.architecture import Architecture
from halfgraph.model.encoder import Encoder
from halfgraph.model.variants import ROWS, Variant, architecture_of
from halfgraph.query.structures import STRUCTURES, structure_named
from halfgraph.training.batches import Batches, OnTheFly
from halfgraph.training.loop import Budget, Progress, train
from halfgraph.training.recipe import PAPER, Recipe, without_kg_phase
from halfgraph.workload.folder import Counts, Plan, draw
from halfgraph.workload.negatives import NegativeCounts
from halfgraph.workload.sampling import Questions, Sampler
from small_runs import Setting, chance, people, training_questions

QUICK = Recipe(
    one_edge=64, longer=16, neighbourhoods=4, type_negatives=16, other_negatives=16, learning_rate=0.02
)  # fmt: skip


@dataclass(frozen=True)
class Learnt:
    """A trained model with how well it does on training and on held-out questions."""

    encoder: Encoder
    progress: Progress
    on_training: PaperScores
    held_out: PaperScores


def held_out_questions(graph: Graph, count: int = 200) -> list[Questions]:
    plan = Plan(Counts(0, 0, count, 0, 0), negatives=NegativeCounts(20, 5), threads=1)
    return [drawn.questions for split, drawn in draw(graph, plan) if split == "valid" and len(drawn.questions)]


def learnt(graph: Graph, run: Path) -> Learnt:
    budget = Budget(steps=150, validations=5, patience=99, checkpoint_seconds=1e9)
    setting = Setting(graph, QUICK, Architecture(dim=16, heads=2), budget, structures=STRUCTURES)
    encoder, questions = setting.encoder(), held_out_questions(graph)
    run.mkdir()
    progress = train(encoder, setting.batches(), budget, run, validator(questions))
    on_training = paper_scores(encoder, training_questions(graph))
    return Learnt(encoder, progress, on_training, paper_scores(encoder, questions))


@pytest.fixture(scope="module")
def of_people(tmp_path_factory: pytest.TempPathFactory) -> Learnt:
    folder = tmp_path_factory.mktemp("people")
    return learnt(people(folder), folder / "run")


def test_a_toy_graph_is_fitted(of_people: Learnt) -> None:
    assert len(of_people.on_training.auc) == 11
    assert of_people.on_training.macro()["auc"]["all"] > 0.95
    assert of_people.on_training.macro()["auc"]["hard"] > 0.9
    assert of_people.on_training.auc["1-chain"] > 0.98


def test_validation_gets_better_with_training(of_people: Learnt) -> None:
    scores = [row["score"] for row in of_people.progress.history]
    assert len(scores) == 5
    assert scores[-1] > scores[0] + 0.02
    assert of_people.held_out.auc["1-chain"] > 0.85
    assert of_people.held_out.macro()["auc"]["all"] > 0.74


def test_a_model_without_training_is_at_chance(tmp_path: Path) -> None:
    graph = people(tmp_path)
    encoder = Setting(graph, architecture=Architecture(dim=16, heads=2)).encoder()
    assert paper_scores(encoder, held_out_questions(graph)).macro()["auc"]["all"] == pytest.approx(0.5, abs=0.1)


CHAINS = ("1-chain", "2-chain", "3-chain")


def test_answers_drawn_by_lot_stay_at_chance_on_held_out_questions(tmp_path: Path) -> None:
    """Above chance would be a leak. Intersections are left out: the part of them that is known is rightly used."""
    graph = chance(tmp_path)
    by_heart, held_out = by_lot(graph, graph.train, tmp_path / "run")
    assert by_heart["1-chain"] > 0.85
    assert np.mean([held_out[name] for name in CHAINS]) == pytest.approx(0.5, abs=0.05)
    for name in CHAINS:
        assert held_out[name] == pytest.approx(0.5, abs=0.08)


def test_a_leak_of_held_out_triples_would_be_seen(tmp_path: Path) -> None:
    graph = chance(tmp_path)
    _, held_out = by_lot(graph, graph.known, tmp_path / "run")
    assert held_out["1-chain"] > 0.75


def by_lot(graph: Graph, trained_on: KnowledgeGraph, run: Path) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """The AUC by type on training and on held-out questions of a model that memorises its training questions."""
    recipe = Recipe(one_edge=256, longer=64, neighbourhoods=0, type_negatives=32, other_negatives=0, learning_rate=0.03)
    budget = Budget(steps=80, validations=1, checkpoint_seconds=1e9)
    shapes = tuple(structure_named(name) for name in ("1-chain", "2-chain", "2-inter"))
    setting = Setting(graph, recipe, Architecture(dim=32, heads=2), budget, structures=shapes)
    encoder, source = setting.encoder(), OnTheFly(Sampler(trained_on, threads=1))
    run.mkdir()
    train(encoder, Batches(trained_on, source, recipe, 0, shapes), budget, run)
    held_out = paper_scores(encoder, held_out_questions(graph, 300)).auc
    return paper_scores(encoder, training_questions(graph, shapes[:1])).auc, held_out


def test_shuffled_answers_are_not_learnt(tmp_path: Path) -> None:
    graph = people(tmp_path)
    budget = Budget(steps=40, validations=1, checkpoint_seconds=1e9)
    setting = Setting(graph, replace(QUICK, longer=0, neighbourhoods=0), Architecture(dim=16, heads=2), budget)
    encoder, batches = setting.encoder(), setting.batches()

    class Shuffled:
        """The same questions with the answers of others."""

        def questions(self, structure: object, count: int, seed: int, step: int) -> Questions:
            some = batches.source.questions(structure, count, seed, step)  # type: ignore[arg-type]
            order = np.random.default_rng([seed, step]).permutation(len(some))
            return replace(some, answers=some.answers[order])

    (tmp_path / "run").mkdir()
    train(encoder, replace(batches, source=Shuffled()), budget, tmp_path / "run")
    asked = [questions for questions in held_out_questions(graph) if questions.structure.name == "1-chain"]
    assert paper_scores(encoder, asked).auc["1-chain"] == pytest.approx(0.5, abs=0.15)


@pytest.fixture(scope="module")
def small_people(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=40)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_of_the_paper_learns(row: Variant, small_people: Graph, tmp_path: Path) -> None:
    recipe = replace(QUICK, one_edge=32, longer=8, neighbourhoods=4)
    assert fitted(row, recipe if row.kg_phase else without_kg_phase(recipe), small_people, tmp_path) > 0.7


def test_the_papers_recipe_learns(small_people: Graph, tmp_path: Path) -> None:
    recipe = replace(PAPER, one_edge=32, longer=16, neighbourhoods=8, learning_rate=0.02)
    assert fitted(ROWS[9], recipe, small_people, tmp_path) > 0.7


FITTED = ("1-chain", "2-chain", "2-inter")


def fitted(row: Variant, recipe: Recipe, graph: Graph, folder: Path, names: Sequence[str] = FITTED) -> float:
    """The AUC on training questions after a second of training."""
    budget = Budget(steps=40, validations=1, checkpoint_seconds=1e9)
    shapes = tuple(structure_named(name) for name in names)
    setting = Setting(graph, recipe, architecture_of(row, dim=16), budget, structures=shapes)
    encoder = setting.encoder()
    train(encoder, setting.batches(), budget, folder)
    return float(np.mean(list(paper_scores(encoder, training_questions(graph, shapes, 100)).auc.values())))
