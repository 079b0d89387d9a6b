"""The training loop, in the order things happen: batch, loss, step, validation, checkpoint."""

import ctypes
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from halfgraph.errors import FolderError, HalfgraphError
from halfgraph.model.encoder import Encoder
from halfgraph.training.batches import Batch, Batches
from halfgraph.training.loss import batch_loss
from halfgraph.training.optimiser import Optimiser
from halfgraph.training.recipe import Recipe
from halfgraph.training.run_folder import METRICS, MODEL, STATE, load_tensors, save_tensors

WARM_UP = 12  # steps whose pace tells how many steps fit into the minutes given


@dataclass(frozen=True)
class Budget:
    """How long to train: so many steps, or as many as fit into some minutes."""

    steps: int | None = None
    minutes: float | None = None
    validations: int = 10
    patience: int = 4  # validations without a better one before it stops
    checkpoint_seconds: float = 60.0


class Diverged(HalfgraphError):
    """The loss is not a number."""

    def __init__(self, step: int, run: Path) -> None:
        self.step = step
        super().__init__(
            f"the loss is not a number at step {step}. The last good checkpoint is kept in {run}; "
            "try a smaller learning_rate."
        )


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0
    total: int | None = None
    seconds: float = 0.0
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
    progress = _resumed(run, parameters, optimiser) or Progress(total=budget.steps)
    saved = time.monotonic()
    try:
        for batch in _prefetched(batches, progress, batches.recipe):
            loss = step(encoder, optimiser, batch, batches.recipe, progress, run)
            told(progress, loss)
            if progress.total is None and progress.step == WARM_UP:
                progress.total = _steps_in(budget.minutes or 5.0, progress)
            if _is_time_to_validate(progress, budget):
                _validate(encoder, validate, progress, loss, run)
                if progress.since_best >= budget.patience:
                    break
            if time.monotonic() - saved > budget.checkpoint_seconds:
                _checkpoint(run, parameters, optimiser, progress)
                saved = time.monotonic()
    except KeyboardInterrupt:
        _checkpoint(run, parameters, optimiser, progress)
        raise
    _checkpoint(run, parameters, optimiser, progress)
    return progress


def step(encoder: Encoder, optimiser: Optimiser, batch: Batch, recipe: Recipe, progress: Progress, run: Path) -> float:
    """The loss of a step, after the weights were moved."""
    begun = time.perf_counter()
    with encoder.entities.normalised_once():
        loss = batch_loss(encoder, batch, recipe)
        value = float(loss.detach())
        if value != value:
            raise Diverged(progress.step, run)
        loss.backward()
    optimiser.step(_learning_rate(recipe, progress))
    progress.step += 1
    progress.questions += len(batch)
    progress.seconds += time.perf_counter() - begun
    return value


def _learning_rate(recipe: Recipe, progress: Progress) -> float:
    """The learning rate of a step: it falls to nothing over the steps, or stays."""
    return recipe.learning_rate * (1.0 - progress.share) if recipe.decay == "linear" else recipe.learning_rate


def _prefetched(batches: Batches, progress: Progress, recipe: Recipe) -> Iterator[Batch]:
    """The batches up to the last step, the next one being made while one is learnt from."""

    def make(step: int) -> Batch:
        burning_in = bool(recipe.burn_in) and progress.total is not None and step < recipe.burn_in * progress.total
        return batches.batch(step, burning_in=burning_in)

    with ThreadPoolExecutor(1) as pool:
        waiting: Future[Batch] = pool.submit(make, progress.step)
        while progress.total is None or progress.step < progress.total:
            batch = waiting.result()
            waiting = pool.submit(make, progress.step + 1)
            yield batch
        waiting.cancel()


def _steps_in(minutes: float, progress: Progress) -> int:
    """How many steps fit into some minutes, by the pace so far; fixed then, so that the result depends on it alone."""
    return max(WARM_UP + 1, round(60.0 * minutes / (progress.seconds / progress.step)))


def _is_time_to_validate(progress: Progress, budget: Budget) -> bool:
    """Whether a tenth of the steps is over."""
    if progress.total is None:
        return False
    every = max(1, progress.total // budget.validations)
    return progress.step == progress.total or progress.step % every == 0


def _validate(encoder: Encoder, validate: Validate | None, progress: Progress, loss: float, run: Path) -> None:
    """Nothing; the model is measured, and kept if it is the best so far. Without validation the last is kept."""
    encoder.eval()
    measured = validate(encoder) if validate else {"score": float(progress.step)}
    encoder.train()
    progress.since_best += 1
    if measured["score"] > progress.best:
        progress.best, progress.best_step, progress.since_best = measured["score"], progress.step, 0
        save_tensors(run / MODEL, dict(encoder.named_parameters()), {"step": str(progress.step)})
    pace = round(progress.questions / max(progress.seconds, 1e-9))
    row = {"step": progress.step, "seconds": round(progress.seconds, 1), "loss": loss, "questions_per_second": pace}
    progress.history.append(row | measured)
    with (run / METRICS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row | measured) + "\n")


def _checkpoint(run: Path, parameters: dict[str, Any], optimiser: Optimiser, progress: Progress) -> None:
    """Nothing; all that is needed to go on is written."""
    tensors = {f"weight.{name}": parameter for name, parameter in parameters.items()} | optimiser.state()
    save_tensors(run / STATE, tensors, {"progress": json.dumps(vars(progress))})


@torch.no_grad()
def _resumed(run: Path, parameters: dict[str, Any], optimiser: Optimiser) -> Progress | None:
    """Where an earlier run was, with its weights put back, or None if there is nothing to go on from."""
    if not (run / STATE).exists():
        return None
    tensors, about = load_tensors(run / STATE)
    progress = Progress(**json.loads(about["progress"]))
    for name, parameter in parameters.items():
        found = tensors.get(f"weight.{name}")
        if found is None or found.shape != parameter.shape:
            problem = f"does not fit the model: {name} is {tuple(found.shape) if found is not None else 'missing'}"
            raise FolderError(run / STATE, problem, advice="Pass the settings that the run began with.")
        parameter.copy_(found)
    optimiser.load(tensors, progress.step)
    _forget_later(run, progress)
    return progress


def _forget_later(run: Path, progress: Progress) -> None:
    """Nothing; what was written after the checkpoint is taken out of the metrics, for it is about to happen again."""
    lines = [json.dumps(row) + "\n" for row in progress.history]
    (run / METRICS).write_text("".join(lines), encoding="utf-8")


def tune_memory() -> None:
    """Nothing; large blocks are kept by the allocator instead of being given back and asked for at every step."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD
    except (OSError, AttributeError):
        return  # another C library: slower, not wrong
