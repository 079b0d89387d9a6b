"""The paper's protocol: ROC AUC and average percentile rank by query type, hard-negative types as twins."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.evaluation.metrics import auc, percentile, require_finite
from halfgraph.model.encoder import Encoder
from halfgraph.query.exact import Ragged
from halfgraph.workload.sampling import Questions

ROWS = 256  # questions scored against all entities at a time, so that memory does not grow with their number
HARD = "-hard"


@dataclass(frozen=True)
class PaperScores:
    """AUC and APR by query type: the structures by the paper's names, their hard twins with the suffix -hard."""

    auc: Mapping[str, float] = field(default_factory=dict)
    apr: Mapping[str, float] = field(default_factory=dict)

    def macro(self) -> dict[str, dict[str, float]]:
        """The means over all types and over the hard ones."""
        return {name: {"all": _mean(scores), "hard": _mean(_hard(scores))} for name, scores in vars(self).items()}


def _hard(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: score for name, score in scores.items() if name.endswith(HARD)}


def _mean(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values()))) if scores else float("nan")


@torch.no_grad()
def paper_scores(encoder: Encoder, sets: Iterable[Questions]) -> PaperScores:
    """The paper's measures of a model on some questions."""
    aucs, aprs = {}, {}
    with encoder.entities.normalised_once():
        require_finite(encoder.entities.embeddings().cpu().numpy(), "the entities")
        for questions in sets:
            vectors = query_vectors(encoder, questions)
            name = questions.structure.name
            right = pair_scores(encoder, vectors, questions.answers)
            require_finite(right, name)
            twins = [(name, questions.negative, questions.negatives)]
            if questions.structure.has_intersection:
                twins.append((name + HARD, questions.hard_negative, questions.hard_negatives))
            for twin, negative, many in twins:
                there = negative >= 0
                if there.any():
                    wrong = pair_scores(encoder, vectors[torch.from_numpy(there)], negative[there])
                    aucs[twin] = auc(right[there], wrong)
                if many is not None and many.sizes().any():
                    aprs[twin] = mean_percentile(encoder, vectors, right, many)
    return PaperScores(aucs, aprs)


def query_vectors(encoder: Encoder, questions: Questions) -> torch.Tensor:
    """The normalised vectors of some questions (n, d)."""
    pieces = [
        encoder.encode([questions.structure.fill(questions.anchors[rows], questions.relations[rows])])[0]
        for rows in (slice(first, first + 4096) for first in range(0, len(questions), 4096))
    ]
    return F.normalize(torch.cat(pieces), dim=-1)


def pair_scores(encoder: Encoder, vectors: torch.Tensor, entities: NDArray[np.int32]) -> NDArray[np.float32]:
    """The cosine of each question with its entity (n,)."""
    ids = torch.from_numpy(np.asarray(entities, dtype=np.int64)).to(vectors.device)
    scores: NDArray[np.float32] = (vectors * encoder.entities(ids)).sum(dim=-1).cpu().numpy()
    return scores


def mean_percentile(encoder: Encoder, vectors: torch.Tensor, right: NDArray[np.float32], many: Ragged) -> float:
    """The mean over questions of the share of their negatives that the answer is above."""
    rows = np.flatnonzero(many.sizes())
    every = encoder.entities.embeddings()
    found = []
    for first in range(0, len(rows), ROWS):
        some = rows[first : first + ROWS]
        scores = (vectors[torch.from_numpy(some).to(vectors.device)] @ every.t()).cpu().numpy()
        found += [percentile(float(right[row]), own[many[row]]) for row, own in zip(some.tolist(), scores, strict=True)]
    return float(np.mean(found))
