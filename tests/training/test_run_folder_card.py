from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from halfgraph.graph.folder import Graph
from halfgraph.training.run_folder import model_card
from query_files import split_graph

ROWS = [
    {"step": 100, "seconds": 12.3, "auc": 0.5, "auc_hard": 0.25, "apr": 0.125, "apr_hard": 0.75},
    {"step": 2000, "seconds": 240.0, "auc": 0.9, "auc_hard": 0.8, "apr": 0.7, "apr_hard": 0.6},
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"))


def test_a_card_describes_the_model_and_its_metrics(graph: Graph) -> None:
    text = model_card(graph, "CGA+KG+8[min]", {"dim": 128, "parameters": 9}, {"loss": "softmax"}, ROWS)
    counts = graph.description["counts"]
    assert text.startswith(f"# CGA+KG+8[min] on graph {graph.fingerprint}\n")
    assert f"{counts['entities']} entities of 2 types, {counts['relations']} relations" in text
    assert f"{counts['triples']['train']} training triples" in text
    assert "| step 100, 12 s | 0.5000 | 0.2500 | 0.1250 | 0.7500 |" in text
    assert "| step 2,000, 240 s | 0.9000 | 0.8000 | 0.7000 | 0.6000 |" in text
    assert "| dim | 128 |" in text
    assert "| loss | softmax |" in text
    assert text.endswith("|\n")


def test_a_card_without_validation_has_no_rows(graph: Graph) -> None:
    text = model_card(graph, "x", {}, {}, [{"step": 1, "seconds": 1.0, "loss": 2.0}])
    assert "| step" not in text


def test_a_card_gives_the_attribution_that_the_data_asks_for(graph: Graph) -> None:
    provenance = {**graph.description["provenance"], "attribution": "Data by somebody, CC BY."}
    about: Any = SimpleNamespace(
        description={**graph.description, "provenance": provenance}, fingerprint=graph.fingerprint, path=Path()
    )
    assert model_card(about, "x", {}, {}, []).endswith("\n\nData by somebody, CC BY.\n")
