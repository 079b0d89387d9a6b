"""Run the command line inside the test process, and check how it fails."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from halfgraph.cli import main

TINY = ["dim=4", "heads=2", "one_edge=16", "longer=4", "neighbourhoods=2", "type_negatives=6", "other_negatives=6"]
FEW = [word for pair in TINY for word in ("--set", pair)]  # options that make training take a second


class Outcome(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


def command(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    return int(leaving.value.code or 0)


def refused(outcome: Outcome, *messages: str, code: int = 1) -> None:
    """Check that a command failed with one line that has the messages, and left no files behind."""
    assert outcome.code == code
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert code == 2 or (outcome.err.startswith("halfgraph: ") and outcome.err.count("\n") == 1)
    for message in messages:
        assert message in " ".join(outcome.err.split())
    assert not Path("out").exists()
    assert not list(Path().glob(".*"))
