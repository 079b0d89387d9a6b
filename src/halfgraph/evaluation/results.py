"""The figures of one predictor on some questions, as plain values: what --json prints and every table is made from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfgraph.evaluation.bootstrap import AGAIN, LEVEL, Replicates, interval, mean_of, replicates
from halfgraph.evaluation.measures import Key, measures_of
from halfgraph.evaluation.protocol import HARD
from halfgraph.evaluation.questions import EvaluationSet
from halfgraph.evaluation.ranking import HITS, Watch, scored
from halfgraph.prediction.base import Predictor
from halfgraph.query.structures import STRUCTURES

Figures = Mapping[str, Any]
Told = Callable[[int], None]  # how many more questions are done
# The paper's eleven types, in the order of its Figure 4.
TYPES = (
    *(structure.name for structure in STRUCTURES),
    *(structure.name + HARD for structure in STRUCTURES if structure.has_intersection),
)


@dataclass
class Found:
    """The measures found so far, and what they are on questions drawn again."""

    values: dict[Key, float] = field(default_factory=dict)
    replicates: dict[Key, Replicates] = field(default_factory=dict)

    def names(self, measure: str) -> list[str]:
        """The structures or query types that have a measure; the paper's types in its order."""
        names = [name for its, name in self.values if its == measure]
        return sorted(names, key=TYPES.index) if measure in ("auc", "apr") else names

    def by_name(self, measure: str) -> dict[str, float]:
        """A measure by structure or query type."""
        return {name: self.values[measure, name] for name in self.names(measure)}

    def intervals(self, measure: str) -> dict[str, list[float] | None]:
        """Its confidence intervals."""
        return {name: _pair(self.replicates[measure, name]) for name in self.names(measure)}

    def mean(self, measure: str, suffix: str = "") -> float | None:
        """The mean over structures or query types, or over those with a suffix; nothing where there are none."""
        values = [value for name, value in self.by_name(measure).items() if name.endswith(suffix)]
        return float(np.mean(values)) if values else None

    def mean_interval(self, measure: str, suffix: str = "") -> list[float] | None:
        """Its confidence interval."""
        keys = [(measure, name) for name in self.names(measure) if name.endswith(suffix)]
        return _pair(mean_of(self.replicates, keys)) if keys else None


def _pair(some: Replicates) -> list[float] | None:
    """An interval, or nothing where hardly a question has a value."""
    ends = list(interval(some))
    return None if np.isnan(ends).any() else ends


def evaluate(
    predictor: Predictor,
    asked: EvaluationSet,
    *,
    seed: int = 0,
    again: int = AGAIN,
    threads: int | None = None,
    watch: Watch | None = None,
    told: Told = lambda _: None,
) -> dict[str, Any]:
    """The figures of an predictor; structure by structure, so that memory grows with none of them."""
    found, answers = Found(), {}
    for questions, missing in zip(asked.sets, asked.missing, strict=True):
        result = scored(predictor, questions, threads=threads, watch=watch)
        measures = measures_of(result, missing)
        found.values |= {key: measure.value() for key, measure in measures.items()}
        found.replicates |= replicates(measures, seed, again)
        numbers, counts = np.unique(missing, return_counts=True)
        answers[questions.structure.short] = dict(zip(map(str, numbers.tolist()), counts.tolist(), strict=True))
        told(len(questions))
    return figures_of(predictor.name, found, asked, answers, again)


def figures_of(
    name: str, found: Found, asked: EvaluationSet, answers: Mapping[str, Mapping[str, int]], again: int
) -> dict[str, Any]:
    """The measures in the form of the interface, and what we add to it."""
    figures = {
        "name": name,
        **_shown(found.by_name, found.mean),
        "by_missing": {
            number: {
                **_ranked(found.by_name, f"/{number}"),
                "answers": {short: counts[number] for short, counts in answers.items() if number in counts},
            }
            for number in _numbers(found)
        },
        "easy": found.by_name("easy"),
        "ties": found.by_name("ties"),
        "questions": asked.counts,
        "split": asked.split,
        "source": asked.source,
    }
    if again:
        figures["intervals"] = {
            "level": LEVEL,
            "drawn_again": again,
            **_shown(found.intervals, found.mean_interval),
            "by_missing": {number: _ranked(found.intervals, f"/{number}") for number in _numbers(found)},
            "easy": found.intervals("easy"),
        }
    return figures


def _shown(by_name: Callable[[str], Any], mean: Callable[..., Any]) -> dict[str, Any]:
    """The main figures, or their intervals."""
    paper = {measure: {"all": mean(measure), "hard": mean(measure, HARD)} for measure in ("auc", "apr")}
    hits = {str(most): mean(f"hits@{most}") for most in HITS}
    return {
        "auc": by_name("auc"),
        "apr": by_name("apr"),
        "macro": {**paper, "mrr": mean("mrr"), "hits": hits, "easy": mean("easy")},
        **_ranked(by_name, ""),
    }


def _ranked(by_name: Callable[[str], Any], suffix: str) -> dict[str, Any]:
    """MRR and Hits by structure."""
    return {
        "mrr": by_name("mrr" + suffix),
        "hits": {str(most): by_name(f"hits@{most}{suffix}") for most in HITS},
    }


def _numbers(found: Found) -> list[str]:
    """The numbers of missing triples that some answer needs."""
    return sorted({measure.partition("/")[2] for measure, _ in found.values if measure.startswith("mrr/")})
