"""The figures of a predictor as plain values (printed by --json), and rows that compare several runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfgraph.evaluation.bootstrap import LEVEL, SAMPLES, Replicates, interval, mean_of, resample
from halfgraph.evaluation.measures import HARD, TYPES, Key, all_measures
from halfgraph.evaluation.questions import EvaluationSet
from halfgraph.evaluation.ranking import HITS, Watch, score_questions
from halfgraph.prediction.base import Predictor
from halfgraph.prediction.baselines import NEIGHBOUR_VOTE

Figures = Mapping[str, Any]
Progress = Callable[[int], None]  # number of questions done since the last call


@dataclass
class MeasuredValues:
    """The values of the measures, and their values on bootstrap samples."""

    values: dict[Key, float] = field(default_factory=dict)
    replicates: dict[Key, Replicates] = field(default_factory=dict)

    def names(self, measure: str) -> list[str]:
        """Return the structures or query types that have a measure; the paper's types in its order."""
        names = [name for own, name in self.values if own == measure]
        return sorted(names, key=TYPES.index) if measure in ("auc", "apr") else names

    def by_name(self, measure: str) -> dict[str, float]:
        """Return a measure by structure or query type."""
        return {name: self.values[measure, name] for name in self.names(measure)}

    def intervals(self, measure: str) -> dict[str, list[float] | None]:
        """Return the confidence intervals of a measure by structure or query type."""
        return {name: _interval(self.replicates[measure, name]) for name in self.names(measure)}

    def mean(self, measure: str, suffix: str = "") -> float | None:
        """Mean over the structures or query types with a suffix; None if there are none."""
        values = [value for name, value in self.by_name(measure).items() if name.endswith(suffix)]
        return float(np.mean(values)) if values else None

    def mean_interval(self, measure: str, suffix: str = "") -> list[float] | None:
        """Confidence interval of `mean`."""
        keys = [(measure, name) for name in self.names(measure) if name.endswith(suffix)]
        return _interval(mean_of(self.replicates, keys)) if keys else None


def _interval(replicates: Replicates) -> list[float] | None:
    """Return an interval; None if too few questions have a value."""
    ends = list(interval(replicates))
    return None if np.isnan(ends).any() else ends


