"""Training and answering call the functions that docs/paper.md names: none is there for the tests only."""

import importlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from doc_pages import DOCS, table_rows, text_of
from halfgraph.graph.folder import Graph
from halfgraph.settings import TrainingSettings, training_settings
from halfgraph.training.batches import Batches, OnTheFly
from halfgraph.training.loop import Budget, train
from halfgraph.training.run import new_encoder
from halfgraph.workload.sampling import Sampler
from small_engines import engine_of
from small_runs import people

QUERY = "SELECT ?x { ?x <livesIn> <city1> ; <speaks> ?y . <person3> <speaks> ?y }"
SIZES = {"dim": 8, "one_edge": 8, "longer": 4, "type_negatives": 4}
# Together these use every operator that the page names.
MODELS: dict[str, dict[str, Any]] = {
    "attention": {"model": "cga", "heads": 2},
    "hinge": {"model": "gqe", "recipe": "paper"},
    "transe": {"model": "transe"},
    "counted": {"model": "Bilinear[counted]", "projection": "diagonal"},
}
CALLERS = {  # by the room of the function
    "query": ("training", "answering"),
    "model": ("training", "answering"),
    "training": ("training",),
    "sparql": ("answering",),
}


def named_functions() -> Iterator[tuple[str, str]]:
    """Yield each function of the tables of equations, queries and models with its file."""
    sections = text_of(DOCS / "paper.md").split("\n## ")
    tables = [section for section in sections if section.startswith(("Equations", "Queries and models"))]
    for row in table_rows("\n".join(tables)):
        for names, file in re.findall(r"((?:`[\w.]+`(?:, )?)+) \(`([\w/]+\.py)`\)", row[1]):
            yield from ((name, file) for name in re.findall(r"`([\w.]+)`", names))


FUNCTIONS = sorted(set(named_functions()))


@contextmanager
def counting(calls: Counter[tuple[str, str]]) -> Iterator[None]:
    """Count the calls of the named functions inside the block, whichever module has imported them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, file in FUNCTIONS:
            module = importlib.import_module("halfgraph." + file.removesuffix(".py").replace("/", "."))
            owner, _, attribute = name.rpartition(".")
            target = getattr(module, owner) if owner else getattr(module, name)
            if owner or isinstance(target, type):  # a method, or a class: its constructor
                attribute = attribute if owner else "__init__"
                patch.setattr(target, attribute, counted(getattr(target, attribute), calls, (name, file)))
                continue
            replacement = counted(target, calls, (name, file))
            for user in [m for key, m in sys.modules.items() if key.startswith("halfgraph.")]:
                if vars(user).get(name) is target:
                    patch.setattr(user, name, replacement)
        yield


def counted(function: Callable[..., Any], calls: Counter[tuple[str, str]], key: tuple[str, str]) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        calls[key] += 1
        return function(*arguments, **options)

    return call


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return people(tmp_path_factory.mktemp("people"), count=60)


@pytest.fixture(scope="module")
def calls(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[tuple[str, str]]]:
    """The calls of one training step and of one answer, over all models."""
    calls: dict[str, Counter[tuple[str, str]]] = {"training": Counter(), "answering": Counter()}
    for name, given in MODELS.items():
        folder = tmp_path_factory.mktemp(name)
        with counting(calls["training"]):
            train_one_step(graph, folder, **given)
        with counting(calls["answering"]):
            assert engine_of(graph, **asdict(settings_of(**given).architecture)).ask(QUERY, top=3).predicted
    return calls


def settings_of(model: str, recipe: str = "default", **given: Any) -> TrainingSettings:
    return training_settings(model, recipe, {**SIZES, **given})


def train_one_step(graph: Graph, run: Path, **given: Any) -> None:
    settings = settings_of(**given)
    encoder = new_encoder(settings.architecture, graph, 0, "cpu")
    batches = Batches(graph.train, OnTheFly(Sampler(graph.train, threads=1)), settings.recipe, 0)
    train(encoder, batches, Budget(steps=1), run)


@pytest.mark.parametrize(("name", "file"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_training_and_answering_call_the_function_that_the_page_names(
    name: str, file: str, calls: dict[str, Counter[tuple[str, str]]]
) -> None:
    for caller in CALLERS[file.split("/")[0]]:
        assert calls[caller][name, file], f"{caller} never calls {name} of {file}"


def test_every_equation_names_a_function_that_training_or_answering_calls() -> None:
    section = text_of(DOCS / "paper.md").split("\n## ")[1]
    rows = [row[0] for row in table_rows(section)]
    numbers = [int(number) for row in rows for number in re.findall(r"\d+", row.partition(",")[0])]
    assert sorted(numbers) == list(range(1, 14))
