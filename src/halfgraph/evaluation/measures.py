"""Each measure as a column with a value for each question, to be averaged, and drawn again for intervals."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.evaluation.metrics import auc, percentiles
from halfgraph.evaluation.protocol import HARD
from halfgraph.evaluation.ranking import HITS, ScoredQuestions, mean_by_question
from halfgraph.query.exact import Ragged
from halfgraph.query.structures import STRUCTURES

Values = NDArray[np.float64]
Key = tuple[str, str]  # a measure, and a structure or query type: ("apr", "3-inter-hard"), ("hits@3", "3i")


@dataclass(frozen=True)
class Column:
    """A value for each question, where there is one; the measure is their mean."""

    values: Values
    there: NDArray[np.bool_]

    def value(self) -> float:
        """The mean over the questions that have a value."""
        return float(self.values[self.there].mean())


@dataclass(frozen=True)
class Pairs:
    """The score of a question's answer and of its negative, where there is one; the measure is the ROC AUC."""

    positive: Values
    negative: Values
    there: NDArray[np.bool_]

    def value(self) -> float:
        """The area under the ROC curve, all questions pooled."""
        return auc(self.positive[self.there], self.negative[self.there])


Measures = dict[Key, Column | Pairs]


def measures_of(scored: ScoredQuestions, missing: NDArray[np.int8] | None = None) -> Measures:
    """Every measure of some questions; those that no question has a value for are left out."""
    found = paper_measures(scored) | field_measures(scored)
    if missing is not None:
        found |= by_missing(scored, missing)
    return {key: column for key, column in found.items() if column.there.any()}


def paper_measures(scored: ScoredQuestions) -> Measures:
    """AUC and percentile by query type; unions are none of the paper's."""
    questions = scored.questions
    if questions.structure not in STRUCTURES:
        return {}
    twins = {"": ("negative", "negatives")}
    if questions.structure.has_intersection:
        twins[HARD] = ("hard_negative", "hard_negatives")
    found: Measures = {}
    for suffix, (one, many) in twins.items():
        name = questions.structure.name + suffix
        there = np.asarray(getattr(questions, one)) >= 0
        found["auc", name] = Pairs(scored.answer.astype(np.float64), getattr(scored, one).astype(np.float64), there)
        sets: Ragged | None = getattr(questions, many)
        if sets is not None:
            shares = percentiles(scored.answer, getattr(scored, many), np.asarray(sets.offsets))
            found["apr", name] = Column(shares, sets.sizes() > 0)
    return found


def field_measures(scored: ScoredQuestions) -> Measures:
    """Filtered MRR and Hits of hard answers, the share of them that tie, and the MRR of easy answers."""
    questions, short = scored.questions, scored.questions.structure.short
    found: Measures = {}
    if questions.hard is not None:
        found |= _ranked(scored, questions.hard.sizes() > 0, np.ones(len(scored.above), dtype=bool), "")
        tied = mean_by_question(scored.equal > 0, questions.hard)
        found["ties", short] = Column(tied, questions.hard.sizes() > 0)
    if questions.easy is not None:
        found["easy", short] = Column(scored.recovered, questions.easy.sizes() > 0)
    return found


def by_missing(scored: ScoredQuestions, missing: NDArray[np.int8]) -> Measures:
    """MRR and Hits of the hard answers that need so many missing triples: the measures mrr/1, hits@3/1, mrr/2, ..."""
    found: Measures = {}
    if scored.questions.hard is None:
        return found
    for number in np.unique(missing[missing >= 0]).tolist():
        chosen = missing == number
        there = mean_by_question(chosen, scored.questions.hard) > 0
        found |= _ranked(scored, there, chosen, f"/{number}")
    return found


def _ranked(scored: ScoredQuestions, there: NDArray[np.bool_], chosen: NDArray[np.bool_], suffix: str) -> Measures:
    """MRR and Hits of the chosen hard answers: a mean over those of a question, then over questions."""
    hard, short, ranks = scored.questions.hard, scored.questions.structure.short, scored.ranks
    assert hard is not None
    share = np.maximum(mean_by_question(chosen, hard), 1e-12)  # of a question's answers that are chosen
    values: Mapping[str, NDArray[np.float64]] = {
        "mrr": 1.0 / ranks,
        **{f"hits@{most}": (ranks <= most).astype(np.float64) for most in HITS},
    }
    return {
        (name + suffix, short): Column(mean_by_question(some * chosen, hard) / share, there)
        for name, some in values.items()
    }
