"""Training: questions a second beside the machine's own yardstick, against gathered matrices, and on a large graph."""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import Choices, import_graph, import_named
from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph
from halfgraph.model import projection
from halfgraph.model.encoder import Encoder
from halfgraph.model.variants import architecture_of, variant_named
from halfgraph.training.batches import Batch, Batches, OnTheFly
from halfgraph.training.loop import beside_batches, tune_memory
from halfgraph.training.loss import batch_loss
from halfgraph.training.optimiser import Optimiser
from halfgraph.training.recipe import PAPER, Recipe
from halfgraph.workload.sampling import Sampler
from measure import Verdicts, best_of, interleave, race

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "fb15k-237"
# Questions a second on one and on two threads, by the number of questions of each structure (issue 4).
TARGETS = {512: {1: 25_000, 2: 40_000}, 2048: {1: 40_000, 2: 65_000}}
STEPS = 12


def main() -> None:
    """Never returns: measures and exits by the verdict."""
    verdicts = Verdicts("Training, CGA with 8 heads, d = 128, hinge with one negative and one hard negative each")
    tune_memory()
    with tempfile.TemporaryDirectory() as folder:
        graph = _graph(Path(folder))
        for threads in (1, 2):
            torch.set_num_threads(threads)
            flops = yardstick()
            for count in TARGETS:
                judge_pace(verdicts, graph.train, threads, count, flops)
        torch.set_num_threads(1)
        for count in TARGETS:
            judge_grouping(verdicts, graph.train, count)
    judge_growth(verdicts)
    verdicts.leave()


def _graph(folder: Path) -> Graph:
    """fb15k-237 where it lies beside the repository, else the demo graph."""
    if DATA.is_dir():
        return import_graph([DATA], folder / "graph", Choices())
    from halfgraph.graph.demo import baseball

    return import_named(baseball(), folder / "graph", Choices(), "demo")


def yardstick() -> float:
    """How many float32 operations a second the machine does in a product of two matrices of 1024 by 1024."""
    left, right, out = (torch.randn(1024, 1024) for _ in range(3))
    return 2 * 1024**3 / best_of(20, lambda: torch.mm(left, right, out=out))


def _plain(count: int) -> Recipe:
    """The recipe of the figures: so many questions of each structure, no neighbourhoods."""
    return replace(PAPER, one_edge=count, longer=count, neighbourhoods=0)


class Training:
    """A model in training, one step at a time."""

    def __init__(self, graph: KnowledgeGraph, recipe: Recipe) -> None:
        self.recipe = recipe
        architecture = architecture_of(variant_named("cga"))
        self.encoder = Encoder(architecture, graph, torch.Generator().manual_seed(0))
        self.batches = Batches(graph, OnTheFly(Sampler(graph, threads=1)), recipe, 0)
        sparse = {"entities.table"} if self.encoder.entities.sparse else set()
        self.optimiser = Optimiser(dict(self.encoder.named_parameters()), sparse)

    def learn(self, batch: Batch) -> None:
        """Nothing; one step, as the loop takes it."""
        with self.encoder.entities.normalised_once():
            loss: Any = batch_loss(self.encoder, batch, self.recipe)
            loss.backward()
        self.optimiser.step(self.recipe.learning_rate)


