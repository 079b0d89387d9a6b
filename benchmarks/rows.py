"""Predicted rows against simple baselines on held-out triples, and the time that they take.

    python benchmarks/rows.py quality RUN --graph GRAPH
    python benchmarks/rows.py speed RUN --graph GRAPH
    python benchmarks/rows.py before RUN --graph GRAPH --old CHECKOUT

`quality` and `speed` need a run of a graph with test triples, `before` one of the demo graph that both versions can
open, and a checkout of the earlier version. Exits with 3 if a target is missed.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import versions
from halfgraph.answering.engine import Engine
from halfgraph.api import TrainedRun, open_run
from halfgraph.evaluation.bootstrap import interval
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.predictors import Predictors
from halfgraph.prediction.row_executor import RowExecutor
from measure import Verdicts
from row_questions import FORMS, SHAPES, Drawing, Ids, Question, Rows, Triples, held_out

BEST = 200  # rows that are ranked
CROSS = 2_000  # a row of the baseline is looked at if the product of its columns' ranks is at most this
SAMPLES = 2_000  # of the bootstrap
OVERALL = 1e-6  # weight of the frequency among all triples, where that among triples of the types is equal
SLOWER, MILLISECONDS, AGGREGATE = 1.1, 60.0, 3.0  # targets
WARM, TIMED = 40, 100  # queries before the clock starts, and timed
Figures = NDArray[np.float64]


@dataclass(frozen=True)
class Ranking:
    """Reciprocal ranks of right rows; other true rows are left out."""

    whole: Triples

    def reciprocal(self, question: Question, rows: Rows, scores: Figures, own: float) -> float:
        """Return the reciprocal rank of a score among the rows that are not true; 0 beyond the best ones."""
        near = scores >= own
        false = scores[near][~self.whole.hold(question, rows[near])]
        rank = 1 + (false > own).sum() + (false == own).sum() / 2
        return float(1 / rank) if rank <= BEST else 0.0

    def predicted(self, question: Question, executor: RowExecutor) -> float:
        """Rank the right row among the rows that the executor returns; 0 if it is not among them."""
        found = {row.values: row.probability for row in executor.rows(question.query, BEST).rows}
        if question.row not in found:
            return 0.0
        return self.reciprocal(question, np.array(list(found)), np.array(list(found.values())), found[question.row])


@dataclass(frozen=True)
class Marginals:
    """Baseline for joint rows: the product of each column's probability, asked for alone."""

    executor: LinkExecutor
    ranking: Ranking

    def __call__(self, question: Question) -> float:
        scores = [self.executor.scores(query).astype(np.float64) for query in question.marginals()]
        best = [np.argsort(-own, kind="stable")[:CROSS] for own in scores]
        places = cross(len(scores))
        rows = np.stack([own[places[:, n]] for n, own in enumerate(best)], axis=1)
        return self.ranking.reciprocal(
            question, rows, _joint(scores, rows), _joint(scores, np.array([question.row]))[0]
        )


def _joint(scores: Sequence[Figures], rows: Rows) -> Figures:
    product: Figures = np.prod([own[rows[:, n]] for n, own in enumerate(scores)], axis=0)
    return product


def cross(columns: int) -> Rows:
    """Return the places of rows in sorted columns that can be among the best: their product is small."""
    if columns == 1:
        return np.arange(CROSS)[:, None]
    rest = cross(columns - 1)
    sizes = (rest + 1).prod(axis=1)
    parts = [rest[sizes * (place + 1) <= CROSS] for place in range(CROSS)]
    return np.concatenate([np.insert(part, 0, place, axis=1) for place, part in enumerate(parts)])


@dataclass(frozen=True)
class Frequency:
    """Baseline for variable relations: how often triples of such types have the relation, and this tail."""

    known: KnowledgeGraph
    ranking: Ranking

    @cached_property
    def triples(self) -> Rows:
        return self.known.triples().astype(np.int64)

    @cached_property
    def types(self) -> Rows:
        """Types of the head and tail of each triple."""
        return self.known.types.of(self.triples[:, [0, 2]])

    @cached_property
    def pairs(self) -> tuple[Rows, Ids]:
        """Distinct pairs of relation and tail, and which of them each triple has."""
        pairs, numbers = np.unique(self.triples[:, 1:], axis=0, return_inverse=True)
        return pairs, numbers.reshape(-1)

    def __call__(self, question: Question) -> float:
        ((head, _, tail),) = question.links
        like = self.types[:, 0] == self.known.types.of(int(head))
        if isinstance(tail, int):
            like &= self.types[:, 1] == self.known.types.of(tail)
            rows, numbers = np.arange(0, self.known.relation_count, 2)[:, None], self.triples[:, 1] // 2
        else:
            rows, numbers = self.pairs
        counts = np.bincount(numbers[like], minlength=len(rows)) + OVERALL * np.bincount(numbers, minlength=len(rows))
        own = counts[(rows == question.row).all(axis=1)]
        return self.ranking.reciprocal(question, rows, counts, own[0]) if len(own) and own[0] else 0.0


def judge_quality(verdicts: Verdicts, run: TrainedRun, forms: Sequence[str], count: int, seed: int) -> None:
    """Compare the mean reciprocal rank of predicted rows with that of the baselines, form by form."""
    predictors = Predictors.load(run.path, run.encoder, run.graph, "train")
    known, ranking = Triples.of(run.graph.train), Ranking(Triples.of(run.graph.whole))
    missing = held_out(run.graph.test, known)
    executor = RowExecutor(predictors.executor, lambda *_: np.empty(0, np.float32), list)
    for form in forms:
        rng = np.random.default_rng([seed, FORMS.index(form)])
        questions = Drawing(missing, run.graph.whole, rng).questions(form, count)
        baseline = Marginals(predictors.executor, ranking) if form in SHAPES else Frequency(run.graph.train, ranking)
        ours = np.array([ranking.predicted(question, executor) for question in questions])
        theirs = np.array([baseline(question) for question in questions])
        _judge_form(verdicts, form, ours, theirs, seed)


