"""Ablation of the link features: `benchmarks/long/link_features.py RUN [QUERIES] [--limit N]`.

The link weights are fitted again without one feature at a time, and the queries of a file, or sampled validation
questions, are answered by links: filtered Hits@3 by structure and mean MRR, as rows of a Markdown table.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from halfgraph.api import open_run
from halfgraph.evaluation.questions import EvaluationSet
from halfgraph.evaluation.results import evaluate
from halfgraph.evaluation.runs import open_questions
from halfgraph.prediction.link_features import FEATURES
from halfgraph.prediction.link_fitting import PAIRS, draw_examples, fit_examples, log_rates
from halfgraph.prediction.modes import LINKS
from halfgraph.prediction.predictors import Predictors

MODELS = ("cosine", "complex")
RATES = "relations' rates"
CHANGES = (*((name,) for name in FEATURES), MODELS, tuple(name for name in FEATURES if name not in MODELS))


def main() -> None:
    """Fit and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("run", type=Path)
    arguments.add_argument("queries", type=Path, nargs="?")
    arguments.add_argument("--limit", type=int, default=200)
    arguments.add_argument("--pairs", type=int, default=PAIRS)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--threads", type=int, default=2)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    opened = open_run(given.run)
    graph = opened.graph
    predictors = Predictors.load(given.run, opened.encoder, graph)
    predictors.choose(LINKS)
    assert predictors.models is not None
    rng = np.random.default_rng(given.seed)
    examples = draw_examples(predictors.links, graph.valid, rng, given.pairs, lambda _: None)
    labelled = graph.valid.triple_count / predictors.models.missing
    with open_questions(graph, None, given.queries, "valid", given.limit, given.seed) as questions:
        names = [own.structure.short for own in questions.sets]
        print(f"{given.run}, {given.limit} queries of each structure, {given.pairs} pairs, seed {given.seed}")
        print(f"| Hits@3 without | {' | '.join(names)} | mean | mean MRR |\n{'|---' * (len(names) + 3)}|")
        rates = log_rates(graph.train, graph.valid)
        for name, used, off in (
            ("(nothing)", rates, ()),
            (RATES, 0 * rates, ()),
            *((", ".join(off), rates, off) for off in CHANGES),
        ):
            weights = fit_examples(examples, used, labelled, off)
            changed = replace(predictors, models=replace(predictors.models, weights=weights))
            print(row(name, changed, questions, names, given), flush=True)


def row(
    name: str, predictors: Predictors, questions: EvaluationSet, names: list[str], given: argparse.Namespace
) -> str:
    """Return the row of a set of weights."""
    figures = evaluate(predictors.predictor(LINKS), questions, seed=given.seed, threads=given.threads)
    hits, ranks = ([values[structure] for structure in names] for values in (figures["hits"]["3"], figures["mrr"]))
    return f"| {name} | {' | '.join(f'{hit:.3f}' for hit in hits)} | {np.mean(hits):.3f} | {np.mean(ranks):.3f} |"


if __name__ == "__main__":
    main()
