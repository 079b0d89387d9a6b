import json
import math
import multiprocessing
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from halfgraph.errors import FolderError
from halfgraph.graph.folder import Graph
from halfgraph.model.encoder import Encoder
from halfgraph.model.threads import torch_threads
from halfgraph.training import loop
from halfgraph.training.checkpoint import Diverged, TrainingState
from halfgraph.training.loop import Budget, train
from halfgraph.training.optimiser import Optimiser
from halfgraph.training.run_folder import METRICS, MODEL, STATE, load_tensors
from halfgraph.workload.folder import Workload
from query_files import sampled, split_graph
from small_runs import HINGE, Killed, Result, Setting, killing_at, result


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return split_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def setting(graph: Graph) -> Setting:
    return Setting(graph)


@pytest.fixture(scope="module")
def workload(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return sampled(graph, tmp_path_factory.mktemp("workload") / "w")


@pytest.fixture(scope="module")
def uninterrupted(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Files of the setting's run without an interruption."""
    return finished(setting, tmp_path_factory.mktemp("run"))


def finished(setting: Setting, run: Path) -> Result:
    setting.go(run)
    return result(run)


# Steps, validation, stopping


def test_the_best_weights_are_kept_and_the_last_are_in_the_state(setting: Setting, tmp_path: Path) -> None:
    seen: dict[int, dict[str, torch.Tensor]] = {}

    def score(encoder: Encoder) -> dict[str, Any]:
        seen[len(seen)] = {name: parameter.detach().clone() for name, parameter in encoder.named_parameters()}
        return {"score": [0.1, 0.3, 0.9, 0.2, 0.9][len(seen) - 1]}

    progress = setting.go(tmp_path / "run", validate=score)
    assert (progress.step, progress.best, progress.best_step, progress.since_best) == (20, 0.9, 12, 2)
    best, about = load_tensors(tmp_path / "run" / MODEL)
    assert about == {"step": "12"}
    last, _ = load_tensors(tmp_path / "run" / STATE)
    for name, weights in seen[2].items():
        assert torch.equal(best[name], weights)
        assert torch.equal(last[f"weight.{name}"], seen[4][name])
    assert [row["step"] for row in progress.history] == [4, 8, 12, 16, 20]


def test_training_stops_when_validation_does_not_get_better(setting: Setting, tmp_path: Path) -> None:
    scores = iter([0.5, 0.6, 0.6, 0.1, 0.9])
    patient = replace(setting, budget=replace(setting.budget, patience=2))
    progress = patient.go(tmp_path / "run", validate=lambda _: {"score": next(scores)})
    assert (progress.step, progress.best_step) == (16, 8)
    # A run that has stopped stays as it is.
    before = result(tmp_path / "run")
    patient.go(tmp_path / "run", validate=lambda _: {"score": 1.0})
    assert result(tmp_path / "run") == before


def test_without_validation_the_last_weights_are_kept(setting: Setting, tmp_path: Path) -> None:
    encoder = setting.encoder()
    run = tmp_path / "run"
    run.mkdir()
    progress = train(encoder, setting.batches(), setting.budget, run)
    assert progress.best_step == progress.step == 20
    for name, tensor in load_tensors(run / MODEL)[0].items():
        assert torch.equal(tensor, dict(encoder.named_parameters())[name])


def test_the_learning_rate_falls_to_nothing_or_stays(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = TrainingState(total=10)
    for decay, expected in (("linear", [0.05, 0.025, 0.005]), ("none", [0.05] * 3)):
        recipe = replace(setting.recipe, decay=decay)  # type: ignore[arg-type]
        rates = [loop._learning_rate(recipe, replace(progress, step=step)) for step in (0, 5, 9)]
        assert rates == pytest.approx(expected)


def test_progress_is_called_after_every_step_with_its_loss(setting: Setting, tmp_path: Path) -> None:
    seen: list[tuple[int, float]] = []
    progress = setting.go(tmp_path / "run", lambda progress, loss: seen.append((progress.step, loss)))
    assert [step for step, _ in seen] == list(range(1, 21))
    assert all(math.isfinite(loss) for _, loss in seen)
    assert progress.history[-1]["loss"] == seen[-1][1]
    assert progress.questions == 20 * len(setting.batches().batch(0))


@pytest.mark.parametrize(("threads", "of_a_step"), [(1, 1), (2, 1)])
def test_a_step_leaves_a_thread_to_the_batches(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, of_a_step: int
) -> None:
    seen: list[int] = []
    loss = loop.batch_loss
    monkeypatch.setattr(loop, "batch_loss", lambda *given: seen.append(torch.get_num_threads()) or loss(*given))
    with torch_threads(threads):
        setting.go(tmp_path / "run", lambda *_: seen.append(torch.get_num_threads()))
    assert seen == [of_a_step, threads] * 20


def test_metrics_are_a_line_for_each_validation(setting: Setting, tmp_path: Path) -> None:
    progress = setting.go(tmp_path / "run")
    lines = (tmp_path / "run" / METRICS).read_text().splitlines()
    assert [json.loads(line) for line in lines] == progress.history
    assert {"step", "seconds", "loss", "questions_per_second", "score"} <= set(progress.history[0])


def test_what_could_not_be_measured_is_null(setting: Setting, tmp_path: Path) -> None:
    setting.go(tmp_path / "run", validate=lambda _: {"score": 0.5, "apr": math.nan})
    for line in (tmp_path / "run" / METRICS).read_text().splitlines():
        assert json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["apr"] is None


def test_the_same_seed_gives_the_same_run_and_another_another(
    setting: Setting, uninterrupted: Result, tmp_path: Path
) -> None:
    assert finished(setting, tmp_path / "same") == uninterrupted
    assert finished(replace(setting, seed=4), tmp_path / "other").model != uninterrupted.model


def test_one_edge_questions_are_alone_while_burning_in(setting: Setting, tmp_path: Path) -> None:
    burning = replace(setting, recipe=replace(setting.recipe, burn_in=0.25))
    counts: list[int] = []
    burning.go(tmp_path / "run", lambda progress, _: counts.append(progress.questions))
    sizes = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    assert sizes[:5] == [16] * 5
    assert min(sizes[5:]) > 16


# Going on


@pytest.mark.parametrize("at", [(1,), (4,), (20,), (3, 3, 8, 9, 16)], ids=str)
def test_a_run_killed_after_a_step_resumes_to_the_same_result(
    setting: Setting, uninterrupted: Result, tmp_path: Path, at: tuple[int, ...]
) -> None:
    for step in at:
        with pytest.raises(Killed):
            setting.go(tmp_path / "run", killing_at(step))
    assert finished(setting, tmp_path / "run") == uninterrupted


def test_a_run_killed_before_its_first_checkpoint_starts_again(
    setting: Setting, uninterrupted: Result, tmp_path: Path
) -> None:
    rare = replace(setting, budget=replace(setting.budget, checkpoint_seconds=1e9))
    with pytest.raises(Killed):
        rare.go(tmp_path / "run", killing_at(10))
    assert len((tmp_path / "run" / METRICS).read_text().splitlines()) == 2
    assert not (tmp_path / "run" / STATE).exists()
    assert finished(rare, tmp_path / "run") == uninterrupted


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_killed_while_it_writes_resumes_to_the_same_result(
    setting: Setting, uninterrupted: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    replace_file, left = Path.replace, 0

    def dying(self: Path, target: Path) -> Path:
        """A file gets its name; the run dies before or after."""
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            raise Killed
        found = replace_file(self, target)
        if left == 0:
            raise Killed
        return found

    monkeypatch.setattr(Path, "replace", dying)
    attempts = 0
    while True:
        attempts, left = attempts + 1, 2 + attempts % 5
        try:
            setting.go(tmp_path / "run")
            break
        except Killed:
            continue
    assert attempts > 5
    assert result(tmp_path / "run") == uninterrupted


def test_a_run_killed_by_the_system_at_random_moments_resumes_to_the_same_result(
    setting: Setting, uninterrupted: Result, tmp_path: Path
) -> None:
    assert killed_at_random(setting, tmp_path / "run") == uninterrupted


def test_a_resumed_run_from_a_workload_equals_an_uninterrupted_one(
    setting: Setting, workload: Workload, tmp_path: Path
) -> None:
    from_workload = replace(setting, workload=workload)
    expected = finished(from_workload, tmp_path / "whole")
    assert killed_at_random(from_workload, tmp_path / "run", seed=1) == expected


def killed_at_random(setting: Setting, run: Path, seed: int = 0) -> Result:
    """Files of a run that was killed with SIGKILL several times."""
    rng, context = random.Random(seed), multiprocessing.get_context("fork")
    kills = 0
    for turn in range(8):
        process = context.Process(target=setting.go, args=(run, lambda *_: time.sleep(0.003)))
        process.start()
        process.join(rng.uniform(0.02, 0.05) if turn == 0 else rng.uniform(0.05, 0.35))
        assert process.pid is not None
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        if process.exitcode == 0:  # it came to its end first
            break
        assert process.exitcode == -signal.SIGKILL
        kills += 1
    assert kills
    return finished(setting, run)


def test_a_run_of_some_minutes_resumes_to_the_same_result_once_its_steps_are_counted(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    burn_in = replace(setting.recipe, burn_in=0.7)  # so that the steps just after the count differ
    budget = Budget(minutes=1.0, validations=5, patience=99, checkpoint_seconds=1e9)
    timed = replace(setting, budget=budget, recipe=burn_in)
    monkeypatch.setattr(loop, "_steps_in", lambda *_: 22)
    expected = finished(timed, tmp_path / "whole")
    assert (expected.progress["step"], expected.progress["total"]) == (22, 22)
    with pytest.raises(Killed):
        timed.go(tmp_path / "run", killing_at(13))
    monkeypatch.setattr(loop, "_steps_in", lambda *_: pytest.fail("the steps are counted already"))
    often = replace(timed, budget=replace(budget, checkpoint_seconds=0.0))
    for step in (14, 17):
        with pytest.raises(Killed):
            often.go(tmp_path / "run", killing_at(step))
    assert finished(timed, tmp_path / "run") == expected


def test_the_number_of_steps_follows_from_the_time_limit_and_the_speed() -> None:
    progress = TrainingState(step=12, seconds=6.0, warm=3.0)  # half a second a step
    for minutes, steps in ((2.0, 240), (None, 600), (0.0, 13)):
        assert loop._steps_in(Budget(minutes=minutes), progress) == steps


# Ctrl-C


def interrupting_after(lines: int) -> Callable[..., Any]:
    """Return a tracer that sends SIGINT after some lines of the loop, the checkpoints and the optimiser."""
    left = lines

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(
            ("training/loop.py", "training/checkpoint.py", "training/optimiser.py")
        ):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGINT)
        return trace

    return trace


def test_a_run_interrupted_at_any_line_resumes_to_the_same_result(
    setting: Setting, uninterrupted: Result, tmp_path: Path
) -> None:
    rare = replace(setting, budget=replace(setting.budget, checkpoint_seconds=1e9))
    rng, before, interrupts = random.Random(0), sys.gettrace(), 0
    while True:
        sys.settrace(interrupting_after(rng.randrange(40, 700)))
        try:
            rare.go(tmp_path / "run")
            break
        except KeyboardInterrupt:
            interrupts += 1
        finally:
            sys.settrace(before)
    assert interrupts > 5
    assert result(tmp_path / "run") == uninterrupted


def test_ctrl_c_leaves_a_checkpoint(setting: Setting, tmp_path: Path) -> None:
    rare = replace(setting, budget=replace(setting.budget, checkpoint_seconds=1e9))

    def interrupt(state: TrainingState, _: float) -> None:
        if state.step == 7:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        rare.go(tmp_path / "run", interrupt)
    assert result_step(tmp_path / "run") == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def result_step(run: Path) -> int:
    return int(json.loads(load_tensors(run / STATE)[1]["progress"])["step"])


def test_a_run_may_be_in_a_thread_of_its_own(setting: Setting, uninterrupted: Result, tmp_path: Path) -> None:
    thread = threading.Thread(target=setting.go, args=(tmp_path / "run",))
    thread.start()
    thread.join()
    assert result(tmp_path / "run") == uninterrupted


# What goes wrong


def test_a_loss_that_is_no_number_stops_with_its_step_and_keeps_the_last_checkpoint(
    setting: Setting, uninterrupted: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_loss, run = loop.batch_loss, tmp_path / "run"
    for bad in (float("nan"), float("inf")):
        calls = iter(range(100))
        monkeypatch.setattr(loop, "batch_loss", lambda *given: batch_loss(*given) * (bad if next(calls) == 3 else 1))  # noqa: B023
        with pytest.raises(Diverged) as stopped:
            setting.go(run)
        step = stopped.value.step
        assert f"the loss is not a finite number at step {step}." in str(stopped.value)
        assert f"The last good checkpoint is kept in {run}" in str(stopped.value)
        assert result_step(run) == step
    monkeypatch.setattr(loop, "batch_loss", batch_loss)
    assert step == 6
    assert finished(setting, run) == uninterrupted


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_weights_that_are_no_numbers_are_never_written(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    budget = replace(setting.budget, checkpoint_seconds=seconds)
    encoder, run, step = setting.encoder(), tmp_path / "run", Optimiser.step
    run.mkdir()

    steps = iter(range(1, 100))

    def poisoned(self: Optimiser, learning_rate: float) -> None:
        step(self, learning_rate)
        if next(steps) == 4:  # at which there is a validation too
            encoder.entities.table.data[2, 1] = float("nan")

    monkeypatch.setattr(Optimiser, "step", poisoned)
    with pytest.raises(Diverged, match=r"a weight \(entities.table\) is not a finite number at step 4") as stopped:
        train(encoder, setting.batches(), budget, run)
    assert ("There is no checkpoint yet" in str(stopped.value)) == (seconds > 0)
    assert not (run / MODEL).exists()
    if seconds == 0.0:
        assert result_step(run) == 3
        assert all(torch.isfinite(tensor).all() for tensor in load_tensors(run / STATE)[0].values())


def test_a_full_disk_keeps_the_old_checkpoint_and_is_reported(
    setting: Setting, uninterrupted: Result, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_disk(state: TrainingState, _: float) -> None:
        if state.step == 6:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))

    try:
        with pytest.raises(FolderError) as stopped:
            setting.go(run, fill_disk)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert stopped.value.path == run / STATE
    assert "cannot be written" in str(stopped.value)
    advice = "The last checkpoint is kept; make room, and run the command again (train with --resume)."
    assert advice in stopped.value.for_command_line
    assert sorted(path.name for path in run.iterdir()) == [METRICS, MODEL, STATE]
    assert result_step(run) == 5
    assert finished(setting, run) == uninterrupted


def test_metrics_that_cannot_be_written_raise_the_same_error(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes = Path.write_bytes

    def full(self: Path, *given: Any, **others: Any) -> int:
        if given[0] and METRICS in self.name:
            raise OSError(28, "No space left on device")
        return write_bytes(self, *given, **others)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(FolderError, match=r"No space left on device\. The last checkpoint is kept") as stopped:
        setting.go(tmp_path / "run")
    assert stopped.value.path == tmp_path / "run" / METRICS
    assert result_step(tmp_path / "run") == 3


def test_a_state_of_another_model_is_refused(setting: Setting, tmp_path: Path) -> None:
    setting.go(tmp_path / "run")
    for other in (replace(setting.architecture, dim=8), replace(setting.architecture, intersection="gqe")):
        with pytest.raises(
            FolderError, match=r"does not fit the model.*Pass the settings that the run was started with"
        ):
            replace(setting, architecture=other).go(tmp_path / "run")


def test_going_on_with_another_number_of_steps_is_refused(setting: Setting, tmp_path: Path) -> None:
    setting.go(tmp_path / "run")
    with pytest.raises(FolderError, match=r"was started with 20 steps.*Resume without steps"):
        replace(setting, budget=replace(setting.budget, steps=30)).go(tmp_path / "run")


def test_the_hinge_resumes_to_the_same_result_too(setting: Setting, tmp_path: Path) -> None:
    hinge = replace(setting, recipe=HINGE)
    expected = finished(hinge, tmp_path / "whole")
    with pytest.raises(Killed):
        hinge.go(tmp_path / "run", killing_at(9))
    assert finished(hinge, tmp_path / "run") == expected


def test_a_large_table_resumes_to_the_same_result_by_rows(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halfgraph.model.entities.SPARSE_ABOVE", 10)
    assert setting.encoder().entities.sparse
    expected = finished(setting, tmp_path / "whole")
    with pytest.raises(Killed):
        setting.go(tmp_path / "run", killing_at(9))
    assert finished(setting, tmp_path / "run") == expected
