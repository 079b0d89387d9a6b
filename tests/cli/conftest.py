"""Fixtures of the command line's tests."""

import io
import sys
from pathlib import Path

import pytest

from command_line import Outcome, Run, command


@pytest.fixture(scope="module")
def made() -> Path | None:
    """Folder whose contents a module's commands find in their working directory; modules override it."""
    return None


@pytest.fixture
def run(made: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a new folder with links to what the module has made."""
    for path in [] if made is None else made.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()

    def run_command(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        return Outcome(command(list(arguments)), *capsys.readouterr())

    return run_command
