"""Ablation of the link features: `benchmarks/long/link_features.py RUN QUERIES [--limit N]`.

The link weights are fitted again without one feature at a time, and the queries of a file are answered by links:
filtered Hits@3 by structure and mean MRR, as rows of a Markdown table.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from halfgraph.api import open_run
from halfgraph.evaluation.questions import EvaluationSet, from_file
from halfgraph.evaluation.results import evaluate
from halfgraph.prediction.base import QueryPredictor
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.link_fitting import OPTIONAL, PAIRS, fit_link_weights
from halfgraph.prediction.link_predictor import LinkPredictor, LinkWeights

MODEL = ("cosine", "inverse_cosine")
CHANGES = ((), *((name,) for name in OPTIONAL), MODEL, tuple(name for name in OPTIONAL if name not in MODEL))


def main() -> None:
    """Fit and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("run", type=Path)
    arguments.add_argument("queries", type=Path)
    arguments.add_argument("--limit", type=int, default=200)
    arguments.add_argument("--pairs", type=int, default=PAIRS)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--threads", type=int, default=2)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    opened = open_run(given.run)
    graph, encoder = opened.graph, opened.encoder
    links = LinkPredictor(EmbeddingIndex.of(encoder), graph.train, LinkWeights())
    with from_file(given.queries, graph, given.limit, given.seed) as questions:
        names = [own.structure.short for own in questions.sets]
        print(f"{given.run}, {given.limit} queries of each structure, {given.pairs} pairs, seed {given.seed}")
        print(f"| Hits@3 without | {' | '.join(names)} | mean | mean MRR |\n{'|---' * (len(names) + 3)}|")
        for off in CHANGES:
            weights = fit_link_weights(links, graph.valid, given.seed, pairs=given.pairs, off=off)
            print(row(", ".join(off) or "(nothing)", links.copy(weights), questions, names, given), flush=True)


def row(name: str, links: LinkPredictor, questions: EvaluationSet, names: list[str], given: argparse.Namespace) -> str:
    """Return the row of a set of weights."""
    predictor = QueryPredictor(name, lambda: LinkExecutor(links.copy()).scores)
    figures = evaluate(predictor, questions, seed=given.seed, threads=given.threads)
    hits, ranks = ([values[structure] for structure in names] for values in (figures["hits"]["3"], figures["mrr"]))
    return f"| {name} | {' | '.join(f'{hit:.3f}' for hit in hits)} | {np.mean(hits):.3f} | {np.mean(ranks):.3f} |"


if __name__ == "__main__":
    main()
