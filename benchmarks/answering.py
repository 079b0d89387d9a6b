"""Asking: exact answers against the store, the time of an answer with its explanation, batches, a million entities."""

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pyoxigraph import Store

from halfgraph.answering.engine import Engine
from halfgraph.answering.schema import Answers
from halfgraph.graph.folder import Graph
from halfgraph.graph.importing import ImportOptions, import_graph, import_named
from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph
from halfgraph.graph.store import open_store
from halfgraph.model.architecture import Architecture
from halfgraph.model.complex import ComplEx
from halfgraph.model.encoder import Encoder
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.link_executor import BEAM, LinkExecutor
from halfgraph.prediction.link_features import FEATURES
from halfgraph.prediction.link_predictor import SORTS, LinkPredictor, LinkWeights
from halfgraph.prediction.predictors import LinkModels
from halfgraph.query.structures import STRUCTURES, Structure
from halfgraph.query.structures import structure_named as named
from halfgraph.query.tree import Anchor, Intersect, Project
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.rendering import to_sparql
from halfgraph.training.loop import tune_memory
from halfgraph.workload.sampling import Sampler
from measure import Verdicts, race

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "fb15k-237"
ASKED = 10_000  # queries whose exact answers are compared
WARM = 3_000  # queries before batches are timed: most templates are read by then
TIMED_BATCH = 5_000  # queries of a batch
TIMED = 400  # of three patterns
LARGE = 1_000_000  # entities
RANK = 200  # of ComplEx, as runs have it
WEIGHTS = {"cosine": 0.2, "complex": 0.5, "vote": 2.0, "further": 0.3, "neighbour_share": 0.3}


def main() -> None:
    """Never returns: measures and exits by the verdict."""
    verdicts = Verdicts("Asking, CGA with 8 heads, d = 128, two threads")
    tune_memory()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        graph = _graph(Path(folder))
        encoder = Encoder(Architecture(), graph.train, torch.Generator().manual_seed(0))
        index = EmbeddingIndex.of(encoder)
        engine = Engine(graph, index, models=_models(graph, index))
        judge_exactness(verdicts, engine)
        judge_latency(verdicts, engine, "embedding", median=10, most=30)
        judge_latency(verdicts, engine, "links", median=10, most=25)
        judge_batches(verdicts, engine, "embedding", STRUCTURES, least=2_000)
        judge_batches(verdicts, engine, "links", [named("1p"), named("2p"), named("2i")], least=1_000)
        judge_beam(verdicts, engine)
    judge_size(verdicts)
    verdicts.leave()


