"""Validation while training: the paper's measures on questions that the training graph cannot answer."""

from collections.abc import Sequence
from typing import Any

from halfgraph.evaluation.protocol import paper_scores
from halfgraph.graph.folder import Graph
from halfgraph.model.encoder import Encoder
from halfgraph.query.negatives import Judging
from halfgraph.query.sampling import Questions
from halfgraph.query.shapes import STRUCTURES
from halfgraph.query.workload import Counts, Plan, Workload, draw
from halfgraph.training.loop import Validate

DRAWN = 1_000  # validation questions of each structure, where there is no workload


def validation_questions(graph: Graph, workload: Workload | None, seed: int) -> list[Questions]:
    """The validation questions of a workload, or else fresh ones; none where the graph has no split."""
    if workload is not None:
        # Unions, which published workloads have, are not of the paper's types: they have no one vector.
        return [workload.questions("valid", shape) for shape in workload.structures("valid") if shape in STRUCTURES]
    if not graph.has_split:
        return []
    plan = Plan(Counts(0, 0, DRAWN, 0, 0), seed, judging=Judging(most=200))
    return [drawn.questions for split, drawn in draw(graph, plan) if split == "valid" and len(drawn.questions)]


def validator(questions: Sequence[Questions]) -> Validate | None:
    """What measures a model on these questions; nothing where there are none."""
    if not questions:
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
