"""Prediction by links: `benchmarks/long/link_queries.py RUN QUERIES [--limit N]`, for a trained run and a query file.

Filtered Hits@3 and MRR of both modes by structure, beside CQD-Beam's published figures (fb15k-237 only) and the
neighbour vote; the calibration of the mode links; time of a query on one thread and peak memory; and the share of
answers with one missing triple whose witness names a true missing triple, on newly sampled test questions.
"""

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from halfgraph.api import open_run
from halfgraph.evaluation.questions import EvaluationSet, from_file, sample_questions
from halfgraph.evaluation.reliability import measure_reliability
from halfgraph.evaluation.results import evaluate
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.baselines import neighbour_vote
from halfgraph.prediction.modes import LINKS, MODES
from halfgraph.prediction.predictors import Predictors
from halfgraph.prediction.witness import find_witness

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measure import MB, Verdicts

NINE = ("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up")
CQD_BEAM = (0.512, 0.279, 0.219, 0.352, 0.457, 0.129, 0.249, 0.284, 0.128)  # Hits@3, its authors' result files
WITNESSED = 400  # test questions of each structure for witnesses


def main() -> None:
    """Measure, print and exit with the verdict."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("run", type=Path)
    arguments.add_argument("queries", type=Path)
    arguments.add_argument("--limit", type=int, default=1_000)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    opened = open_run(given.run)
    graph, encoder = opened.graph, opened.encoder
    predictors = Predictors.load(given.run, encoder, graph)
    verdicts = Verdicts(f"Prediction by links, {given.run}, {given.limit} of each structure, seed {given.seed}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with from_file(given.queries, graph, given.limit, given.seed) as questions:
        judge_cost(verdicts, predictors, questions, before)
        judge_quality(verdicts, predictors, graph, questions, given.seed)
        print_calibration(predictors, graph, questions, given.seed)
    judge_witnesses(verdicts, predictors, graph, given.seed)
    verdicts.leave()


def judge_cost(verdicts: Verdicts, predictors: Predictors, questions: EvaluationSet, before: int) -> None:
    """Judge the time of a query on one thread, over all nine structures, and the peak memory."""
    executor, times = predictors.executor, []
    for own in questions.sets:
        for row in range(min(len(own), 110)):
            begun = time.perf_counter()
            executor.scores(own.query(row))
            times.append((row >= 10, 1000 * (time.perf_counter() - begun)))  # the first ten warm up
    warm = np.array([took for counts, took in times if counts])
    _at_most(verdicts, "median of a query, ms", float(np.median(warm)), 15)
    _at_most(verdicts, "95th percentile of a query, ms", float(np.percentile(warm, 95)), 40)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    _at_most(verdicts, "peak memory beyond the graph and the model, MB", peak / MB, 1000)


def judge_quality(
    verdicts: Verdicts, predictors: Predictors, graph: Graph, questions: EvaluationSet, seed: int
) -> None:
    """Print the table and judge the best mode."""
    every = [*(predictors.predictor(mode) for mode in MODES), neighbour_vote(graph.train)]
    measured: dict[str, dict[str, Any]] = {}
    print("| Hits@3 | " + " | ".join(NINE) + " | mean | mean MRR |")
    for predictor in every:
        figures = evaluate(predictor, questions, seed=seed, threads=2)
        ranks = [figures["mrr"].get(name, 0.0) for name in NINE]
        hits = [figures["hits"]["3"].get(name, 0.0) for name in NINE]
        measured[predictor.name] = {"hits": np.array(hits), "mrr": np.array(ranks)}
        cells = " | ".join(f"{hit:.3f}" for hit in hits)
        print(f"| {predictor.name} | {cells} | {np.mean(hits):.3f} | {np.mean(ranks):.3f} |", flush=True)
    best = max(MODES, key=lambda mode: float(measured[mode]["hits"].mean()))
    own = measured[best]
    print(f"The best mode: {best}.")
    _at_least(verdicts, "mean Hits@3 of nine structures", float(own["hits"].mean()), 0.33)
    _at_least(verdicts, "mean MRR of nine structures", float(own["mrr"].mean()), 0.30)
    _at_least(verdicts, "structures at CQD-Beam's Hits@3 or above", int((own["hits"] >= CQD_BEAM).sum()), 8)
    ahead = int((own["mrr"] >= measured["neighbour vote"]["mrr"]).sum())
    _at_least(verdicts, "structures not behind the neighbour vote (MRR)", ahead, 9)


def print_calibration(predictors: Predictors, graph: Graph, questions: EvaluationSet, seed: int) -> None:
    """Print the calibration error and the Brier score of the mode links by structure."""
    links = predictors.predictor(LINKS)
    drawn = measure_reliability(links, questions.sets, graph.train, graph.whole, seed)["calibration"]
    for title, figures in (("queries drawn", drawn), ("given something missing", drawn["something_missing"])):
        for metric in ("ece", "brier"):
            cells = " | ".join(f"{name} {value:.4f}" for name, value in figures[metric].items())
            print(f"| {metric}, {title} | {cells} |", flush=True)


def judge_witnesses(verdicts: Verdicts, predictors: Predictors, graph: Graph, seed: int) -> None:
    """Judge how often the witness of an answer with one missing triple names a true missing triple."""
    executor, right, seen = predictors.executor, 0, 0
    for questions, missing in zip(*_with_missing(graph, seed), strict=True):
        assert questions.hard is not None
        for row in range(len(questions)):
            first, last = questions.hard.offsets[row : row + 2]
            single = np.flatnonzero(missing[first:last] == 1)
            if not len(single):
                continue
            answer = int(questions.hard.values[first + single[0]])
            steps = find_witness(executor, questions.query(row), answer).steps
            lacking = [step for step in steps if not step.known]
            seen += 1
            right += any(_has(graph.whole, step.head, int(step.node.relation), step.tail) for step in lacking)
    _at_least(verdicts, f"witnesses that name a true missing triple, of {seen:,}", right / max(seen, 1), 0.8)


def _at_most(verdicts: Verdicts, what: str, figure: float, target: float) -> None:
    """Judge a figure that should not be above its target."""
    verdicts.at_most(what, f"{figure:.3g} of {target:g}", figure / target, 1)


def _at_least(verdicts: Verdicts, what: str, figure: float, target: float) -> None:
    """Judge a figure that should not be below its target."""
    verdicts.at_least(what, f"{figure:.3g} of {target:g}", figure / target, 1)


def _with_missing(graph: Graph, seed: int) -> tuple[Any, Any]:
    """Sample test questions with the number of missing triples of each hard answer."""
    sampled = sample_questions(graph, "test", WITNESSED, seed)
    return sampled.sets, sampled.missing


def _has(graph: KnowledgeGraph, head: int, relation: int, tail: int) -> bool:
    """Return whether the graph has a triple."""
    return tail in graph.tails_of(head, relation)


if __name__ == "__main__":
    main()
