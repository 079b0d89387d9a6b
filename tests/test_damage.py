"""Damaged folders: every command gives its answer, or one line that says which file is damaged and what to do.

`DAMAGES` in the environment sets how many damages are drawn, for `make damage`.
"""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import halfgraph
from command_line import Outcome, command
from damages import KINDS, Damage, draw
from halfgraph.cli import main
from halfgraph.graph.manifest import MANIFEST
from halfgraph.graph.store import store_folder
from halfgraph.prediction import predictors
from halfgraph.training import link_training
from halfgraph.workload.folder import Counts, Plan, sample
from small_runs import FEW, people

COUNT, SEED = int(os.environ.get("DAMAGES", "100")), int(os.environ.get("DAMAGE_SEED", "0"))
FEW_DAMAGES = 100
SHARES = {"graph": 40, "questions": 25, "run": 30, "table": 5}  # of 100 damages
SECONDS = 100  # after which a command hangs
QUERY = "SELECT ?x { ?x <livesIn> <city1> ; <speaks> <language1> }"
TIMES = re.compile(r'"(seconds|questions_per_second)": [\d.e-]+')
NEW = ["--out", "out", "--json"]  # a folder that the command makes
SHORT = ["--steps", "4", "--set", "dim=4", "--set", "heads=2"]
REPRODUCE = ["reproduce", "--graph", "graph", "--workload", "questions", "--rows", "GQE[min]", "--seeds", "1", *SHORT]
# Commands that read the files of a folder; the first ones of a folder are the quickest.
COMMANDS = {
    "graph": [
        ["query", "graph", QUERY, "--json"],
        ["stats", "graph", "--json"],
        ["build", "graph", "--seeds-query", "SELECT ?x { ?x ?p <city1> }", "--hops", "2", "--degree", "2", *NEW],
        ["sample", "graph", "--two-edges", "20", "--three-edges", "20", "--valid", "5", "--test", "5", *NEW],
        ["doctor", "graph", "--json"],
        [*REPRODUCE, *NEW],
        ["serve", "run", "--graph", "graph"],
    ],
    "questions": [
        *(
            ["workload", "export", "questions", "--graph", "graph", "--split", split, "--out", "-"]
            for split in ("test", "valid", "train")
        ),
        ["doctor", "questions", "--json"],
        ["evaluate", "run", "--graph", "graph", "--workload", "questions", "--no-baselines", "--json"],
        [*REPRODUCE, *NEW],
        ["train", "graph", "questions", *SHORT, *NEW],
    ],
    "run": [
        ["ask", "run", QUERY, "--graph", "graph", "--json"],
        ["doctor", "run", "--json"],
        ["evaluate", "run", "--graph", "graph", "--workload", "questions", "--no-baselines", "--json"],
        ["train", "graph", "--out", "run", "--resume", "--json", *SHORT],
        ["calibrate", "run", "--graph", "graph", "--json"],
        ["serve", "run", "--graph", "graph"],
    ],
    "table": [[*REPRODUCE, "--out", "table", "--json"]],
}
# Damage that changes what a folder says, and leaves it a valid folder: if its manifest is renewed, nobody can tell.
VALID = {"flipped", "other", "npy-shuffled", "npy-negative", "npy-large", "json-change", "json-drop", "toml-change"} | {
    *("cut", "longer", "missing", "random", "safetensors-about"),
}


def make(folder: Path, seed: int) -> Path:
    """A graph with its store, a workload and a run."""
    folder.mkdir()
    people(folder, seed=seed).path.rename(folder / "graph")
    graph = halfgraph.Graph.open(folder / "graph")
    store_folder(graph)
    sample(graph, folder / "questions", Plan(Counts(5, 5, 5, 5, 0), seed, structures=FEW))
    halfgraph.train(graph, folder / "run", steps=4, dim=4, heads=2, seed=seed)
    with contextlib.chdir(folder):
        assert command([*REPRODUCE, "--out", "table", "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Two sets of folders."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"RANK": 4, "LEAST_RANK": 4, "EPOCHS": 1}.items():
            patch.setattr(link_training, name, value)
        patch.setattr(predictors, "PAIRS", 50)
        place = tmp_path_factory.mktemp("folders")
        yield make(place / "first", 0), make(place / "second", 1)


def run(folder: Path, arguments: list[str]) -> Outcome:
    """Run a command in a process of its own: a crash or an endless loop ends it alone."""
    out, err = folder.parent / "out", folder.parent / "err"
    if arguments[0] == "serve":
        return serve_once(folder, arguments, out, err)
    child = start(folder, arguments, out, err)
    _, status = os.waitpid(child, 0)
    shutil.rmtree(folder / "out", ignore_errors=True)
    return Outcome(os.waitstatus_to_exitcode(status), TIMES.sub("", out.read_text()), err.read_text())


def start(folder: Path, arguments: list[str], out: Path, err: Path) -> int:
    """Start a command in a folder; return its process number."""
    if not (child := os.fork()):
        try:
            os.chdir(folder)
            for number, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
            signal.alarm(SECONDS)
            main(arguments)
        except SystemExit as leaving:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(leaving.code or 0))
        except BaseException as error:
            sys.stderr.write(f"Traceback: {error!r}\n")
            sys.stderr.flush()
        finally:
            os._exit(99)
    return child


