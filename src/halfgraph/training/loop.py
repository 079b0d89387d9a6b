"""The training loop, in the order things happen: batch, loss, optimiser step, validation, checkpoint."""

import ctypes
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from halfgraph.model.encoder import Encoder
from halfgraph.model.threads import torch_threads
from halfgraph.training.batches import Batch, Batches
from halfgraph.training.checkpoint import (
    Diverged,
    TrainingState,
    load_checkpoint,
    require_finite,
    save_checkpoint,
    write_metrics,
)
from halfgraph.training.loss import batch_loss
from halfgraph.training.optimiser import Optimiser
from halfgraph.training.recipe import Recipe
from halfgraph.training.run_folder import MODEL, save_tensors

WARM_UP = 12  # steps; the first half compiles and fills caches, the second half is timed to fill a time limit


@dataclass(frozen=True)
class Budget:
    """How long to train: a number of steps, or as many as fit into some minutes."""

    steps: int | None = None
    minutes: float | None = None
    validations: int = 10
    patience: int = 4  # validations without improvement before training stops
    checkpoint_seconds: float = 60.0


Validate = Callable[[Encoder], dict[str, Any]]  # returns at least "score", which chooses the best weights
Progress = Callable[[TrainingState, float], None]  # called after every step with its loss


def train(
    encoder: Encoder,
    batches: Batches,
    budget: Budget,
    run: Path,
    validate: Validate | None = None,
    progress: Progress = lambda *_: None,
) -> TrainingState:
    """Train, or resume training, until the budget is used up; keep the best weights and the last state in `run`."""
    tune_memory()
    parameters = dict(encoder.named_parameters())
    optimiser = Optimiser(parameters, {"entities.table"} if encoder.entities.sparse else set())
    state = load_checkpoint(run, parameters, optimiser, budget.steps) or _start(run, budget)
    saved, started = time.monotonic(), time.perf_counter()
    try:
        for batch in _prefetch(batches, state, budget):
            with spare_thread():
                loss = _backward(encoder, batch, batches.recipe, state, run)
            with _uninterrupted():
                with spare_thread():
                    optimiser.step(_learning_rate(batches.recipe, state))
                is_counted = _count_step(state, budget, len(batch), time.perf_counter() - started)
                if _is_validation_due(state, budget):
                    _validate(encoder, validate, state, loss, run)
                progress(state, loss)
                if is_counted or time.monotonic() - saved > budget.checkpoint_seconds:
                    save_checkpoint(run, parameters, optimiser, state)
                    saved = time.monotonic()
            started = time.perf_counter()  # counts the wait for a batch, but not validations and checkpoints
    except KeyboardInterrupt:
        save_checkpoint(run, parameters, optimiser, state)
        raise
    save_checkpoint(run, parameters, optimiser, state)
    return state


def _start(run: Path, budget: Budget) -> TrainingState:
    """Return the state of a new run, and drop the metrics of one that was killed before its first checkpoint."""
    state = TrainingState(total=budget.steps, timed=budget.steps is None)
    write_metrics(run, state)
    return state


def _prefetch(batches: Batches, state: TrainingState, budget: Budget) -> Iterator[Batch]:
    """Yield batches up to the last step, making the next one while the current one is learnt from."""

    def make(step: int) -> Future[Batch]:
        return pool.submit(batches.batch, step, burning_in=_is_burning_in(batches.recipe, state, step))

    with ThreadPoolExecutor(1) as pool:
        upcoming = make(state.step)
        while not _is_finished(state, budget):
            batch = upcoming.result()
            upcoming = make(state.step + 1)
            yield batch
        upcoming.cancel()


def _is_finished(state: TrainingState, budget: Budget) -> bool:
    return state.since_best >= budget.patience or (state.total is not None and state.step >= state.total)


def _is_burning_in(recipe: Recipe, state: TrainingState, step: int) -> bool:
    """Return whether a step has one-edge questions only; never while the speed of ordinary steps is measured."""
    if not recipe.burn_in or state.total is None or (state.timed and step <= WARM_UP):
        return False
    return step < recipe.burn_in * state.total


def _backward(encoder: Encoder, batch: Batch, recipe: Recipe, state: TrainingState, run: Path) -> float:
    """Compute the gradients of a batch and return its loss."""
    with encoder.entities.normalised_once():
        loss = batch_loss(encoder, batch, recipe)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise Diverged("the loss", state.step, run)
        loss.backward()
    return value


def _learning_rate(recipe: Recipe, state: TrainingState) -> float:
    """Return the learning rate of a step, constant or falling linearly to 0."""
    return recipe.learning_rate * (1.0 - state.share) if recipe.decay == "linear" else recipe.learning_rate


def _count_step(state: TrainingState, budget: Budget, questions: int, seconds: float) -> bool:
    """Count a step; return True if it was the one that fixed the number of steps."""
    state.step += 1
    state.questions += questions
    state.seconds += seconds
    if state.step == WARM_UP // 2:
        state.warm = state.seconds
    if state.total is not None or state.step != WARM_UP:
        return False
    state.total = _steps_in(budget, state)
    return True


def _steps_in(budget: Budget, state: TrainingState) -> int:
    """Return how many steps fit into the time limit at the measured speed; the run depends on this number only."""
    minutes = 5.0 if budget.minutes is None else budget.minutes
    seconds_per_step = (state.seconds - state.warm) / (WARM_UP - WARM_UP // 2)
    return max(WARM_UP + 1, WARM_UP + round((60.0 * minutes - state.seconds) / seconds_per_step))


def _is_validation_due(state: TrainingState, budget: Budget) -> bool:
    if state.total is None:
        return False
    every = max(1, state.total // budget.validations)
    return state.step == state.total or state.step % every == 0


def _validate(encoder: Encoder, validate: Validate | None, state: TrainingState, loss: float, run: Path) -> None:
    """Measure the model, and write its weights if they are the best so far, or if there is no validation."""
    require_finite(dict(encoder.named_parameters()), state, run)
    encoder.eval()
    measured = validate(encoder) if validate else {"score": float(state.step)}
    encoder.train()
    state.since_best += 1
    # Departs from the paper, which does not say when it stops (its released code keeps the last weights).
    if measured["score"] > state.best:
        state.best, state.best_step, state.since_best = measured["score"], state.step, 0
        save_tensors(run / MODEL, dict(encoder.named_parameters()), {"step": str(state.step)})
    speed = {
        "seconds": round(state.seconds, 1),
        "loss": loss,
        "questions_per_second": round(state.questions_per_second),
    }
    state.history.append({"step": state.step, **speed, **measured})
    write_metrics(run, state)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block, so that a checkpoint never has half a step or a missing validation."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives Ctrl-C
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        signal.raise_signal(signal.SIGINT)


def spare_thread() -> AbstractContextManager[None]:
    """Leave one of torch's threads to the sampling of the next batch."""
    return torch_threads(max(1, torch.get_num_threads() - 1))


def tune_memory() -> None:
    """Let the allocator keep large freed blocks, which the next step needs again."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD
    except (OSError, AttributeError):
        return  # another C library: slower, but correct
