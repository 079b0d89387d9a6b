"""Sampling and exact answers: questions per second, held-out questions, Exact against SPARQL, reading SPARQL.

Runs on dbpedia-21k if ../shared/data has it, else on the demo graph, or on the graph folder given as argument.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyoxigraph import NamedNode, QuerySolutions, Store

from halfgraph.graph.demo import CATALOGUE
from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions, import_graph, import_named
from halfgraph.graph.splitting import Shares
from halfgraph.graph.store import quads
from halfgraph.query.exact import Exact
from halfgraph.query.structures import STRUCTURES, Structure
from halfgraph.sparql.read import read
from halfgraph.sparql.rendering import to_sparql
from halfgraph.sparql.templates import Templates
from halfgraph.workload.folder import Counts, Plan, sample, warm_up
from halfgraph.workload.negatives import NegativeCounts
from halfgraph.workload.sampling import Questions, Sampler
from measure import Verdicts, best_of, race, seconds_of

ROUNDS = 3
TRAINING = 300_000  # questions of a round, spread evenly over the structures of two and three edges
HELD_OUT = 110_000
ASKED = 100  # random queries of each structure of three edges
TEXTS, AGAIN = 100, 2_000
DBPEDIA = Path(__file__).resolve().parents[2] / "shared" / "data" / "dbpedia-21k"


def main(given: Sequence[str]) -> None:
    """Measure and print all figures."""
    with tempfile.TemporaryDirectory(prefix="halfgraph-bench-") as folder:
        graph = Graph.open(given[0]) if given else make_graph(Path(folder) / "graph")
        size = f"{len(graph.entities):,} entities and {graph.whole.triple_count:,} triples"
        verdicts = Verdicts(f"Sampling and asking on {size}")
        warm_up()
        measure_training(graph, verdicts)
        measure_held_out(graph, Path(folder) / "workload", verdicts)
        queries = random_queries(graph)
        measure_exact(graph, queries, verdicts)
        measure_reading(graph, queries, verdicts)
    verdicts.leave()


def make_graph(folder: Path) -> Graph:
    """Return the graph to sample from."""
    if DBPEDIA.is_dir():
        return import_graph([DBPEDIA], folder, ImportOptions())
    return import_named(CATALOGUE["demo"](), folder, ImportOptions(split=Shares.parse("90/1/9")), "demo")


def measure_training(graph: Graph, verdicts: Verdicts) -> None:
    """Measure training questions per second, without and with a negative and a hard negative."""
    sampler = Sampler(graph.train)
    structures = [structure for structure in STRUCTURES if structure.relation_count > 1]
    intersections = [structure for structure in structures if structure.has_intersection]
    draws = {
        "without negatives": (partial(draw_all, sampler, structures, False), 200_000),
        "with a negative, and a hard one where paths meet": (partial(draw_all, sampler, structures, True), None),
        "with a negative and a hard one each, where paths meet": (
            partial(draw_all, sampler, intersections, True),
            50_000,
        ),
    }
    times = race(ROUNDS, {name: work for name, (work, _) in draws.items()})
    for name, (_, target) in draws.items():
        speed = TRAINING / times[name]
        against = target or 50_000
        judge: Callable[..., None] = verdicts.note if target is None else partial(verdicts.at_least, target=1)
        judge(f"training questions {name}", f"{speed:,.0f}/s against {against:,}/s", speed / against)


def draw_all(sampler: Sampler, structures: list[Structure], negatives: bool) -> None:
    """Draw a round of training questions."""
    shares = np.diff(np.linspace(0, TRAINING, len(structures) + 1).astype(int)).tolist()
    for structure, count in zip(structures, shares, strict=True):
        drawn = sampler.draw(structure, count, 0, negatives=negatives, hard_negatives=negatives)
        if len(drawn.questions) != count:
            raise RuntimeError(f"only {len(drawn.questions):,} of {count:,} questions of {structure.name}")


def measure_held_out(graph: Graph, folder: Path, verdicts: Verdicts) -> None:
    """Measure the time to sample and write held-out test questions with all their answers."""
    each = -(-HELD_OUT // len(STRUCTURES))
    plan = Plan(Counts(0, 0, 0, each, 0), structures=STRUCTURES, negatives=NegativeCounts(1_000, 10))
    start = time.perf_counter()
    made = sample(graph, folder, plan)
    seconds = time.perf_counter() - start
    count = sum(made.description["questions"]["test"].values())
    what = f"{count:,} test questions with all answers, and for one in ten up to 1,000 negatives and hard ones"
    verdicts.at_most(what, f"{seconds:.1f} s against 300 s", seconds / 300 * HELD_OUT / count, 1)


def random_queries(graph: Graph) -> list[Questions]:
    """Draw random queries of each structure of three edges on the whole graph."""
    sampler = Sampler(graph.whole)
    structures = [structure for structure in STRUCTURES if structure.relation_count == 3]
    return [
        sampler.draw(structure, ASKED, 1, negatives=False, hard_negatives=False).questions for structure in structures
    ]


def measure_exact(graph: Graph, queries: list[Questions], verdicts: Verdicts) -> None:
    """Time answer sets against pyoxigraph on the same queries, and compare the answers."""
    store = Store()
    store.bulk_extend(quads(graph))
    exact = Exact(graph.whole)
    batches = [questions.batch() for questions in queries]
    single = [questions.query(row) for questions in queries for row in range(len(questions))]
    texts = [to_sparql(query, graph) for query in single]
    check(graph, store, texts, [exact.answers(query) for query in single])
    times = race(
        ROUNDS,
        {
            "sparql": lambda: [sum(1 for _ in solutions(store, text)) for text in texts],
            "batch": lambda: [exact.answer_sets(batch, threads=1) for batch in batches],
            "threads": lambda: [exact.answer_sets(batch) for batch in batches],
            "single": lambda: [exact.answers(query) for query in single],
        },
    )
    answers = sum(len(exact.answers(query)) for query in single)
    ways = {
        "batch": f"answer sets of {len(single)} random 3-edge queries ({answers:,} answers) in batches, on one thread,",
        "threads": "the same on all cores,",
        "single": "the same one by one, trees to programs included,",
    }
    for way, what in ways.items():
        figures = f"{1000 * times[way]:.1f} ms against {1000 * times['sparql']:.1f} ms"
        judge: Callable[..., None] = partial(verdicts.at_least, target=20) if way == "batch" else verdicts.note
        judge(f"{what} against pyoxigraph's SPARQL", figures, times["sparql"] / times[way])


def solutions(store: Store, text: str) -> QuerySolutions:
    """Return pyoxigraph's solutions."""
    result = store.query(text)
    assert isinstance(result, QuerySolutions)
    return result


