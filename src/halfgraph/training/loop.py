"""The training loop, in the order things happen: batch, loss, step, validation, checkpoint."""

import ctypes
import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from halfgraph.errors import FolderError, HalfgraphError
from halfgraph.model.encoder import Encoder
from halfgraph.model.threads import torch_threads
from halfgraph.training.batches import Batch, Batches
from halfgraph.training.loss import batch_loss
from halfgraph.training.optimiser import Optimiser
from halfgraph.training.recipe import Recipe
from halfgraph.training.run_folder import METRICS, MODEL, STATE, load_tensors, save_tensors, write_atomically

WARM_UP = 12  # steps of which the second half tells how many fit into the minutes given; the first compiles and fills


@dataclass(frozen=True)
class Budget:
    """How long to train: so many steps, or as many as fit into some minutes."""

    steps: int | None = None
    minutes: float | None = None
    validations: int = 10
    patience: int = 4  # validations without a better one before it stops
    checkpoint_seconds: float = 60.0


class Diverged(HalfgraphError):
    """The loss, or a weight, is not a number."""

    def __init__(self, what: str, step: int, run: Path) -> None:
        self.step = step
        kept = f"The last good checkpoint is kept in {run}" if (run / STATE).exists() else "There is no checkpoint yet"
        super().__init__(f"{what} is not a number at step {step}. {kept}; try a smaller learning_rate.")


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0
    total: int | None = None
    timed: bool = False  # the pace of the first steps told how many there are
    seconds: float = 0.0
    warm: float = 0.0  # the seconds of the first steps, which are slower
    questions: int = 0
    best: float = float("-inf")
    best_step: int = 0
    since_best: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Which part of the steps is done."""
        return self.step / self.total if self.total else 0.0


Validate = Callable[[Encoder], dict[str, Any]]  # gives at least "score", by which the best checkpoint is chosen
Told = Callable[[Progress, float], None]  # told of each step and its loss


def train(
    encoder: Encoder,
    batches: Batches,
    budget: Budget,
    run: Path,
    validate: Validate | None = None,
    told: Told = lambda *_: None,
) -> Progress:
    """Where the run ended; the best weights are in the run folder, and so is the state to go on from."""
    tune_memory()
    parameters = dict(encoder.named_parameters())
    optimiser = Optimiser(parameters, {"entities.table"} if encoder.entities.sparse else set())
    progress = _resumed(run, parameters, optimiser, budget) or _begun(run, budget)
    recipe, saved, begun = batches.recipe, time.monotonic(), time.perf_counter()
    try:
        for batch in _prefetched(batches, progress, budget):
            with beside_batches():
                loss = _learnt(encoder, batch, recipe, progress, run)
            with _uninterrupted():
                with beside_batches():
                    optimiser.step(_learning_rate(recipe, progress))
                progress.step += 1
                progress.questions += len(batch)
                progress.seconds += time.perf_counter() - begun
                is_due = time.monotonic() - saved > budget.checkpoint_seconds
                if progress.step == WARM_UP // 2:
                    progress.warm = progress.seconds
                if progress.total is None and progress.step == WARM_UP:
                    progress.total, is_due = _steps_in(budget, progress), True
                if _is_time_to_validate(progress, budget):
                    _validate(encoder, validate, progress, loss, run)
                told(progress, loss)
                if is_due:
                    _checkpoint(run, parameters, optimiser, progress)
                    saved = time.monotonic()
            begun = time.perf_counter()  # so the wait for a batch counts, and validations and checkpoints do not
    except KeyboardInterrupt:
        _checkpoint(run, parameters, optimiser, progress)
        raise
    _checkpoint(run, parameters, optimiser, progress)
    return progress


def _begun(run: Path, budget: Budget) -> Progress:
    """The beginning of a run; what one that was killed before its first checkpoint has measured is forgotten."""
    progress = Progress(total=budget.steps, timed=budget.steps is None)
    _write_metrics(run, progress)
    return progress


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A time in which Ctrl-C waits, so that a checkpoint is always of whole steps, their validation included."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Ctrl-C is told to the main thread only
        return
    waiting: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        signal.raise_signal(signal.SIGINT)


def _learnt(encoder: Encoder, batch: Batch, recipe: Recipe, progress: Progress, run: Path) -> float:
    """The loss of a step; the gradients are at the weights."""
    with encoder.entities.normalised_once():
        loss = batch_loss(encoder, batch, recipe)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise Diverged("the loss", progress.step, run)
        loss.backward()
    return value


def _learning_rate(recipe: Recipe, progress: Progress) -> float:
    """The learning rate of a step: it falls to nothing over the steps, or stays."""
    return recipe.learning_rate * (1.0 - progress.share) if recipe.decay == "linear" else recipe.learning_rate


def _prefetched(batches: Batches, progress: Progress, budget: Budget) -> Iterator[Batch]:
    """The batches up to the last step, the next one being made while one is learnt from."""

    def make(step: int) -> Future[Batch]:
        return pool.submit(batches.batch, step, burning_in=_is_burning_in(batches.recipe, progress, step))

    with ThreadPoolExecutor(1) as pool:
        waiting = make(progress.step)
        while not _is_over(progress, budget):
            batch = waiting.result()
            waiting = make(progress.step + 1)
            yield batch
        waiting.cancel()


def _is_over(progress: Progress, budget: Budget) -> bool:
    """Whether all steps are done, or validation has not got better for a while."""
    return progress.since_best >= budget.patience or (progress.total is not None and progress.step >= progress.total)


def _is_burning_in(recipe: Recipe, progress: Progress, step: int) -> bool:
    """Whether one-edge questions are alone in a step; never while the pace of usual steps is measured."""
    if not recipe.burn_in or progress.total is None or (progress.timed and step <= WARM_UP):
        return False
    return step < recipe.burn_in * progress.total


def _steps_in(budget: Budget, progress: Progress) -> int:
    """How many steps fit into the minutes, by the pace so far; fixed then, so that the result depends on it alone."""
    minutes = 5.0 if budget.minutes is None else budget.minutes
    pace = (progress.seconds - progress.warm) / (WARM_UP - WARM_UP // 2)
    return max(WARM_UP + 1, WARM_UP + round((60.0 * minutes - progress.seconds) / pace))


def _is_time_to_validate(progress: Progress, budget: Budget) -> bool:
    """Whether a tenth of the steps is over."""
    if progress.total is None:
        return False
    every = max(1, progress.total // budget.validations)
    return progress.step == progress.total or progress.step % every == 0


def _validate(encoder: Encoder, validate: Validate | None, progress: Progress, loss: float, run: Path) -> None:
    """Nothing; the model is measured, and kept if it is the best so far. Without validation the last is kept."""
    _require_finite(dict(encoder.named_parameters()), progress, run)
    encoder.eval()
    measured = validate(encoder) if validate else {"score": float(progress.step)}
    encoder.train()
    progress.since_best += 1
    # Departs from the paper, which does not say when it stops (its released code keeps the last weights).
    if measured["score"] > progress.best:
        progress.best, progress.best_step, progress.since_best = measured["score"], progress.step, 0
        save_tensors(run / MODEL, dict(encoder.named_parameters()), {"step": str(progress.step)})
    pace = round(progress.questions / max(progress.seconds, 1e-9))
    row = {"step": progress.step, "seconds": round(progress.seconds, 1), "loss": loss, "questions_per_second": pace}
    progress.history.append(row | measured)
    _write_metrics(run, progress)


def _require_finite(parameters: dict[str, Any], progress: Progress, run: Path) -> None:
    """Nothing, or an error where a weight is not a number: no such weights are ever written."""
    for name, parameter in parameters.items():
        if not torch.isfinite(parameter).all():
            raise Diverged(f"a weight ({name})", progress.step, run)


def _checkpoint(run: Path, parameters: dict[str, Any], optimiser: Optimiser, progress: Progress) -> None:
    """Nothing; all that is needed to go on is written."""
    _require_finite(parameters, progress, run)
    tensors = {f"weight.{name}": parameter for name, parameter in parameters.items()} | optimiser.state()
    save_tensors(run / STATE, tensors, {"progress": json.dumps(vars(progress))})


@torch.no_grad()
def _resumed(run: Path, parameters: dict[str, Any], optimiser: Optimiser, budget: Budget) -> Progress | None:
    """Where an earlier run was, with its weights put back, or None if there is nothing to go on from."""
    if not (run / STATE).exists():
        return None
    tensors, about = load_tensors(run / STATE)
    progress = Progress(**json.loads(about["progress"]))
    if budget.steps is not None and progress.total is not None and budget.steps != progress.total:
        problem = f"was begun with {progress.total:,} steps, over which the learning rate falls"
        raise FolderError(run, problem, advice="Go on without --steps, or begin anew with another --out.")
    for name, parameter in parameters.items():
        found = tensors.get(f"weight.{name}")
        if found is None or found.shape != parameter.shape:
            problem = f"does not fit the model: {name} is {tuple(found.shape) if found is not None else 'missing'}"
            raise FolderError(run / STATE, problem, advice="Pass the settings that the run began with.")
        parameter.copy_(found)
    optimiser.load(tensors, progress.step)
    _write_metrics(run, progress)  # what was measured after the checkpoint is about to be measured again
    return progress


def _write_metrics(run: Path, progress: Progress) -> None:
    """Nothing; the metrics are a line for each validation."""
    write_atomically(run / METRICS, "".join(json.dumps(_told_plainly(row)) + "\n" for row in progress.history))


def _told_plainly(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON has it: null for what could not be measured, which JSON has no number for."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def beside_batches() -> AbstractContextManager[None]:
    """A time in which torch leaves a thread to the making of the next batch."""
    return torch_threads(max(1, torch.get_num_threads() - 1))


def tune_memory() -> None:
    """Nothing; large blocks are kept by the allocator instead of being given back and asked for at every step."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD
    except (OSError, AttributeError):
        return  # another C library: slower, not wrong
