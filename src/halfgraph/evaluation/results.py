"""The figures of a predictor as plain values (printed by --json), and rows that compare several runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from halfgraph.evaluation.bootstrap import LEVEL, SAMPLES, Replicates, interval, resample
from halfgraph.evaluation.measures import HARD, TYPES, Key, all_measures
from halfgraph.evaluation.questions import EvaluationSet
from halfgraph.evaluation.ranking import HITS, Watch, score_questions
from halfgraph.prediction.base import Predictor
from halfgraph.prediction.baselines import NEIGHBOUR_VOTE

Figures = Mapping[str, Any]
Progress = Callable[[int], None]  # number of questions done since the last call


@dataclass(frozen=True)
class Measurement:
    """The measures of a predictor, their values on bootstrap samples, and the number of answers by missing triples.

    Measurements on the same questions with the same seed have the same samples.
    """

    values: Mapping[Key, float]
    replicates: Mapping[Key, Replicates]
    answers: Mapping[str, Mapping[str, int]]  # by structure


def measure(
    predictor: Predictor,
    questions: EvaluationSet,
    *,
    seed: int = 0,
    samples: int = SAMPLES,
    threads: int | None = None,
    watch: Watch | None = None,
    progress: Progress = lambda _: None,
) -> Measurement:
    """Measure a predictor, one structure at a time to bound memory."""
    values: dict[Key, float] = {}
    replicates: dict[Key, Replicates] = {}
    answers = {}
    for own, missing in zip(questions.sets, questions.missing, strict=True):
        measures = all_measures(score_questions(predictor, own, threads=threads, watch=watch), missing)
        values |= {key: column.value() for key, column in measures.items()}
        replicates |= resample(measures, seed, samples)
        numbers, counts = np.unique(missing, return_counts=True)
        answers[own.structure.short] = dict(zip(map(str, numbers.tolist()), counts.tolist(), strict=True))
        progress(len(own))
    return Measurement(values, replicates, answers)


def evaluate(
    predictor: Predictor, questions: EvaluationSet, *, samples: int = SAMPLES, **options: Any
) -> dict[str, Any]:
    """Measure a predictor, with the options of `measure`; return the documented JSON."""
    measured = measure(predictor, questions, samples=samples, **options)
    values, replicates = measured.values, measured.replicates
    means = arrange(values, lambda keys: float(np.mean([values[key] for key in keys])))
    figures = {"name": predictor.name, **means}
    for number, by_missing in figures["by_missing"].items():
        counts = {short: own[number] for short, own in measured.answers.items() if number in own}
        by_missing["answers"] = counts
    figures |= {"ties": {short: value for (name, short), value in values.items() if name == "ties"}}
    figures |= {"questions": questions.counts, "split": questions.split, "source": questions.source}
    if samples:
        of_means = arrange(values, lambda keys: interval(np.mean([replicates[key] for key in keys], axis=0)))
        figures["intervals"] = {"level": LEVEL, "drawn_again": samples, **of_means}
    return figures


def arrange(keys: Collection[Key], mean_of: Callable[[list[Key]], Any]) -> dict[str, Any]:
    """Arrange the measures, or their intervals; `mean_of` gives the mean of several measures."""

    def chosen(measure: str) -> list[Key]:
        own = [key for key in keys if key[0] == measure]
        return sorted(own, key=lambda key: TYPES.index(key[1])) if measure in ("auc", "apr") else own

    def by_name(measure: str) -> dict[str, Any]:
        return {key[1]: mean_of([key]) for key in chosen(measure)}

    def mean(measure: str, suffix: str = "") -> Any:
        own = [key for key in chosen(measure) if key[1].endswith(suffix)]
        return mean_of(own) if own else None

    def ranking(suffix: str) -> dict[str, Any]:
        hits = {str(most): by_name(f"hits@{most}{suffix}") for most in HITS}
        return {"mrr": by_name("mrr" + suffix), "hits": hits}

    paper = {measure: {"all": mean(measure), "hard": mean(measure, HARD)} for measure in ("auc", "apr")}
    hits = {str(most): mean(f"hits@{most}") for most in HITS}
    missing = sorted({measure.partition("/")[2] for measure, _ in keys if measure.startswith("mrr/")})
    return {
        "auc": by_name("auc"),
        "apr": by_name("apr"),
        "macro": {**paper, "mrr": mean("mrr"), "hits": hits, "easy": mean("easy")},
        **ranking(""),
        "by_missing": {number: ranking(f"/{number}") for number in missing},
        "easy": by_name("easy"),
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
    spread = _aggregate(figures, partial(np.std, ddof=1))
    return Row(runs[0].row, _aggregate(figures, np.mean), spread, seeds, runs[0].about)


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
    who = trained[0].name if len(trained) == 1 else "every row"
    remarks = []
    for measure, title in (("mrr", "MRR"), ("auc", "AUC")):
        ahead = []
        for name, own in vote.figures[measure].items():
            best = max((value for row in trained if (value := row.get(measure, name)) is not None), default=None)
            if own is not None and best is not None and own > best:
                ahead.append(f"{name} ({own:.3f} against {best:.3f})")
        better = f"The neighbour vote, without training, is better than {who} by {title} on {', '.join(ahead)}."
        remarks += [better] if ahead else []
    return remarks
