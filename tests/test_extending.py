"""The examples of docs/extending.md work: they are run, trained through the public door and asked."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import halfgraph
from doc_pages import DOCS, run_examples
from halfgraph.errors import SettingError
from halfgraph.evaluation.questions import sample_questions
from halfgraph.evaluation.results import evaluate
from halfgraph.graph.folder import Graph
from halfgraph.model.architecture import Architecture
from halfgraph.model.intersection import INTERSECTIONS
from halfgraph.model.projection import PROJECTIONS
from halfgraph.settings import training_settings
from halfgraph.training.run_folder import METRICS, MODEL, load_tensors
from small_runs import people

QUERY = "SELECT ?x { ?x <livesIn> <city1> ; <speaks> <language1> }"
RECIPE = {"one_edge": 64, "longer": 32, "type_negatives": 32, "other_negatives": 32, "learning_rate": 0.02}


@pytest.fixture
def examples() -> Iterator[dict[str, Any]]:
    """Run the Python blocks of the page; the dictionaries are restored afterwards."""
    before = dict(INTERSECTIONS), dict(PROJECTIONS)
    names: dict[str, Any] = {}
    run_examples(DOCS / "extending.md", names)
    yield names
    for dictionary, entries in zip((INTERSECTIONS, PROJECTIONS), before, strict=True):
        dictionary.clear()
        dictionary.update(entries)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=60)


@pytest.mark.parametrize("setting", [{"intersection": "gated"}, {"projection": "affine", "intersection": "simple"}])
def test_an_added_operator_is_trained_learns_and_answers(
    examples: dict[str, Any], graph: Graph, tmp_path: Path, setting: dict[str, str]
) -> None:
    engine = halfgraph.train(graph, tmp_path / "run", steps=40, dim=16, **setting, **RECIPE)
    rows = [json.loads(line) for line in (tmp_path / "run" / METRICS).read_text().splitlines()]
    assert rows[-1]["loss"] < 0.7 * rows[0]["loss"]
    assert rows[-1]["auc"] > 0.7
    weights, _ = load_tensors(tmp_path / "run" / MODEL)
    added = "intersection.gate" if "gated" in setting.values() else "projection.scale"
    assert torch.isfinite(weights[added]).all()
    assert len(engine.ask(QUERY, top=3).predicted) == 3
    again = halfgraph.load(tmp_path / "run", graph).ask(QUERY, top=3)
    assert [answer.entity for answer in again.predicted] == [
        answer.entity for answer in engine.ask(QUERY, top=3).predicted
    ]


def test_settings_and_errors_know_an_added_operator(examples: dict[str, Any]) -> None:
    assert training_settings("cga", "default", {"intersection": "gated"}).architecture.intersection == "gated"
    with pytest.raises(SettingError, match=r"Choose one of attention, gqe, simple, counted, gated\."):
        Architecture(intersection="gatd")


def test_an_operator_is_unknown_without_its_line_in_the_dictionary() -> None:
    with pytest.raises(SettingError, match='unknown value "gated"'):
        Architecture(intersection="gated")


def test_an_added_intersection_ignores_the_order_of_its_paths(examples: dict[str, Any]) -> None:
    operator = examples["Gated"](Architecture(dim=6), 2, torch.Generator().manual_seed(0))
    paths, types = torch.randn(4, 3, 6, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 1, 0])
    expected = operator(paths, types, torch.empty(0))
    torch.testing.assert_close(operator(paths.flip(1), types, torch.empty(0)), expected)


def test_an_added_predictor_is_evaluated(examples: dict[str, Any], graph: Graph) -> None:
    figures = evaluate(examples["Degree"](graph.train), sample_questions(graph, "test", 20, 0), samples=10)
    assert 0 < figures["auc"]["1-chain"] < 1
