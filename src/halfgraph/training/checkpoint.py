"""The state of a training run, written so that it can be resumed to the same bits."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from halfgraph.errors import FolderError, HalfgraphError
from halfgraph.graph.manifest import has_file, require_fields
from halfgraph.training.optimiser import Optimiser
from halfgraph.training.run_folder import (
    AGAIN,
    METRICS,
    STATE,
    load_tensors,
    require_tensors,
    save_tensors,
    write_atomically,
)

Parameters = Mapping[str, nn.Parameter]


class Diverged(HalfgraphError):
    """The loss or a weight is NaN or infinite."""

    def __init__(self, what: str, step: int, run: Path) -> None:
        self.step = step
        kept = f"The last good checkpoint is kept in {run}" if (run / STATE).exists() else "There is no checkpoint yet"
        super().__init__(f"{what} is not a finite number at step {step}. {kept}; try a smaller learning_rate.")


@dataclass
class TrainingState:
    """How far a run has come. Checkpoints store these fields by name, so that renaming one breaks old runs."""

    step: int = 0
    total: int | None = None  # steps; None until the speed of the first ones is known
    timed: bool = False  # whether the number of steps follows from a time limit
    seconds: float = 0.0  # without validations and checkpoints
    warm: float = 0.0  # seconds of the first steps, which are slower
    questions: int = 0
    best: float = float("-inf")  # validation score
    best_step: int = 0
    since_best: int = 0  # validations since the best one
    history: list[dict[str, Any]] = field(default_factory=list)  # a row for each validation

    @property
    def share(self) -> float:
        """The share of the steps that is done."""
        return self.step / self.total if self.total else 0.0

    @property
    def questions_per_second(self) -> float:
        """The speed so far."""
        return self.questions / max(self.seconds, 1e-9)


def save_checkpoint(run: Path, parameters: Parameters, optimiser: Optimiser, state: TrainingState) -> None:
    """Write the weights, the optimiser's moments and the state; refuse weights that are not finite."""
    require_finite(parameters, state, run)
    tensors = {f"weight.{name}": parameter for name, parameter in parameters.items()} | optimiser.state()
    save_tensors(run / STATE, tensors, {"progress": json.dumps(vars(state))})


def load_checkpoint(run: Path, parameters: Parameters, optimiser: Optimiser, steps: int | None) -> TrainingState | None:
    """Restore weights and moments and return the state, or None if there is no checkpoint."""
    if not has_file(run / STATE, AGAIN):
        return None
    tensors, metadata = load_tensors(run / STATE)
    state = _read_state(metadata, run / STATE)
    if steps is not None and state.total is not None and steps != state.total:
        problem = f"was started with {state.total:,} steps, over which the learning rate falls"
        raise FolderError(run, problem, advice="Resume without --steps, or start again with another --out.")
    advice = "Pass the settings that the run was started with."
    for moment in ("first.", "second."):
        require_tensors(parameters, tensors, run / STATE, prefix=moment, advice=advice)
    copy_weights(parameters, tensors, run / STATE, prefix="weight.", advice=advice)
    optimiser.load(tensors, state.step)
    write_metrics(run, state)  # drop what was measured after the checkpoint: it will be measured again
    return state


def _read_state(metadata: Mapping[str, str], path: Path) -> TrainingState:
    try:
        state = TrainingState(**json.loads(metadata["progress"]))
        counts = (state.step, state.total or 0, state.questions, state.best_step, state.since_best)
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("its counts are not whole numbers")
        float(state.seconds + state.warm + state.best)
        for row in state.history:
            require_fields(row, {"step": int}, path, AGAIN)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise FolderError(path, f"has no valid state: {error}", advice=AGAIN) from error
    return state


@torch.no_grad()
def copy_weights(
    parameters: Parameters, tensors: Mapping[str, torch.Tensor], path: Path, *, prefix: str = "", advice: str
) -> None:
    """Copy the tensors of a file into the parameters of the same names."""
    require_tensors(parameters, tensors, path, prefix=prefix, advice=advice)
    for name, parameter in parameters.items():
        parameter.copy_(tensors[prefix + name])


def require_finite(parameters: Parameters, state: TrainingState, run: Path) -> None:
    """Raise Diverged if a weight is NaN or infinite, so that no such weights are written."""
    for name, parameter in parameters.items():
        if not torch.isfinite(parameter).all():
            raise Diverged(f"a weight ({name})", state.step, run)


def write_metrics(run: Path, state: TrainingState) -> None:
    """Write one JSON line for each validation, NaN as null."""
    rows = (
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in state.history
    )
    write_atomically(run / METRICS, "".join(json.dumps(row) + "\n" for row in rows))
