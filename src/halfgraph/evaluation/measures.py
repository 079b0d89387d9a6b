"""The measures as columns with one value for each question, to be averaged and resampled.

The paper's measures are ROC AUC and average percentile rank (APR) by query type. A query type is a structure by the
paper's name; its twin with hard negatives has the suffix -hard. Filtered MRR and Hits@k are by structure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.evaluation.metrics import auc, percentiles
from halfgraph.evaluation.ranking import HITS, ScoredQuestions, mean_by_question
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import STRUCTURES

Values = NDArray[np.float64]
Key = tuple[str, str]  # a measure, and a structure or query type: ("apr", "3-inter-hard"), ("hits@3", "3i")
HARD = "-hard"
# The paper's eleven query types, in the order of its Figure 4.
TYPES = (
    *(structure.name for structure in STRUCTURES),
    *(structure.name + HARD for structure in STRUCTURES if structure.has_intersection),
)


@dataclass(frozen=True)
class Column:
    """A value for each question where `there`; the measure is their mean."""

    values: Values
    there: NDArray[np.bool_]

    def value(self) -> float:
        return float(self.values[self.there].mean())


@dataclass(frozen=True)
class Pairs:
    """The scores of each question's answer and negative where `there`; the measure is the ROC AUC of all pooled."""

    positive: Values
    negative: Values
    there: NDArray[np.bool_]

    def value(self) -> float:
        return auc(self.positive[self.there], self.negative[self.there])


Measures = dict[Key, Column | Pairs]


def all_measures(scored: ScoredQuestions, missing: NDArray[np.int8] | None = None) -> Measures:
    """Compute every measure for which at least one question has a value."""
    measures = paper_measures(scored) | ranking_measures(scored)
    if missing is not None:
        measures |= measures_by_missing(scored, missing)
    return {key: column for key, column in measures.items() if column.there.any()}


def paper_measures(scored: ScoredQuestions) -> Measures:
    """AUC and APR by query type, for the paper's structures only."""
    questions = scored.questions
    if questions.structure not in STRUCTURES:
        return {}
    twins = {"": ("negative", "negatives")}
    if questions.structure.has_intersection:
        twins[HARD] = ("hard_negative", "hard_negatives")
    measures: Measures = {}
    for suffix, (single, many) in twins.items():
        name = questions.structure.name + suffix
        there = np.asarray(getattr(questions, single)) >= 0
        scores = getattr(scored, single).astype(np.float64)
        measures["auc", name] = Pairs(scored.answer.astype(np.float64), scores, there)
        sets: Ragged | None = getattr(questions, many)
        if sets is not None:
            shares = percentiles(scored.answer, getattr(scored, many), np.asarray(sets.offsets))
            measures["apr", name] = Column(shares, sets.sizes() > 0)
    return measures


def ranking_measures(scored: ScoredQuestions) -> Measures:
    """Filtered MRR and Hits@k of hard answers, the share of them that tie, and the MRR of easy answers."""
    questions, short = scored.questions, scored.questions.structure.short
    measures: Measures = {}
    if questions.hard is not None:
        measures |= _ranked(scored, questions.hard.sizes() > 0, np.ones(len(scored.above), dtype=bool), "")
        tied = mean_by_question(scored.equal > 0, questions.hard)
        measures["ties", short] = Column(tied, questions.hard.sizes() > 0)
    if questions.easy is not None:
        measures["easy", short] = Column(scored.recovered, questions.easy.sizes() > 0)
    return measures


def measures_by_missing(scored: ScoredQuestions, missing: NDArray[np.int8]) -> Measures:
    """MRR and Hits@k of hard answers by the number of missing triples they need: mrr/1, hits@3/1, mrr/2, ..."""
    measures: Measures = {}
    if scored.questions.hard is None:
        return measures
    for number in np.unique(missing[missing >= 0]).tolist():
        chosen = missing == number
        there = mean_by_question(chosen, scored.questions.hard) > 0
        measures |= _ranked(scored, there, chosen, f"/{number}")
    return measures


def _ranked(scored: ScoredQuestions, there: NDArray[np.bool_], chosen: NDArray[np.bool_], suffix: str) -> Measures:
    """MRR and Hits@k of the chosen hard answers: means over the answers of a question."""
    hard, short, ranks = scored.questions.hard, scored.questions.structure.short, scored.ranks
    assert hard is not None
    share = np.maximum(mean_by_question(chosen, hard), 1e-12)  # of a question's answers that are chosen
    values: Mapping[str, NDArray[np.float64]] = {
        "mrr": 1.0 / ranks,
        **{f"hits@{most}": (ranks <= most).astype(np.float64) for most in HITS},
    }
    return {
        (name + suffix, short): Column(mean_by_question(own * chosen, hard) / share, there)
        for name, own in values.items()
    }