def _models(graph: Graph, index: EmbeddingIndex) -> LinkModels:
    """Link models as large as those of a run, with weights made by hand: time does not depend on them."""
    generator = torch.Generator().manual_seed(0)
    model = ComplEx.new(graph.train.entity_count, graph.train.relation_count, RANK, generator)
    weights = tuple(WEIGHTS.get(name, 0.0) for name in FEATURES)
    models = LinkModels(model, LinkWeights((weights,) * SORTS, bias=2.0), missing=graph.train.triple_count // 10)
    prepared = LinkPredictor(index, model, graph.whole, models.weights).prepare(lambda _: None)
    return replace(models, prepared=prepared, prepared_triples=graph.whole.triple_count)


def _graph(folder: Path) -> Graph:
    """fb15k-237 where it lies beside the repository, else the demo graph: 14,541 or 20,512 entities."""
    if DATA.is_dir():
        return import_graph([DATA], folder / "graph", ImportOptions())
    from halfgraph.graph.demo import baseball

    return import_named(baseball(), folder / "graph", ImportOptions(), "demo")


def texts(graph: Graph, each: int, structures: Iterable[Structure] = STRUCTURES) -> list[str]:
    """Queries of some structures, sampled from the training triples."""
    sampler = Sampler(graph.train, threads=2)
    drawn = [sampler.draw(one, each, 7, negatives=False, hard_negatives=False).questions for one in structures]
    return [to_sparql(some.query(row), graph) for some in drawn for row in range(len(some))]


def judge_exactness(verdicts: Verdicts, engine: Engine) -> None:
    """Check that every answer of the store comes first, for queries asked one by one and in batches."""
    asked = texts(engine.graph, -(-ASKED // len(STRUCTURES)))[:ASKED]
    store = open_store(engine.graph)
    right = 0
    for first in range(0, len(asked), 1000):
        some = asked[first : first + 1000]
        for text, found in zip(some, engine.ask_batch(some, top=1, mode="embedding"), strict=True):
            assert isinstance(found, Answers), found
            right += {one.entity for one in found.known} == _plain(store, text, engine.graph)
    alone = asked[:: max(1, len(asked) // 500)]
    for text in alone:
        found = engine.ask(text, top=1, explain=False)
        right += {one.entity for one in found.known} == _plain(store, text, engine.graph)
    count = len(asked) + len(alone)
    verdicts.at_least("exact answers complete and first", f"{right:,} of {count:,} queries", right / count, 1.0)


def _plain(store: Store, text: str, graph: Graph) -> set[str]:
    """Answers of pyoxigraph."""
    options = {"base_iri": graph.namer.base, "prefixes": dict(Prefixes.of(graph).namespaces)}
    return {row[0].value for row in store.query(text, **options)}  # type: ignore[arg-type, union-attr]


def judge_latency(verdicts: Verdicts, engine: Engine, mode: str, *, median: float, most: float) -> None:
    """Measure the latency of an answer with its explanation, for queries not asked before."""
    asked = texts(engine.graph, TIMED // 2, [one for one in STRUCTURES if one.relation_count == 3])
    order = np.random.default_rng(0).permutation(len(asked))
    for place in order[:100]:
        engine.ask(asked[place], mode=mode)
    times = _times(engine, [asked[place] for place in order[100 : 100 + TIMED]], mode)
    _judge(verdicts, f"an answer with its explanation, 3 patterns, {mode}", times, median=median, most=most)


def _times(engine: Engine, asked: Sequence[str], mode: str) -> list[float]:
    """Milliseconds of each query."""
    times = []
    for text in asked:
        start = time.perf_counter()
        engine.ask(text, mode=mode)
        times.append(1000 * (time.perf_counter() - start))
    return times


def _judge(verdicts: Verdicts, what: str, times: Sequence[float], *, median: float, most: float) -> None:
    middle, high = np.median(times), np.quantile(times, 0.95)
    verdicts.at_most(f"{what}, median", f"{middle:.1f} ms", float(middle / median), 1.0)
    verdicts.at_most(f"{what}, 95th percentile", f"{high:.1f} ms", float(high / most), 1.0)


def judge_batches(
    verdicts: Verdicts, engine: Engine, mode: str, structures: Sequence[Structure], *, least: float
) -> None:
    """Measure the queries per second of the batch interface, for texts not seen before, against one by one."""
    asked = texts(engine.graph, (WARM + TIMED_BATCH) // len(structures) + 1, structures)
    np.random.default_rng(1).shuffle(asked)
    engine.ask_batch(asked[:WARM], mode=mode)
    asked = asked[WARM : WARM + TIMED_BATCH]
    start = time.perf_counter()
    found = engine.ask_batch(asked, mode=mode)
    pace = len(asked) / (time.perf_counter() - start)
    some = range(0, len(asked), len(asked) // 100)
    start = time.perf_counter()
    alone = {row: engine.ask(asked[row], mode=mode, explain=False) for row in some}
    slower = (time.perf_counter() - start) * pace / len(alone)
    verdicts.at_least(f"queries a second in batches, {mode}", f"{pace:,.0f}", pace / least, 1.0)
    verdicts.note(f"time of a query alone against one of a batch, {mode}", f"{1000 * slower / pace:.1f} ms", slower)
    same = sum(_same(found[row], answers) for row, answers in alone.items())
    verdicts.at_least(f"answers of a batch as alone, {mode}", f"{same} of {len(alone)}", same / len(alone), 1.0)


def _same(one: object, other: Answers) -> bool:
    """Whether answers have the same known rows, and predictions of the same scores (in the mode embedding, nearly)."""
    assert isinstance(one, Answers), one
    scores = zip(one.predicted, other.predicted, strict=False)
    near = 1e-6 if one.mode == "links" else 2e-4
    as_many = len(one.predicted) == len(other.predicted)
    return one.known == other.known and as_many and all(abs(a.score - b.score) <= near for a, b in scores)


def judge_beam(verdicts: Verdicts, engine: Engine) -> None:
    """Compare the time of a wide beam with that of the default one, on chains."""
    sampler, links = Sampler(engine.graph.train, threads=2), engine.predictors.links
    some = sampler.draw(named("3p"), 40, 7, negatives=False, hard_negatives=False).questions
    queries = [some.query(row) for row in range(len(some))]

    def run(beam: int) -> None:
        links._rows.clear()
        executor = LinkExecutor(links, engine.predictors.types, beam)
        for query in queries:
            executor.scores(query)

    run(BEAM)
    times = race(3, {"wide": lambda: run(2 * BEAM), "default": lambda: run(BEAM)})
    figures = f"{1000 * times['wide'] / len(queries):.1f} and {1000 * times['default'] / len(queries):.1f} ms"
    verdicts.note(f"a 3p query with a beam of {2 * BEAM} against {BEAM}", figures, times["wide"] / times["default"])


def judge_size(verdicts: Verdicts) -> None:
    """Measure embeddings, likely entities and best answers on a graph of a million entities.

    Exact answers come from the store and are not measured here: loading a million triples into it takes minutes.
    """
    rng = np.random.default_rng(0)
    triples = np.stack(
        [rng.integers(LARGE, size=LARGE), 2 * rng.integers(20, size=LARGE), rng.integers(LARGE, size=LARGE)], 1
    )
    types = EntityTypes(("thing",), np.array([0, LARGE], dtype=np.int64))
    graph = KnowledgeGraph.of(triples.astype(np.int32), types, 40)
    index = EmbeddingIndex.of(Encoder(Architecture(), graph, torch.Generator().manual_seed(0)))
    none = np.empty(0, np.int32)
    times = []
    for _ in range(40):
        a, b = (int(number) for number in rng.integers(LARGE, size=2))
        inner = Intersect((Project(Anchor(a), 3), Project(Anchor(b), 5)))
        target = Project(inner, 8)
        start = time.perf_counter()
        vectors = index.encoder.encode([inner, target])
        for vector, count in zip(vectors, (3, 10), strict=True):
            index.nearest(vector.detach(), count, among=slice(0, LARGE), without=none)
        times.append(1000 * (time.perf_counter() - start))
    high = float(np.quantile(times[5:], 0.95))
    verdicts.at_most("a million entities, 95th percentile", f"{high:.0f} ms", high / 250, 1.0)


if __name__ == "__main__":
    main()
