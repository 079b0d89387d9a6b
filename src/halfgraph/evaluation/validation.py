"""Validation while training: the paper's measures on questions that the training graph cannot answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from halfgraph.evaluation.measures import HARD, paper_measures
from halfgraph.evaluation.metrics import require_finite
from halfgraph.evaluation.questions import held_out_questions
from halfgraph.evaluation.ranking import ScoredQuestions, empty_columns, sets_of
from halfgraph.graph.folder import Graph
from halfgraph.model.encoder import Encoder, cosine
from halfgraph.query.structures import STRUCTURES
from halfgraph.training.loop import Validate
from halfgraph.workload.folder import Workload
from halfgraph.workload.negatives import NegativeCounts, fresh_negatives
from halfgraph.workload.sampling import Questions

SAMPLED = 1_000  # validation questions of each structure, if there is no workload
CHUNK = 1 << 16  # pairs of a question and an entity scored at a time
ENCODED = 4096  # questions encoded at a time


def validation_questions(graph: Graph, workload: Workload | None, seed: int) -> list[Questions]:
    """Return the validation questions of a workload, or else new ones; none if the graph has no split."""
    if workload is None:
        return held_out_questions(graph, "valid", SAMPLED, seed, negatives=NegativeCounts(most=200))
    # Published workloads have unions too, which are none of the paper's types: they have no single embedding.
    sets = [workload.questions("valid", structure) for structure in workload.structures("valid")]
    return [_with_negatives(graph, workload, own, seed) for own in sets if own.structure in STRUCTURES]


def _with_negatives(graph: Graph, workload: Workload, questions: Questions, seed: int) -> Questions:
    """Sample a negative and a hard negative for each question if it has none, as in published workloads."""
    if (questions.negative >= 0).any():
        return questions
    view = graph.view(workload.graphs("valid")[1])  # the graph that has all their answers
    sampled: dict[str, Any] = {"negative": fresh_negatives(view, questions, 1, seed, hard=False)[:, 0]}
    if questions.structure.has_intersection:
        sampled["hard_negative"] = fresh_negatives(view, questions, 1, seed, hard=True)[:, 0]
    return replace(questions, **sampled)


def validator(questions: Sequence[Questions]) -> Validate | None:
    """Return a function that measures a model on these questions; None if no question has a negative."""
    if not any((own.negative >= 0).any() for own in questions):
        return None

    def validate(encoder: Encoder) -> dict[str, Any]:
        scores = paper_scores(encoder, questions)
        auc, apr = scores.macro().values()
        means = {"auc": auc["all"], "auc_hard": auc["hard"], "apr": apr["all"], "apr_hard": apr["hard"]}
        return {"score": auc["all"], **means, "by_type": dict(scores.auc)}

    return validate


@dataclass(frozen=True)
class PaperScores:
    """AUC and APR by query type."""

    auc: Mapping[str, float] = field(default_factory=dict)
    apr: Mapping[str, float] = field(default_factory=dict)

    def macro(self) -> dict[str, dict[str, float]]:
        """Means over all query types and over those with hard negatives."""
        return {name: {"all": _mean(scores, ""), "hard": _mean(scores, HARD)} for name, scores in vars(self).items()}


def _mean(scores: Mapping[str, float], suffix: str) -> float:
    chosen = [score for name, score in scores.items() if name.endswith(suffix)]
    return float(np.mean(chosen)) if chosen else float("nan")


@torch.no_grad()
def paper_scores(encoder: Encoder, sets: Iterable[Questions]) -> PaperScores:
    """Compute the paper's measures of a model without ranking all entities."""
    values: dict[str, dict[str, float]] = {"auc": {}, "apr": {}}
    with encoder.entities.normalised_once():
        require_finite(encoder.entities.embeddings().cpu().numpy(), "the entities")
        for questions in sets:
            measures = paper_measures(score_negatives(encoder, questions))
            for (measure, name), column in measures.items():
                if column.there.any():
                    values[measure][name] = column.value()
    return PaperScores(**values)


def score_negatives(encoder: Encoder, questions: Questions) -> ScoredQuestions:
    """Score the answers and negatives of the questions by cosine; ranks are left empty."""
    vectors, every = query_embeddings(encoder, questions), encoder.entities.embeddings()
    scored = empty_columns(questions)

    def score(name: str, rows: NDArray[np.int64], entities: NDArray[np.int32]) -> None:
        for first in range(0, len(rows), CHUNK):
            pairs = slice(first, first + CHUNK)
            ids = torch.from_numpy(np.maximum(entities[pairs], 0).astype(np.int64)).to(vectors.device)
            queries = vectors[torch.from_numpy(rows[pairs]).to(vectors.device)]
            getattr(scored, name)[pairs] = cosine(queries, every[ids][:, None])[:, 0].cpu().numpy()

    for name, column in (("answer", "answers"), ("negative", "negative"), ("hard_negative", "hard_negative")):
        score(name, np.arange(len(questions)), getattr(questions, column))
    for name in ("negatives", "hard_negatives"):
        sets = sets_of(questions, name)
        score(name, np.repeat(np.arange(len(questions)), sets.sizes()), sets.values)
    require_finite(scored.answer, questions.structure.name)
    return scored


def query_embeddings(encoder: Encoder, questions: Questions) -> torch.Tensor:
    """Return the unit embeddings of the questions (n, d)."""
    chunks = [slice(first, first + ENCODED) for first in range(0, len(questions), ENCODED)]
    queries = (questions.structure.fill(questions.anchors[rows], questions.relations[rows]) for rows in chunks)
    return F.normalize(torch.cat([encoder.encode([query])[0] for query in queries]), dim=-1)
