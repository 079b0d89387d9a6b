"""What each ingredient of the evidence for an edge gives: `benchmarks/long/evidence.py RUN QUERIES [--limit N]`.

The weights are fitted anew without one ingredient at a time, and the queries of a file are answered by edges: filtered
Hits@3 by structure and mean MRR, as rows of a Markdown table.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from halfgraph.api import open_run
from halfgraph.evaluation.questions import Asked, of_file
from halfgraph.evaluation.results import evaluate
from halfgraph.prediction.answerers import MeaningAnswerer
from halfgraph.prediction.fitting import EVIDENCE, PAIRS, fit
from halfgraph.prediction.link_executor import Scored
from halfgraph.prediction.link_predictor import Edges, Scale

MODEL = ("cosine", "back")
CHANGES = ((), *((name,) for name in EVIDENCE), MODEL, tuple(name for name in EVIDENCE if name not in MODEL))


def main() -> None:
    """Nothing; fits and prints."""
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
    edges = Edges.of(encoder, graph.train, Scale())
    with of_file(given.queries, graph, given.limit, given.seed) as asked:
        names = [questions.structure.short for questions in asked.sets]
        print(f"{given.run}, {given.limit} queries of each structure, {given.pairs} pairs, seed {given.seed}")
        print(f"| Hits@3 without | {' | '.join(names)} | mean | mean MRR |\n{'|---' * (len(names) + 3)}|")
        for off in CHANGES:
            scale = fit(edges, graph.valid, given.seed, pairs=given.pairs, off=off)
            print(row(", ".join(off) or "(nothing)", edges.another(scale), asked, names, given), flush=True)


def row(name: str, edges: Edges, asked: Asked, names: list[str], given: argparse.Namespace) -> str:
    """The row of some weights."""
    answerer = MeaningAnswerer(name, lambda: Scored(edges.another()))
    figures = evaluate(answerer, asked, seed=given.seed, threads=given.threads)
    hits, ranks = ([values[structure] for structure in names] for values in (figures["hits"]["3"], figures["mrr"]))
    return f"| {name} | {' | '.join(f'{hit:.3f}' for hit in hits)} | {np.mean(hits):.3f} | {np.mean(ranks):.3f} |"


if __name__ == "__main__":
    main()
