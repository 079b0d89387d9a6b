"""Training: questions per second, the gain of the native grouped product, and a step on a large graph."""

import statistics
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
from halfgraph.graph.importing import ImportOptions, import_graph, import_named
from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph
from halfgraph.model import intersection, projection
from halfgraph.model._grouped import plain_grouped_matmul
from halfgraph.model.encoder import Encoder
from halfgraph.settings import training_settings
from halfgraph.training.batches import Batch, Batches, OnTheFly
from halfgraph.training.loop import spare_thread, tune_memory
from halfgraph.training.loss import batch_loss
from halfgraph.training.optimiser import Optimiser
from halfgraph.training.recipe import PAPER, Recipe
from halfgraph.workload.sampling import Sampler
from measure import Verdicts, best_of, interleave, race

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "fb15k-237"
# Questions per second on one and on two threads, by the number of questions of each structure (issue 4).
TARGETS = {512: {1: 25_000, 2: 40_000}, 2048: {1: 40_000, 2: 65_000}}
STEPS = 12


def main() -> None:
    """Measure, and exit with the verdict."""
    verdicts = Verdicts("Training, CGA with 8 heads, d = 128, hinge with one negative and one hard negative each")
    tune_memory()
    with tempfile.TemporaryDirectory() as folder:
        graph = _graph(Path(folder))
        for threads in (1, 2):
            torch.set_num_threads(threads)
            flops = machine_flops()
            for count in TARGETS:
                judge_speed(verdicts, graph.train, threads, count, flops)
            judge_native_product(verdicts, graph.train, threads)
        torch.set_num_threads(1)
        for count in TARGETS:
            judge_grouping(verdicts, graph.train, count)
    judge_growth(verdicts)
    verdicts.leave()


def _graph(folder: Path) -> Graph:
    """Import fb15k-237 if it lies beside the repository, else the demo graph."""
    if DATA.is_dir():
        return import_graph([DATA], folder / "graph", ImportOptions())
    from halfgraph.graph.demo import baseball

    return import_named(baseball(), folder / "graph", ImportOptions(), "demo")


def machine_flops() -> float:
    """Return the float32 operations per second of this machine in a product of two 1024 x 1024 matrices."""
    left, right, out = (torch.randn(1024, 1024) for _ in range(3))
    return 2 * 1024**3 / best_of(20, lambda: torch.mm(left, right, out=out))


def _plain(count: int) -> Recipe:
    """Return the paper's recipe with `count` questions of each structure and no neighbourhoods."""
    return replace(PAPER, one_edge=count, longer=count, neighbourhoods=0)


class Training:
    """A model in training, one step at a time; without a recipe the default one."""

    def __init__(self, graph: KnowledgeGraph, recipe: Recipe | None = None) -> None:
        settings = training_settings("cga", "default" if recipe is None else "paper", {})
        self.recipe = recipe or settings.recipe
        self.encoder = Encoder(settings.architecture, graph, torch.Generator().manual_seed(0))
        self.batches = Batches(graph, OnTheFly(Sampler(graph, threads=1)), self.recipe, 0)
        sparse = {"entities.table"} if self.encoder.entities.sparse else set()
        self.optimiser = Optimiser(dict(self.encoder.named_parameters()), sparse)

    def learn(self, batch: Batch) -> None:
        """Take one step, as the loop does."""
        with self.encoder.entities.normalised_once():
            loss: Any = batch_loss(self.encoder, batch, self.recipe)
            loss.backward()
        self.optimiser.step(self.recipe.learning_rate)