def judge_pace(verdicts: Verdicts, graph: KnowledgeGraph, threads: int, count: int, flops: float) -> None:
    """Nothing; questions a second, drawing included; with two threads the next batch is made meanwhile."""
    training = Training(graph, _plain(count))
    seconds = list(_paces(training, threads))[3:]
    questions = len(training.batches.batch(0))
    pace = questions / min(seconds)
    share = products(questions // 7, 128) / min(seconds) / flops
    what = f"{count} of each structure, {threads} thread{'s' * (threads > 1)}, questions/s against the target"
    figures = (
        f"{pace:,.0f} at best, {questions / float(np.median(seconds)):,.0f} in the median of {len(seconds)} steps, "
        f"yardstick {flops / 1e9:.0f} GFLOP/s, the step's products reach {share:.0%} of it"
    )
    verdicts.at_least(what, figures, pace / TARGETS[count][threads], 1.0)


def _paces(training: Training, threads: int) -> Iterator[float]:
    """The seconds of each step, with the making of its batch."""
    if threads == 1:
        for place in range(STEPS):
            begun = time.perf_counter()
            training.learn(training.batches.batch(place))
            yield time.perf_counter() - begun
        return
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(training.batches.batch, 0)
        for place in range(STEPS):
            begun = time.perf_counter()
            batch = waiting.result()
            waiting = pool.submit(training.batches.batch, place + 1)
            with beside_batches():
                training.learn(batch)
            yield time.perf_counter() - begun


def products(count: int, dim: int) -> int:
    """The operations of a step's matrix products: 17 projections and 4 intersections of so many, forward and back."""
    projections = 17 * count * 2 * dim * dim
    layers = 4 * count * 2 * dim * dim
    attention = (9 + 4) * count * 2 * dim * 8
    return 3 * (projections + layers + attention)


class Gathered(projection.Bilinear):
    """The same projection by gathering a matrix for each row."""

    def forward(self, vectors: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """The projected vectors."""
        return torch.einsum("nd,nde->ne", vectors, self.weight[relations])


@contextmanager
def gathering() -> Iterator[None]:
    """A time in which models gather their relation matrices."""
    choices: Any = projection.PROJECTIONS
    grouped = choices["bilinear"]
    choices["bilinear"] = Gathered
    try:
        yield
    finally:
        choices["bilinear"] = grouped


def judge_grouping(verdicts: Verdicts, graph: KnowledgeGraph, count: int) -> None:
    """Nothing; the same step with rows grouped by relation and with gathered matrices, and that both give the same."""
    recipe = _plain(count)
    grouped = Training(graph, recipe)
    with gathering():
        gathered = Training(graph, recipe)
    batch = grouped.batches.batch(0)
    with torch.no_grad():
        losses = [float(batch_loss(each.encoder, batch, recipe)) for each in (grouped, gathered)]
    what = f"{count} of each: loss of the gathered step against the grouped"
    verdicts.at_most(what, f"{losses}", abs(losses[0] - losses[1]), 1e-5)
    # Some steps in a row, as in training: the first after those of the other finds nothing of its own in the caches.
    steps = {"grouped": lambda: grouped.learn(batch), "gathered": lambda: gathered.learn(batch)}
    rounds = interleave(4, {name: partial(best_of, 4, step) for name, step in steps.items()})
    times = {name: min(seconds) for name, seconds in rounds.items()}
    figures = f"{times['gathered'] * 1e3:,.0f} ms / {times['grouped'] * 1e3:,.0f} ms, one thread"
    what = f"{count} of each: a step with gathered matrices against grouped"
    verdicts.at_least(what, figures, times["gathered"] / times["grouped"], 8.0)


def judge_growth(verdicts: Verdicts) -> None:
    """Nothing; a step of the default recipe on a graph of a million entities against one of twenty thousand."""
    trainings = {f"{size:,} entities": Training(random_graph(size), Recipe()) for size in (20_000, 1_000_000)}
    places = iter(range(1_000_000))

    def once(training: Training) -> None:
        training.learn(training.batches.batch(next(places)))

    works = {name: partial(once, training) for name, training in trainings.items()}
    for work in works.values():
        work()
    times = race(6, works)
    small, large = times.values()
    figures = ", ".join(f"{name} {seconds * 1e3:,.0f} ms" for name, seconds in times.items())
    verdicts.at_most("a step, batch included, on 50 times the entities", figures, large / small, 1.5)


def random_graph(entities: int, degree: int = 10, relations: int = 100, types: int = 10) -> KnowledgeGraph:
    """A graph of random triples."""
    generator = np.random.default_rng(0)
    count = entities * degree // 2
    ends = generator.integers(0, entities, (count, 2), dtype=np.int32)
    names = 2 * generator.integers(0, relations, count, dtype=np.int32)
    triples = np.stack([ends[:, 0], names, ends[:, 1]], axis=1)
    starts = np.linspace(0, entities, types + 1).astype(np.int64)
    return KnowledgeGraph.of(triples, EntityTypes(tuple(f"type {k}" for k in range(types)), starts), 2 * relations)


if __name__ == "__main__":
    main()
