"""Gain of each setting of the recipe: `benchmarks/long/recipe.py GRAPH WORKLOAD [--steps N] [NAME=VALUE ...]`.

Trains the default model once for each change of a setting, all for the same number of steps, and prints the macro AUC
and APR on the workload's validation questions, and the filtered MRR of the one-edge ones, as rows of a Markdown table;
test questions never choose a recipe. Without changes on the command line, those of docs/results/ablations.md.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from halfgraph.evaluation.ranking import score_questions
from halfgraph.evaluation.validation import paper_scores, validator
from halfgraph.graph.folder import Graph
from halfgraph.prediction.embedding import EmbeddingPredictor
from halfgraph.settings import given_values, training_settings
from halfgraph.training.loop import Budget
from halfgraph.training.run import load_encoder, new_encoder, run, start
from halfgraph.workload.folder import Workload

CHANGES = (
    "",
    "links=0",
    "link_weight=2.0",
    "pooled_weight=0.0",
    "initial=xavier",
    "other_negatives=0",
    "type_negatives=0,other_negatives=1024",
    "temperature=0.05",
    "learning_rate=0.005",
    "one_edge=256,one_edge_weight=1.0",
    "neighbourhoods=0",
    "hard_negatives=0",
    "hard_pooled_weight=0.0",
    "activation=sigmoid",
    "path_length=0.0",
    "norm_by_type=true",
    "centre=mean",
    "model=gqe",
    "model=GQE+KG[min]",
    "recipe=paper",
)


def main() -> None:
    """Train once for each change and print a row of the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("graph")
    arguments.add_argument("workload")
    arguments.add_argument("--steps", type=int)
    arguments.add_argument("--minutes", type=float)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("changes", nargs="*", default=CHANGES)
    given = arguments.parse_intermixed_args()
    torch.set_num_threads(given.threads)
    graph = Graph.open(given.graph)
    workload = Workload.open(given.workload, graph)
    budget = Budget(given.steps or (None if given.minutes else 400), given.minutes, patience=100)
    print(f"graph {graph.path.name}, seed {given.seed}, {given.threads} threads, {budget}")
    columns = ("change", "steps", "seconds", "AUC all", "AUC hard", "APR all", "APR hard", "MRR 1p")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for change in given.changes:
        print(row(graph, workload, change, budget, given.seed), flush=True)


def row(graph: Graph, workload: Workload, change: str, budget: Budget, seed: int) -> str:
    """Train with a change and return its row."""
    pairs = [pair for pair in change.split(",") if pair]
    named = dict(pair.split("=", 1) for pair in pairs if pair.startswith(("model=", "recipe=")))
    values = given_values(None, [pair for pair in pairs if not pair.startswith(("model=", "recipe="))])
    settings = training_settings(named.get("model", "cga"), named.get("recipe", "default"), values)
    validate = validator([workload.questions("valid", structure) for structure in workload.structures("valid")])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        start(out, graph, settings.sections(), seed, resume=False)
        begun = time.perf_counter()
        encoder = new_encoder(settings.architecture, graph, seed, "cpu")
        ended = run(out, graph, encoder, settings.recipe, budget, name=settings.model, seed=seed, validate=validate)
        seconds = time.perf_counter() - begun
        best = load_encoder(out, graph, settings.architecture)
    questions = [workload.questions("valid", structure) for structure in workload.structures("valid")]
    macro = paper_scores(best, questions).macro()
    figures = " | ".join(
        f"{100 * macro[measure][which]:.2f}" for measure in ("auc", "apr") for which in ("all", "hard")
    )
    one_edge = next(some for some in questions if some.structure.short == "1p")
    assert one_edge.hard is not None
    sizes = np.diff(one_edge.hard.offsets)
    ranked = (
        np.repeat(1 / sizes, sizes) / score_questions(EmbeddingPredictor.of(best), one_edge).ranks
    )  # each question counts once
    mrr = ranked.sum() / len(one_edge)
    return f"| {change or 'default'} | {ended.step:,} | {seconds:,.0f} | {figures} | {mrr:.3f} |"


if __name__ == "__main__":
    main()