def judge_speed(verdicts: Verdicts, graph: KnowledgeGraph, threads: int, count: int, flops: float) -> None:
    """Measure questions per second, sampling included; with two threads the next batch is sampled meanwhile."""
    training = Training(graph, _plain(count))
    seconds = list(_step_times(training, threads))[3:]
    questions = len(training.batches.batch(0))
    speed = questions / min(seconds)
    share = products(questions // 7, 128) / min(seconds) / flops
    what = f"{count} of each structure, {threads} thread{'s' * (threads > 1)}, questions/s against the target"
    figures = (
        f"{speed:,.0f} at best, {questions / float(np.median(seconds)):,.0f} in the median of {len(seconds)} steps, "
        f"machine {flops / 1e9:.0f} GFLOP/s, of which the step's products reach {share:.0%}"
    )
    verdicts.at_least(what, figures, speed / TARGETS[count][threads], 1.0)


def _step_times(training: Training, threads: int) -> Iterator[float]:
    """Yield the seconds of each step, its batch included."""
    if threads == 1:
        for step in range(STEPS):
            started = time.perf_counter()
            training.learn(training.batches.batch(step))
            yield time.perf_counter() - started
        return
    with ThreadPoolExecutor(1) as pool:
        upcoming = pool.submit(training.batches.batch, 0)
        for step in range(STEPS):
            started = time.perf_counter()
            batch = upcoming.result()
            upcoming = pool.submit(training.batches.batch, step + 1)
            with spare_thread():
                training.learn(batch)
            yield time.perf_counter() - started


@contextmanager
def plain_products() -> Iterator[None]:
    """Use the plain twin of the native grouped product inside the block."""
    modules: Any = (projection, intersection)
    native = modules[0].grouped_matmul
    for module in modules:
        module.grouped_matmul = plain_grouped_matmul
    try:
        yield
    finally:
        for module in modules:
            module.grouped_matmul = native


def judge_native_product(verdicts: Verdicts, graph: KnowledgeGraph, threads: int) -> None:
    """Compare a step of the default recipe with the native grouped product and with its plain twin, taking turns.

    The native product stays as long as it saves 15 % or more (HOUSE.md). CPU time, because the machine may be shared.
    """
    native, plain = Training(graph), Training(graph)
    batches = [native.batches.batch(step) for step in range(4)]

    def cpu_seconds(training: Training, batch: Batch) -> float:
        started = time.process_time()
        training.learn(batch)
        return time.process_time() - started

    times: dict[str, list[float]] = {"native": [], "plain": []}
    for round_number in range(STEPS):
        batch = batches[round_number % len(batches)]
        times["native"].append(cpu_seconds(native, batch))
        with plain_products():
            times["plain"].append(cpu_seconds(plain, batch))
    medians = {name: statistics.median(seconds[2:]) for name, seconds in times.items()}
    figures = ", ".join(f"{name} {seconds * 1e3:,.0f} ms" for name, seconds in medians.items())
    what = f"CPU time of a default step without the native grouped product, {threads} thread{'s' * (threads > 1)}"
    verdicts.at_least(what, figures, medians["plain"] / medians["native"], 1.15)


def products(count: int, dim: int) -> int:
    """Return the operations of a step's matrix products: 17 projections and 4 intersections, forward and backward."""
    projections = 17 * count * 2 * dim * dim
    layers = 4 * count * 2 * dim * dim
    attention = (9 + 4) * count * 2 * dim * 8
    return 3 * (projections + layers + attention)


class Gathered(projection.Bilinear):
    """The bilinear projection by gathering a matrix for each row."""

    def forward(self, vectors: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """Project the vectors."""
        return torch.einsum("nd,nde->ne", vectors, self.weight[relations])


@contextmanager
def gathering() -> Iterator[None]:
    """Let new models gather their relation matrices inside the block."""
    choices: Any = projection.PROJECTIONS
    grouped = choices["bilinear"]
    choices["bilinear"] = Gathered
    try:
        yield
    finally:
        choices["bilinear"] = grouped


def judge_grouping(verdicts: Verdicts, graph: KnowledgeGraph, count: int) -> None:
    """Compare a step with rows grouped by relation and one with gathered matrices, and their losses."""
    recipe = _plain(count)
    grouped = Training(graph, recipe)
    with gathering():
        gathered = Training(graph, recipe)
    batch = grouped.batches.batch(0)
    with torch.no_grad():
        losses = [float(batch_loss(each.encoder, batch, recipe)) for each in (grouped, gathered)]
    what = f"{count} of each: loss of the gathered step against the grouped"
    verdicts.at_most(what, f"{losses}", abs(losses[0] - losses[1]), 1e-5)
    # Several steps in a row, as in training: the first one after a switch finds cold caches.
    steps = {"grouped": lambda: grouped.learn(batch), "gathered": lambda: gathered.learn(batch)}
    rounds = interleave(4, {name: partial(best_of, 4, step) for name, step in steps.items()})
    times = {name: min(seconds) for name, seconds in rounds.items()}
    figures = f"{times['gathered'] * 1e3:,.0f} ms / {times['grouped'] * 1e3:,.0f} ms, one thread"
    what = f"{count} of each: a step with gathered matrices against grouped"
    verdicts.at_least(what, figures, times["gathered"] / times["grouped"], 8.0)


def judge_growth(verdicts: Verdicts) -> None:
    """Compare a step of the default recipe on a million entities with one on twenty thousand."""
    trainings = {f"{size:,} entities": Training(random_graph(size)) for size in (20_000, 1_000_000)}
    steps = iter(range(1_000_000))

    def step(training: Training) -> None:
        training.learn(training.batches.batch(next(steps)))

    works = {name: partial(step, training) for name, training in trainings.items()}
    for work in works.values():
        work()
    times = race(6, works)
    small, large = times.values()
    figures = ", ".join(f"{name} {seconds * 1e3:,.0f} ms" for name, seconds in times.items())
    verdicts.at_most("a step, batch included, on 50 times the entities", figures, large / small, 1.5)


def random_graph(entities: int, degree: int = 10, relations: int = 100, types: int = 10) -> KnowledgeGraph:
    """Return a graph of random triples."""
    generator = np.random.default_rng(0)
    count = entities * degree // 2
    ends = generator.integers(0, entities, (count, 2), dtype=np.int32)
    names = 2 * generator.integers(0, relations, count, dtype=np.int32)
    triples = np.stack([ends[:, 0], names, ends[:, 1]], axis=1)
    starts = np.linspace(0, entities, types + 1).astype(np.int64)
    return KnowledgeGraph.of(triples, EntityTypes(tuple(f"type {k}" for k in range(types)), starts), 2 * relations)


if __name__ == "__main__":
    main()