def _judge_form(verdicts: Verdicts, form: str, ours: Figures, theirs: Figures, seed: int) -> None:
    """Judge the means, and print the interval of their difference and the share of right rows that are found."""
    draws = np.random.default_rng(seed).integers(0, len(ours), (SAMPLES, len(ours)))
    low, high = interval((ours - theirs)[draws].mean(axis=1)) or (0.0, 0.0)
    means = f"MRR {ours.mean():.3f}, baseline {theirs.mean():.3f}"
    shares = f"found {(ours > 0).mean():.2f}, {(theirs > 0).mean():.2f}"
    figures = f"{len(ours)} questions, {means}, difference {low:+.3f} to {high:+.3f}, {shares}"
    verdicts.at_least(form, figures, ours.mean() / max(theirs.mean(), 1e-9), 1.0)


# Time


def text_of(graph: Graph, question: Question, projection: str, rest: str = "") -> str:
    """Write a question in SPARQL."""
    iris = Iris(graph)
    terms = [(iris.term(head), iris.relation(relation), iris.term(tail)) for head, relation, tail in question.links]
    return f"SELECT {projection} {{ {' . '.join(map(' '.join, terms))} }} {rest}"


@dataclass(frozen=True)
class Iris:
    """Names of a graph as SPARQL terms."""

    graph: Graph

    def term(self, term: int | str) -> str:
        return f"?{term}" if isinstance(term, str) else f"<{self.graph.entities.name(term)}>"

    def relation(self, relation: int | None) -> str:
        return "?p" if relation is None else f"<{self.graph.relations.name(relation // 2)}>"


def milliseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def judge_speed(verdicts: Verdicts, engine: Engine, seed: int) -> None:
    """Judge the CPU time of queries with two variables, and of an aggregate over the same patterns."""
    graph = engine.graph
    drawing = Drawing(held_out(graph.test, Triples.of(graph.train)), graph.whole, np.random.default_rng(seed))
    forms = [form for form, shape in SHAPES.items() if len(shape) == 2]
    drawn = [drawing.questions(form, WARM + TIMED) for form in forms]
    questions = list(chain.from_iterable(zip(*drawn, strict=True)))
    plain = [text_of(graph, question, "?x ?y") for question in questions]
    counts = [text_of(graph, question, "?x (COUNT(?y) AS ?n)", "GROUP BY ?x") for question in questions]
    for text in (*plain[:WARM], *counts[:WARM]):
        engine.ask(text)
    times: dict[str, list[float]] = {"new": [], "again": [], "count": []}
    for text, count in islice(zip(plain, counts, strict=True), WARM, WARM + TIMED):
        times["new"].append(milliseconds(partial(engine.ask, text)))
        times["again"].append(milliseconds(partial(engine.ask, text)))
        times["count"].append(milliseconds(partial(engine.ask, count)))
    for name, what in (("new", "two variables, each text asked once"), ("again", "two variables, asked again")):
        middle, high = np.quantile(times[name], [0.5, 0.95])
        verdicts.at_most(what, f"p50 {middle:.0f} ms, p95 {high:.0f} ms of CPU", high / MILLISECONDS, 1.0)
    ratios = np.array(times["count"]) / np.array(times["again"])
    figures = f"p50 {np.median(times['count']):.0f} ms, ratios {ratios.min():.2f} to {ratios.max():.2f}"
    verdicts.at_most("COUNT with GROUP BY / the rows that it counts", figures, float(np.median(ratios)), AGGREGATE)


def judge_before(verdicts: Verdicts, run: Path, graph: Path, old: Path, rounds: int) -> None:
    """Judge the CPU time of queries with one variable against an earlier version."""
    here = Path(__file__).resolve().parents[1]
    processes = [versions.Version(source, graph.resolve(), run.resolve()) for source in (old, here)]
    before, after = (partial(process.seconds, "answers", 10) for process in processes)
    found = versions.ratios(rounds, before, after)
    for process in processes:
        process.process.terminate()
    spread = f"{min(found):.2f} to {max(found):.2f}"
    verdicts.at_most("one variable, new / old", spread, statistics.median(found), SLOWER)


def main() -> None:
    """Never returns: measures and exits by the verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "speed", "before"))
    parser.add_argument("run", type=Path)
    parser.add_argument("--graph", type=Path, required=True)
    parser.add_argument("--old", type=Path, help="checkout of an earlier version")
    parser.add_argument("--questions", type=int, default=200, help="of each form")
    parser.add_argument("--forms", nargs="*", default=FORMS, choices=FORMS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=11)
    given = parser.parse_args()
    torch.set_num_threads(1)
    verdicts = Verdicts(f"Rows: {given.what} on {given.graph.name}, seed {given.seed}")
    if given.what == "before":
        judge_before(verdicts, given.run, given.graph, given.old, given.rounds)
        verdicts.leave()
    run = open_run(given.run, Graph.open(given.graph))
    if given.what == "quality":
        judge_quality(verdicts, run, given.forms, given.questions, given.seed)
    else:
        judge_speed(verdicts, run.engine(), given.seed)
    verdicts.leave()


if __name__ == "__main__":
    main()
