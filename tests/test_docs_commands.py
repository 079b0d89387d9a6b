"""Every command line, option, choice, setting and make target in the documentation exists."""

import re
from pathlib import Path
from typing import Any

import typer

from doc_pages import ROOT, code_blocks, every_page, inline_code, text_of
from halfgraph.cli.main import app
from halfgraph.model.variants import variant_named
from halfgraph.prediction.modes import MODES
from halfgraph.settings import given_values
from halfgraph.training.recipe import RECIPES

OPTION = r"(?<![\w-])--[a-z][\w-]*"
SHELLS = ("", "sh", "bash", "console")
OTHER_PROGRAMS = r"\b(curl|git|mypy|npm|npx|pip|pytest|ruff|\w+\.py)\b"


def leaf_commands(command: Any, name: str = "") -> dict[str, Any]:
    """Return every command by its words, such as "workload export"."""
    if not hasattr(command, "commands"):
        return {name: command}
    parts = [leaf_commands(child, f"{name} {part}".strip()) for part, child in command.commands.items()]
    return {path: leaf for part in parts for path, leaf in part.items()}


def options_of(command: Any) -> set[str]:
    return {"--help", *(option for each in command.params for option in (*each.opts, *each.secondary_opts))}


OPTIONS = {name: options_of(command) for name, command in leaf_commands(typer.main.get_command(app)).items()}
GROUPS = {name.split()[0] for name in OPTIONS if " " in name}
BENCHMARKS = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}


def without_quotes(text: str) -> str:
    """Replace each quoted argument, which may contain line ends, by one letter."""
    return re.sub(r"'[^']*'|\"[^\"\n]*\"", "Q", text)


def lines_of_code(text: str) -> list[str]:
    """Return the lines of all shell blocks, continued lines joined, and each piece of inline code."""
    blocks = [re.sub(r"\\\n|\n +(?=\[)", " ", without_quotes(block)) for block in code_blocks(text, *SHELLS)]
    return [line for block in blocks for line in block.splitlines()] + list(map(without_quotes, inline_code(text)))


def command_lines(text: str) -> list[str]:
    """Return the arguments of every command line of halfgraph on a page."""
    alternatives = r" \| (?=[^\[]*\])"  # [--seeds FILE | --seeds-query QUERY]
    lines = [re.sub(alternatives, " ", line) for line in lines_of_code(text)]
    starts = [re.search(r"(?:^|[|(;] *|\$ |\.venv/bin/)halfgraph ([a-z].*)", line) for line in lines]
    return [re.split(r" [|>#] ?| 2>|\)|; ", start[1])[0] for start in starts if start]


def command_of(line: str) -> str | None:
    words = line.split()
    return next((name for name in (" ".join(words[:2]), words[0]) if name in OPTIONS), None)


def values_of(line: str, option: str) -> list[str]:
    values = re.findall(rf"{option}[ =]([^\s\]]+)", line)
    return [value for value in values if value.islower() or "=" in value]


@every_page
def test_every_command_and_its_options_exist(page: Path) -> None:
    for line in command_lines(text_of(page)):
        command = command_of(line)
        assert command or line.split()[0] in GROUPS, f"no command: halfgraph {line}"
        unknown = set(re.findall(OPTION, line)) - OPTIONS.get(command or "", set())
        assert not unknown, f"no option {min(unknown)}: halfgraph {line}"


@every_page
def test_every_option_named_in_the_text_exists(page: Path) -> None:
    if page.name == "CHANGELOG.md":  # it names options that were renamed
        return
    known = set().union(*OPTIONS.values()) | {"--version"}
    for code in inline_code(text_of(page)):
        if not re.search(OTHER_PROGRAMS, code):
            assert set(re.findall(OPTION, code)) <= known, f"an option that no command has: {code}"


@every_page
def test_every_mode_recipe_model_and_setting_exists(page: Path) -> None:
    for line in lines_of_code(text_of(page)):
        if not re.search(OTHER_PROGRAMS, line):
            assert set(values_of(line, "--mode")) <= set(MODES), line
            assert set(values_of(line, "--recipe")) <= set(RECIPES), line
            given_values(None, values_of(line, "--set"))
            for model in values_of(line, "--model"):
                variant_named(model)


@every_page
def test_every_make_target_and_benchmark_exists(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", text_of(ROOT / "Makefile"), flags=re.MULTILINE))
    for line in lines_of_code(text_of(page)):
        made = re.match(r"make((?: [\w-]+)+) *(?:#.*)?$", line)
        assert not made or set(made[1].split()) <= targets, line
        assert set(re.findall(r"benchmarks/run\.py ([a-z_]+)", line)) <= BENCHMARKS, line
