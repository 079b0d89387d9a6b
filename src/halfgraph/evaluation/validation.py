"""Validation while training: the paper's measures on questions that the training graph cannot answer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from halfgraph.evaluation.protocol import paper_scores
from halfgraph.graph.folder import Graph
from halfgraph.model.encoder import Encoder
from halfgraph.query.structures import STRUCTURES
from halfgraph.training.loop import Validate
from halfgraph.workload.folder import Counts, Plan, Workload, draw
from halfgraph.workload.negatives import NegativeCounts, fresh_negatives
from halfgraph.workload.sampling import Questions

DRAWN = 1_000  # validation questions of each structure, where there is no workload


def validation_questions(graph: Graph, workload: Workload | None, seed: int) -> list[Questions]:
    """The validation questions of a workload, or else fresh ones; none where the graph has no split."""
    if workload is not None:
        # Unions, which published workloads have, are not of the paper's types: they have no one vector.
        structures = [structure for structure in workload.structures("valid") if structure in STRUCTURES]
        return [
            _with_negatives(graph, workload, workload.questions("valid", structure), seed) for structure in structures
        ]
    if not graph.has_split:
        return []
    plan = Plan(Counts(0, 0, DRAWN, 0, 0), seed, negatives=NegativeCounts(most=200))
    return [drawn.questions for split, drawn in draw(graph, plan) if split == "valid" and len(drawn.questions)]


def _with_negatives(graph: Graph, workload: Workload, questions: Questions, seed: int) -> Questions:
    """The questions with a negative and a hard negative each; published ones come without."""
    if (questions.negative >= 0).any():
        return questions
    view = graph.view(workload.graphs("valid")[1])  # the graph that all their answers are on
    drawn: dict[str, Any] = {"negative": fresh_negatives(view, questions, 1, seed, hard=False)[:, 0]}
    if questions.structure.has_intersection:
        drawn["hard_negative"] = fresh_negatives(view, questions, 1, seed, hard=True)[:, 0]
    return replace(questions, **drawn)


def validator(questions: Sequence[Questions]) -> Validate | None:
    """What measures a model on these questions; nothing where none has a negative to be told from."""
    if not any((some.negative >= 0).any() for some in questions):
        return None

    def validate(encoder: Encoder) -> dict[str, Any]:
        scores = paper_scores(encoder, questions)
        macro = scores.macro()
        return {
            "score": macro["auc"]["all"],
            "auc": macro["auc"]["all"],
            "auc_hard": macro["auc"]["hard"],
            "apr": macro["apr"]["all"],
            "apr_hard": macro["apr"]["hard"],
            "by_type": dict(scores.auc),
        }

    return validate
