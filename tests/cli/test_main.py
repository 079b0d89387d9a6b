"""The help of every command: short, with an example, and within 80 columns."""

import pytest

from command_line import Run
from halfgraph.cli.main import app

COMMANDS = [[command.name or command.callback.__name__] for command in app.registered_commands if command.callback]
WORKLOAD = [["workload", command.name or ""] for command in app.registered_groups[0].typer_instance.registered_commands]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_every_command_is_listed_with_a_whole_sentence(run: Run) -> None:
    help_text = run("--help").out
    listed = help_text.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == [*(name for (name,) in COMMANDS), "workload"]
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


@pytest.mark.parametrize("command", [[], *COMMANDS, *WORKLOAD], ids=" ".join)
def test_help_has_an_example_and_fits_a_terminal(run: Run, command: list[str]) -> None:
    outcome = run(*command, "--help")
    assert outcome.code == 0
    assert f"Example: halfgraph {' '.join(command)}" in " ".join(outcome.out.split())
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_an_unknown_command_and_option_are_usage_errors(run: Run) -> None:
    assert run("imports").code == 2
    assert run("stats", "graph", "--plots", "a.png").code == 2


def test_help_has_a_short_option_and_completion_can_be_installed(run: Run) -> None:
    assert run("-h").out == run("--help").out
    assert run("train", "-h").out == run("train", "--help").out
    assert run("workload", "export", "-h").out == run("workload", "export", "--help").out
    assert "--install-completion" in run("-h").out
    assert run("--version").out.startswith("halfgraph ")