def serve_once(folder: Path, arguments: list[str], out: Path, err: Path) -> Outcome:
    """Start a server, send it one request, and stop it; the output is the answer."""
    out.write_text("")
    options = ["--port", "0", "--workers", "1", "--log", "none"]
    child, answer = start(folder, [*arguments, *options], out, err), ""
    while not (status := os.waitpid(child, os.WNOHANG))[0]:
        if found := re.search(r"http://\S+\n", out.read_text()):
            given = {"query": QUERY, "format": "csv"}
            reply = httpx.get(f"{found.group().strip()}sparql/predict", params=given, timeout=SECONDS)
            answer = f"{reply.status_code} {reply.text}"
            os.kill(child, signal.SIGTERM)
            status = os.waitpid(child, 0)
            break
        time.sleep(0.05)
    said = "".join(line for line in err.read_text().splitlines(keepends=True) if "opening run" not in line)
    return Outcome(os.waitstatus_to_exitcode(status[1]), answer, said)


@pytest.fixture(scope="module")
def expected(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What each command gives with whole folders; run in this process, which then has everything loaded."""
    outcomes = {}
    for arguments in (arguments for given in COMMANDS.values() for arguments in given):
        copy = shutil.copytree(folders[0], tmp_path_factory.mktemp("whole") / "copy")
        if arguments[0] == "serve":
            outcomes[json.dumps(arguments)] = run(copy, arguments)
            continue
        with contextlib.chdir(copy), contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())) as out:
            code = command(arguments)
            out.flush()
            outcomes[json.dumps(arguments)] = Outcome(code, TIMES.sub("", out.buffer.getvalue().decode()), "")
    return outcomes


def files_of(folder: Path, name: str) -> list[str]:
    """The files of one of the folders, those of the store among them."""
    unused = ("LOG", "LOCK", "curves.png")
    paths = sorted(path for path in (folder / name).rglob("*") if path.is_file())
    return [str(path.relative_to(folder)) for path in paths if path.name not in unused]


def check(damage: Damage, arguments: list[str], whole: Outcome, outcome: Outcome) -> None:
    """A command gives its answer, or says in one line what is damaged."""
    what = f"{damage}, seed {damage.seed}, halfgraph {' '.join(arguments)}: {outcome}"[:3000]
    assert "Traceback" not in outcome.err, what
    if outcome.code == 0 and damage.manifest == "renewed" and (damage.kind in VALID or arguments[0] == "doctor"):
        assert not outcome.out.startswith("500"), what
        return
    if outcome.code == 0:
        assert outcome.out == whole.out, what
        return
    assert outcome.code == 1, what
    if arguments[0] == "doctor" and not outcome.err:
        assert Path(damage.file).name in outcome.out or MANIFEST in outcome.out, what
        return
    assert outcome.err.startswith("halfgraph: "), what
    assert outcome.err.count("\n") == 1, what
    assert len(outcome.err) < 2000, what
    assert outcome.out == "", what
    named = re.search(r"(graph|questions|run|table)(/[\w.-]+)*", outcome.err)
    assert named, what
    is_named = Path(damage.file).name in outcome.err or MANIFEST in outcome.err
    assert damage.manifest != "kept" or is_named, what


def test_whole_folders_give_answers(expected: dict[str, Outcome]) -> None:
    assert {outcome.code for outcome in expected.values()} == {0}, expected
    assert all(outcome.out for outcome in expected.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_damage_is_one_clear_line(
    name: str, folders: tuple[Path, Path], expected: dict[str, Outcome], tmp_path: Path
) -> None:
    failures: list[Any] = []
    copy = shutil.copytree(folders[0], tmp_path / "copy")
    for number, damage in enumerate(draw(files_of(folders[0], name), SHARES[name] * COUNT // 100, SEED)):
        arguments = chosen(name, damage, number)
        shutil.rmtree(copy)
        shutil.copytree(folders[0], copy)
        damage.apply(copy, folders[1])
        try:
            check(damage, arguments, expected[json.dumps(arguments)], run(copy, arguments))
        except AssertionError as failure:
            failures.append(str(failure).splitlines()[0])
    assert not failures, f"{len(failures)} failures:\n" + "\n".join(failures)


def chosen(name: str, damage: Damage, number: int) -> list[str]:
    """The command for a damage: mostly a quick one if there are few damages, all equally often if there are many."""
    given = COMMANDS[name]
    arguments = given[number % len(given) if COUNT > FEW_DAMAGES or number % 5 == 0 else number % min(2, len(given))]
    if arguments[0] == "workload":
        return next(own for own in given if own[6] in (Path(damage.file).name.split(".")[0], "train"))
    return arguments


def test_a_missing_manifest_is_refused_by_every_command_that_opens_the_folder(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(folders[0], tmp_path / "copy")
    for name in ("graph", "questions", "run"):
        manifest = copy / name / MANIFEST
        content = manifest.read_bytes()
        manifest.unlink()
        for arguments in COMMANDS[name]:
            outcome = run(copy, arguments)
            assert outcome.code == 1, arguments
            assert f"{name}/{MANIFEST}" in outcome.out + outcome.err, arguments
            assert outcome.err.count("\n") == (arguments[0] != "doctor"), outcome
        manifest.write_bytes(content)


def test_every_kind_of_damage_is_drawn() -> None:
    files = [f"a.{ending}" for ending in ("npy", "json", "safetensors", "toml", "nq")]
    assert {damage.kind for damage in draw(files, 10_000, 0)} == set(KINDS)
