import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import FEW, Outcome, Run, command, refused
from halfgraph.training.run_folder import MODEL, STATE, load_tensors
from query_files import SMALL, sampled, split_graph

PROGRAM = Path(sys.executable).parent / "halfgraph"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a split graph g, its workload w, another graph, and one without a split."""
    folder = tmp_path_factory.mktemp("made")
    for name, seed in (("g", 0), ("other", 1)):
        (folder / f"{name}.d").mkdir()
        split_graph(folder / f"{name}.d", seed).path.rename(folder / name)
    from halfgraph.graph.folder import Graph

    sampled(Graph.open(folder / "g"), folder / "w", SMALL)
    (folder / "t.tsv").write_text("".join(f"e{i % 7}\tr{i % 2}\te{(i * i) % 11}\n" for i in range(40)))
    assert command(["import", str(folder / "t.tsv"), "--quiet", "--out", str(folder / "whole")]) == 0
    return folder


def train(run: Run, *more: str, steps: int = 6) -> Outcome:
    return run("train", "g", "w", "--out", "run", "--steps", str(steps), *FEW, *more)


# A run


def test_a_run_is_shown_as_it_goes_and_leaves_a_model(run: Run) -> None:
    outcome = train(run, "--patience", "6")
    assert outcome.code == 0
    assert "Trained run" in outcome.out
    for words in ("best step", "auc", "questions per second"):
        assert words in outcome.out
    lines = outcome.err.splitlines()
    assert len(lines) == 6  # fewer than ten steps: a validation each
    assert all(words in lines[-1] for words in ("step 6: loss", "AUC 0.", "questions/s", "0 s left"))
    assert {path.name for path in Path("run").iterdir()} == {
        *("README.md", "config.toml", "curves.png", "metrics.jsonl", "model.safetensors", "provenance.json"),
        *("state.safetensors", "links.safetensors", "manifest.json"),
    }
    assert "# CGA+KG+8[min] on graph" in Path("run/README.md").read_text()


def test_a_run_prints_its_figures_as_json(run: Run) -> None:
    outcome = train(run, "--json", "--model", "GQE[mean]")
    assert outcome.err == ""
    printed = json.loads(outcome.out)
    assert (printed["run"], printed["steps"]) == ("run", 6)
    assert printed["questions"] == 6 * (16 + 6 * 4 + 4 * 2)
    assert 0 < printed["auc"] < 1
    assert printed["auc"] == max(json.loads(line)["auc"] for line in Path("run/metrics.jsonl").read_text().splitlines())


def test_a_run_can_be_quiet(run: Run) -> None:
    assert train(run, "--quiet", steps=2) == (0, "", "")


def test_a_bar_is_shown_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    outcome = train(run)
    assert outcome.code == 0
    for words in ("questions/s", "loss", "AUC"):
        assert words in outcome.err


def test_the_same_seed_gives_the_same_model_and_another_another(run: Run) -> None:
    models = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert run("train", "g", "w", "--out", name, "--steps", "3", "--seed", seed, "-q", *FEW).code == 0
        models.append((Path(name) / MODEL).read_bytes())
    assert models[0] == models[1] != models[2]


def test_a_run_with_a_time_budget_samples_its_questions_on_the_fly(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfgraph.evaluation.validation.SAMPLED", 20)
    outcome = run("train", "g", "--out", "run", "--minutes", "0", "--json", *FEW)
    assert json.loads(outcome.out)["steps"] == 13
    assert json.loads(Path("run/provenance.json").read_text())["source"] == "on the fly"


def test_a_graph_without_a_split_keeps_the_last_weights(run: Run) -> None:
    outcome = run("train", "whole", "--out", "run", "--steps", "3", *FEW, "--set", "neighbourhoods=0")
    assert outcome.code == 0
    assert outcome.err.startswith("The graph has no validation triples, so the last weights are kept. It is too small")
    model, state = load_tensors(Path("run") / MODEL)[0], load_tensors(Path("run") / STATE)[0]
    assert all((state[f"weight.{name}"] == tensor).all() for name, tensor in model.items())


def test_a_graph_without_a_split_holds_out_triples_by_itself(run: Run) -> None:
    Path("t.csv").write_text("".join(f"a{i % 13},r{i % 3},b{i * i % 17}\n" for i in range(700)))
    assert run("import", "t.csv", "--out", "unsplit", "-q").code == 0
    words = ("train", "unsplit", "--steps", "3", *FEW, "--set", "neighbourhoods=0")
    outcome = run(*words, "--out", "run")
    assert outcome.code == 0
    assert "The graph has no split, so 20 of its " in outcome.err
    assert "AUC" in outcome.err
    assert json.loads(Path("run/provenance.json").read_text())["held_out"]["count"] == 20
    before = (Path("run") / MODEL).read_bytes()
    assert run(*words, "--out", "run", "--resume", "-q") == (0, "", "")
    assert (Path("run") / MODEL).read_bytes() == before
    missing = run("evaluate", "run")
    assert missing.code == 1
    assert "unsplit: has no test triples" in missing.err
    assert "pass --split valid" in missing.err
    assert run("evaluate", "run", "--split", "valid", "--limit", "5", "-q").code == 0
    assert run("calibrate", "run").code == 0


def test_the_papers_recipe_is_there(run: Run) -> None:
    outcome = train(run, "--recipe", "paper", "--set", "other_negatives=0", "--set", "type_negatives=1", steps=2)
    assert outcome.code == 0
    text = Path("run/config.toml").read_text()
    for line in ('loss = "hinge"', "margin = 1.0", "hard_negatives = 1", 'initial = "xavier"'):
        assert line in text


def test_help_has_an_example(run: Run) -> None:
    out = run("train", "--help").out
    assert "Example: halfgraph train" in out
    assert "--resume" in out
    assert "5 % of its triples" in " ".join(out.split())


# Resuming


def test_a_finished_run_can_be_resumed_by_its_own_settings(run: Run) -> None:
    assert train(run, "-q", "--model", "gqe").code == 0
    before = (Path("run") / MODEL).read_bytes()
    again = ("train", "g", "w", "--out", "run", "--steps", "6", "--resume", "-q")
    assert run(*again, "--config", "run/config.toml").code == 0
    assert run(*again, "--model", "gqe", *FEW).code == 0
    assert (Path("run") / MODEL).read_bytes() == before


def test_other_settings_graphs_questions_and_folders_are_refused(run: Run) -> None:
    assert train(run, "-q", steps=2).code == 0
    refused(train(run), "run: already exists. Remove it, pass --resume to continue it, or choose another --out.")
    for more in (["--set", "dim=8"], ["--model", "gqe"], ["--seed", "5"], ["--recipe", "paper"]):
        refused(train(run, "--resume", *more), "run: was started with other settings")
    refused(run("train", "g", "--out", "run", "--resume", *FEW), "run: was started with other questions")
    refused(run("train", "other", "--out", "run", "--resume", *FEW), "run: belongs to graph", "this is graph")
    refused(run("train", "g", "--out", "w", "--resume", *FEW), "w: no run here")


def test_a_run_without_its_settings_or_with_a_broken_state_is_refused(run: Run) -> None:
    assert train(run, "-q", steps=2).code == 0
    state = (Path("run") / STATE).read_bytes()
    (Path("run") / STATE).write_bytes(state[:-20])
    refused(train(run, "--resume"), "state.safetensors: has", "Restore it from a copy, or train the model again.")
    (Path("run") / STATE).write_bytes(b"")
    refused(train(run, "--resume"), "state.safetensors: has", "Restore it from a copy, or train the model again.")
    Path("run/config.toml").unlink()
    refused(train(run, "--resume"), "config.toml")


def begun(*arguments: str) -> "subprocess.Popen[str]":
    """Start a command in its own process and wait until it trains."""
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    for _ in range(6000):
        if Path("run/metrics.jsonl").exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    return process


MANY = ("train", "g", "w", "--steps", "80", "--threads", "1", "-q", *FEW)


@pytest.fixture(scope="module")
def uninterrupted(made: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Model of an uninterrupted run."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert command(["train", str(made / "g"), str(made / "w"), *MANY[3:], "--out", str(out)]) == 0
    return (out / MODEL).read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_run_stopped_from_outside_resumes_to_the_same_result(
    run: Run, uninterrupted: bytes, number: signal.Signals
) -> None:
    process = begun(*MANY, "--out", "run")
    time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (out, "Traceback" in err) == ("", False)
    if number == signal.SIGINT:
        assert process.returncode == 130
        step = json.loads(load_tensors(Path("run") / STATE)[1]["progress"])["step"]
        assert 0 <= step < 80
    else:
        assert process.returncode == -signal.SIGKILL
        assert not Path("run/README.md").exists()
    assert run(*MANY, "--out", "run", "--resume").code == 0
    assert (Path("run") / MODEL).read_bytes() == uninterrupted


# Bad input


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("dims=3", 'unknown setting "dims"; did you mean "dim"?'),
        ("dim=0", "dim: must be at least 1, found 0"),
        ("heads=0", "heads: must be at least 1, found 0"),
        ("dim=large", 'dim: must be a whole number, found "large"'),
        ("uniform=edges", 'uniform: unknown value "edges"'),
        ("learning_rate=0", "learning_rate: must be above 0"),
        ("dim", '--set: cannot read "dim"'),
    ],
)
def test_invalid_settings_are_refused(run: Run, given: str, said: str) -> None:
    refused(run("train", "g", "--out", "run", "--set", given), said)
    assert not Path("run").exists()


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "gpu", "cud"])
def test_a_device_that_is_not_there_is_refused(run: Run, device: str) -> None:
    import torch

    if torch.cuda.is_available() and device.startswith("cuda"):
        pytest.skip("there is one")
    refused(
        run("train", "g", "--out", "run", "--device", device), f"--device: there is no {device} on this machine", "cpu"
    )
    assert not Path("run").exists()


def test_models_graphs_and_workloads_that_are_not_there_are_refused(run: Run) -> None:
    for arguments, said in (
        (["g", "--model", "cgaa"], "--model: there is no model named"),
        (["absent"], "absent: no such folder"),
        (["w"], "w: no graph here"),
        (["g", "g"], "g: no workload here"),
        (["other", "w"], "w: belongs to graph"),
        (["g", "--config", "absent.toml"], "absent.toml: cannot be read"),
    ):
        refused(run("train", *arguments, "--out", "run"), said)
        assert not Path("run").exists()
    refused(run("train", "g", "--out", "run", "--recipe", "fast"), "Invalid value for '--recipe'", code=2)
    refused(run("train", "g", "--out", "run", "--steps", "0"), "Invalid value for '--steps'", code=2)
    refused(run("train", "g"), "Missing option", code=2)


def test_a_learning_rate_that_makes_the_loss_overflow_is_reported_with_its_step(run: Run) -> None:
    outcome = train(run, "--set", "learning_rate=1e38", steps=30)
    assert outcome.code == 1
    last = outcome.err.splitlines()[-1]
    assert last.startswith("halfgraph: ")
    assert "is not a finite number at step" in last
    assert "try a smaller learning_rate" in last
    assert "Traceback" not in outcome.err


def test_a_path_that_cannot_be_written_is_reported(run: Run) -> None:
    Path("file").write_text("")
    refused(run("train", "g", "--out", "file/run", *FEW), "file/run: cannot be written")