def evaluate(
    predictor: Predictor,
    questions: EvaluationSet,
    *,
    seed: int = 0,
    samples: int = SAMPLES,
    threads: int | None = None,
    watch: Watch | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Measure a predictor, one structure at a time to bound memory."""
    measured, answers = MeasuredValues(), {}
    for own, missing in zip(questions.sets, questions.missing, strict=True):
        measures = all_measures(score_questions(predictor, own, threads=threads, watch=watch), missing)
        measured.values |= {key: measure.value() for key, measure in measures.items()}
        measured.replicates |= resample(measures, seed, samples)
        numbers, counts = np.unique(missing, return_counts=True)
        answers[own.structure.short] = dict(zip(map(str, numbers.tolist()), counts.tolist(), strict=True))
        progress(len(own))
    return _figures(predictor.name, measured, questions, answers, samples)


def _figures(
    name: str,
    measured: MeasuredValues,
    questions: EvaluationSet,
    answers: Mapping[str, Mapping[str, int]],
    samples: int,
) -> dict[str, Any]:
    """Arrange the measures as the documented JSON."""
    missing = sorted({measure.partition("/")[2] for measure, _ in measured.values if measure.startswith("mrr/")})
    figures = {
        "name": name,
        **_main_figures(measured.by_name, measured.mean),
        "by_missing": {
            number: {
                **_ranking_figures(measured.by_name, f"/{number}"),
                "answers": {short: counts[number] for short, counts in answers.items() if number in counts},
            }
            for number in missing
        },
        "easy": measured.by_name("easy"),
        "ties": measured.by_name("ties"),
        "questions": questions.counts,
        "split": questions.split,
        "source": questions.source,
    }
    if samples:
        figures["intervals"] = {
            "level": LEVEL,
            "drawn_again": samples,
            **_main_figures(measured.intervals, measured.mean_interval),
            "by_missing": {number: _ranking_figures(measured.intervals, f"/{number}") for number in missing},
            "easy": measured.intervals("easy"),
        }
    return figures


def _main_figures(by_name: Callable[[str], Any], mean: Callable[..., Any]) -> dict[str, Any]:
    paper = {measure: {"all": mean(measure), "hard": mean(measure, HARD)} for measure in ("auc", "apr")}
    hits = {str(most): mean(f"hits@{most}") for most in HITS}
    return {
        "auc": by_name("auc"),
        "apr": by_name("apr"),
        "macro": {**paper, "mrr": mean("mrr"), "hits": hits, "easy": mean("easy")},
        **_ranking_figures(by_name, ""),
    }


def _ranking_figures(by_name: Callable[[str], Any], suffix: str) -> dict[str, Any]:
    return {
        "mrr": by_name("mrr" + suffix),
        "hits": {str(most): by_name(f"hits@{most}{suffix}") for most in HITS},
    }


@dataclass(frozen=True)
class Measured:
    """A run or a baseline with its figures."""

    row: str
    figures: Figures
    seed: int | None = None  # None for a baseline
    about: Mapping[str, Any] = field(default_factory=dict)  # parameters and steps, for tables

    @property
    def is_baseline(self) -> bool:
        """Whether it was not trained."""
        return self.seed is None


@dataclass(frozen=True)
class Row:
    """A row of a table: the mean over its seeds, and their standard deviation if there are several."""

    name: str
    figures: Figures
    spread: Figures | None
    seeds: tuple[int, ...]
    about: Mapping[str, Any]

    @property
    def is_baseline(self) -> bool:
        """Whether it was not trained."""
        return not self.seeds

    def get(self, *path: str) -> float | None:
        """Return the figure at a path of keys; None if there is none."""
        return value if isinstance(value := _at(self.figures, path), float | int) else None

    def margin(self, *path: str) -> float | None:
        """Return the standard deviation over the seeds, or half of the confidence interval."""
        if self.spread is not None:
            return value if isinstance(value := _at(self.spread, path), float | int) else None
        ends = _at(self.figures.get("intervals", {}), path)
        return (ends[1] - ends[0]) / 2 if isinstance(ends, Sequence) else None


def _at(figures: Any, path: Sequence[str]) -> Any:
    for name in path:
        figures = figures.get(name) if isinstance(figures, Mapping) else None
    return figures


def rows_of(measured: Sequence[Measured]) -> list[Row]:
    """Group runs by row name, in order of first appearance, baselines last."""
    names = dict.fromkeys(run.row for run in sorted(measured, key=lambda run: run.is_baseline))
    return [_row([run for run in measured if run.row == name]) for name in names]


def _row(runs: list[Measured]) -> Row:
    figures = [run.figures for run in runs]
    seeds = tuple(run.seed for run in runs if run.seed is not None)
    if len(runs) == 1:
        return Row(runs[0].row, figures[0], None, seeds, runs[0].about)
    return Row(runs[0].row, _aggregate(figures, np.mean), _aggregate(figures, _deviation), seeds, runs[0].about)


def _deviation(values: list[float]) -> float:
    return float(np.std(values, ddof=1))


def _aggregate(figures: Sequence[Any], how: Callable[[list[float]], Any]) -> dict[str, Any]:
    """Aggregate each figure over runs; other values are those of the first run, and intervals are left out."""
    aggregated: dict[str, Any] = {}
    for name, value in figures[0].items():
        values = [own.get(name) for own in figures]
        if name == "intervals" or any(other is None for other in values):
            continue
        if isinstance(value, Mapping):
            aggregated[name] = _aggregate(values, how)
        else:
            aggregated[name] = float(how(values)) if isinstance(value, float) else value
    return aggregated


def baseline_remarks(rows: Sequence[Row]) -> list[str]:
    """Say on which structures the neighbour vote, which is not trained, is better than every trained row."""
    trained = [row for row in rows if not row.is_baseline]
    vote = next((row for row in rows if row.name == NEIGHBOUR_VOTE and row.is_baseline), None)
    if vote is None or not trained:
        return []
    remarks = []
    for measure, title in (("mrr", "MRR"), ("auc", "AUC")):
        ahead = []
        for name in vote.figures[measure]:
            own = vote.get(measure, name)
            best = max((value for row in trained if (value := row.get(measure, name)) is not None), default=None)
            if own is not None and best is not None and own > best:
                ahead.append(f"{name} ({own:.3f} against {best:.3f})")
        if ahead:
            who = trained[0].name if len(trained) == 1 else "every row"
            remarks.append(
                f"The neighbour vote, without training, is better than {who} by {title} on {', '.join(ahead)}."
            )
    return remarks
