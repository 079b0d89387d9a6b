"""A command whose writes fail, one after another: one line that says so, and the old state or the new one."""

import os
import shutil
from pathlib import Path

import pytest

import halfgraph
from failing_writes import Attempt, outcomes
from halfgraph.graph.store import store_folder
from halfgraph.prediction import predictors
from halfgraph.training import link_training
from small_runs import people

MOST = int(os.environ.get("WRITES", "6"))  # writes of a command that fail, one after another; all of them are up to 500
SHORT = ["--steps", "3", "--set", "dim=4", "--set", "heads=2", "--threads", "1"]
COUNTS = ["--two-edges", "5", "--three-edges", "0", "--valid", "5", "--test", "5", "--neighbourhoods", "0"]
# What a command makes or changes, and the command.
COMMANDS = {
    "import": ("out", ["import", "people.tsv", "--split", "80/10/10", "--out", "out", "--quiet"]),
    "sample": ("out", ["sample", "graph", *COUNTS, "--structures", "1p,2i", "--quiet", "--out", "out"]),
    "build": ("out", ["build", "graph", "--hops", "1", "--quiet", "--out", "out"]),
    "store": ("graph/store-whole", ["query", "graph", "SELECT ?x { ?x <livesIn> <city1> }", "--json"]),
    "train": ("out", ["train", "graph", "--out", "out", "--resume", "--quiet", *SHORT]),
    "calibrate": ("run", ["calibrate", "run", "--graph", "graph", "--json"]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph without a store, its source, and a run."""
    place, copied = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("folders") / "whole"
    graph = people(place)
    copied.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"RANK": 4, "LEAST_RANK": 4, "EPOCHS": 1}.items():
            patch.setattr(link_training, name, value)
        patch.setattr(predictors, "PAIRS", 50)
        halfgraph.train(graph, copied / "run", steps=3, dim=4, heads=2)
    shutil.rmtree(store_folder(graph))
    shutil.copytree(graph.path, copied / "graph")
    (copied / "people.tsv").write_text("".join(f"a{i}\tknows\ta{(i * 7 + 1) % 40}\n" for i in range(40)))
    return copied


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_write_that_fails_leaves_the_old_state_or_the_new_one(name: str, folder: Path, tmp_path: Path) -> None:
    made, arguments = COMMANDS[name]
    attempts = outcomes(folder, tmp_path, made, arguments, MOST)
    assert len(attempts) > 5
    assert any(attempt.code for attempt in attempts)
    wrong = [attempt for attempt in attempts if not is_right(attempt, made)]
    assert not wrong, "\n".join(map(str, wrong))


def is_right(attempt: Attempt, made: str) -> bool:
    """Whether nothing was lost, and an error was told in one line that names the folder and the reason."""
    is_told = attempt.said.startswith("halfgraph: ") and attempt.said.count("\n") == 1
    is_told = is_told and attempt.error in attempt.said and Path(made).name in attempt.said
    is_whole = not attempt.damaged and not attempt.left and attempt.again == 0 and attempt.equal
    return is_whole and (attempt.code == 0 or (attempt.code == 1 and is_told))
