"""Several runs side by side: seeds of one row as their mean and spread, rows in their order, baselines last."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfgraph.evaluation.results import Figures
from halfgraph.prediction.baselines import NEIGHBOUR_VOTE


@dataclass(frozen=True)
class Measured:
    """One run, or one baseline, with its figures."""

    row: str
    figures: Figures
    seed: int | None = None  # nothing for a baseline, which has none
    about: Mapping[str, Any] = field(default_factory=dict)  # parameters, steps: what a table says beside figures

    @property
    def is_baseline(self) -> bool:
        """Whether it is not trained."""
        return self.seed is None


@dataclass(frozen=True)
class Row:
    """A row of a table: the mean of its seeds, and their spread where there are several."""

    name: str
    figures: Figures
    spread: Figures | None
    seeds: tuple[int, ...]
    about: Mapping[str, Any]

    @property
    def is_baseline(self) -> bool:
        """Whether it is not trained."""
        return not self.seeds

    def get(self, *path: str) -> float | None:
        """One of the figures, or nothing where it is not there."""
        return found if isinstance(found := _at(self.figures, path), float | int) else None

    def margin(self, *path: str) -> float | None:
        """How sure a figure is: the spread of the seeds, or half of its confidence interval."""
        if self.spread is not None:
            return found if isinstance(found := _at(self.spread, path), float | int) else None
        ends = _at(self.figures.get("intervals", {}), path)
        return (ends[1] - ends[0]) / 2 if isinstance(ends, Sequence) else None


def _at(figures: Any, path: Sequence[str]) -> Any:
    """What stands at a path of names, or nothing."""
    for name in path:
        figures = figures.get(name) if isinstance(figures, Mapping) else None
    return figures


def rows_of(measured: Sequence[Measured]) -> list[Row]:
    """The rows in the order in which they first come, runs of one name together, baselines last."""
    names = dict.fromkeys(one.row for one in sorted(measured, key=lambda one: one.is_baseline))
    return [_row([one for one in measured if one.row == name]) for name in names]


def _row(runs: list[Measured]) -> Row:
    """The row of some runs."""
    figures = [run.figures for run in runs]
    seeds = tuple(run.seed for run in runs if run.seed is not None)
    if len(runs) == 1:
        return Row(runs[0].row, figures[0], None, seeds, runs[0].about)
    return Row(runs[0].row, together(figures, np.mean), together(figures, _deviation), seeds, runs[0].about)


def _deviation(values: list[float]) -> float:
    return float(np.std(values, ddof=1))


def together(figures: Sequence[Any], how: Callable[[list[float]], Any]) -> dict[str, Any]:
    """Each figure of several, made one; what is no number is that of the first, and intervals are left out."""
    first = figures[0]
    found: dict[str, Any] = {}
    for name, value in first.items():
        others = [some.get(name) for some in figures]
        if name == "intervals" or any(other is None for other in others):
            continue
        if isinstance(value, Mapping):
            found[name] = together(others, how)
        elif isinstance(value, float):
            found[name] = float(how(others))
        else:
            found[name] = value
    return found


def remarks(rows: Sequence[Row]) -> list[str]:
    """Where the neighbour vote, which nobody trained, is ahead of the best row, in words."""
    trained = [row for row in rows if not row.is_baseline]
    vote = next((row for row in rows if row.name == NEIGHBOUR_VOTE and row.is_baseline), None)
    if vote is None or not trained:
        return []
    found = []
    for measure, title in (("mrr", "MRR"), ("auc", "AUC")):
        ahead = []
        for name in vote.figures[measure]:
            own = vote.get(measure, name)
            best = max((value for row in trained if (value := row.get(measure, name)) is not None), default=None)
            if own is not None and best is not None and own > best:
                ahead.append(f"{name} ({own:.3f} against {best:.3f})")
        if ahead:
            who = trained[0].name if len(trained) == 1 else "every row"
            found.append(f"The neighbour vote, without training, is ahead of {who} by {title} on {', '.join(ahead)}.")
    return found