def check(graph: Graph, store: Store, texts: list[str], exact_answers: list[Any]) -> None:
    """Raise RuntimeError if Exact and pyoxigraph do not agree."""
    for text, own in zip(texts, exact_answers, strict=True):
        store_answers = {term.value for row in solutions(store, text) if isinstance(term := row[0], NamedNode)}
        if {graph.namer.iri(graph.entities.name(int(entity))) for entity in own} != store_answers:
            raise RuntimeError(f"Exact has {len(own)} answers and pyoxigraph {len(store_answers)}: {text}")


def measure_reading(graph: Graph, queries: list[Questions], verdicts: Verdicts) -> None:
    """Time reading SPARQL of three patterns, for new texts and for a cached one."""
    texts = [to_sparql(questions.query(row), graph) for row in range(1, ASKED) for questions in queries][:TEXTS]
    start = time.perf_counter()
    read(to_sparql(queries[0].query(0), graph), graph)
    first = time.perf_counter() - start
    cold = [seconds_of(partial(read, text, graph)) for text in texts]
    templates = Templates(graph)  # as the engine reads
    templates.read(texts[-1])
    again = best_of(ROUNDS, lambda: [templates.read(texts[-1]) for _ in range(AGAIN)]) / AGAIN
    median, worst = float(np.median(cold)), max(cold)
    what = f"reading SPARQL of three patterns, the median of {len(texts)} texts not seen before"
    verdicts.at_most(what, f"{1000 * median:.2f} ms against 10 ms", median / 0.01, 1)
    verdicts.note("the slowest of them", f"{1000 * worst:.2f} ms against 10 ms", worst / 0.01)
    verdicts.note(
        "the first in a process, with the parser's start", f"{1000 * first:.0f} ms against 10 ms", first / 0.01
    )
    verdicts.at_most("a text seen before", f"{1e6 * again:.2f} µs against 50 µs", again / 50e-6, 1)


if __name__ == "__main__":
    main(sys.argv[1:])
