"""What doctor says about the installation."""

import importlib.util
import json
import tomllib
from pathlib import Path

import pytest

from command_line import Run
from halfgraph.cli import installation
from halfgraph.cli.installation import EXTRAS, extras, memory, self_test, versions

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_extras_are_those_of_the_package() -> None:
    optional = PROJECT["optional-dependencies"]
    assert set(EXTRAS) == set(optional) - {"dev"}
    for name, one in EXTRAS.items():
        assert any(requirement.startswith(one.package) for requirement in optional[name])
        assert f"halfgraph[{name}]" in one.command


def test_a_missing_extra_is_named_with_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else find(name))
    assert extras()["mcp"] == "missing, for halfgraph mcp: pip install 'halfgraph[mcp]'"
    assert extras()["plots"] == "installed"


def test_versions_and_memory_are_told() -> None:
    assert {"halfgraph", "Python", "torch"} <= set(versions())
    assert "GB free" in memory()


def test_the_self_test_passes() -> None:
    assert "10 known answers, as expected" in self_test()


def test_doctor_without_a_folder_describes_the_installation(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(installation, "self_test", lambda: "works")
    found = json.loads(run("doctor", "--json").out)
    assert set(found) == {"versions", "machine", "extras", "self_test"}
    assert found["self_test"] == "works"
    lines = run("doctor").out.splitlines()
    assert {"Versions", "Machine", "Optional packages", "Self-test"} <= set(map(str.strip, lines))
    assert max(map(len, lines)) <= 80
