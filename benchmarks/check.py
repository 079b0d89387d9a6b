"""How many of 1 % planted wrong triples `halfgraph check` lists first, against their share among all triples.

The data are CoDEx-S, if `../shared/data/codex-s` is there, else the demo graph. A wrong triple is one of the graph with
another object of the same relation, so that no type gives it away. The run is trained for two minutes.
"""

import gzip
import sys
import tempfile
from pathlib import Path

import numpy as np

import halfgraph
from halfgraph.graph.demo import CATALOGUE
from halfgraph.prediction.unlikely_triples import unlikely_triples
from measure import Verdicts

ROOT = Path(__file__).resolve().parent.parent
CODEX = ROOT.parent / "shared" / "data" / "codex-s"
SHARE = 0.01  # of planted triples
MINUTES = 2.0
TARGET = 5.0  # times as many as at random, among the first 100
Triple = tuple[str, str, str]


def read() -> list[Triple]:
    """Return the triples of CoDEx-S, or of the demo graph."""
    if not CODEX.is_dir():
        return list(dict.fromkeys(CATALOGUE["demo"]().triples))
    triples = list[Triple]()
    for split in ("train", "valid", "test"):
        with gzip.open(CODEX / f"{split}.tsv.gz", "rt", encoding="utf-8") as file:
            rows = (line.rstrip("\n").split("\t") for line in file)
            triples += [(head, relation, tail) for head, relation, tail in rows]
    return triples


def plant(triples: list[Triple], seed: int) -> set[Triple]:
    """Return new triples: old ones with another object of the same relation."""
    rng, known = np.random.default_rng(seed), set(triples)
    objects: dict[str, list[str]] = {}
    for _, relation, tail in triples:
        objects.setdefault(relation, []).append(tail)
    distinct = {relation: sorted(set(tails)) for relation, tails in objects.items()}
    wrong: set[Triple] = set()
    while len(wrong) < SHARE * len(triples):
        head, relation, _ = triples[rng.integers(len(triples))]
        triple = head, relation, distinct[relation][rng.integers(len(distinct[relation]))]
        if triple not in known:
            wrong.add(triple)
    return wrong


def main(folder: Path, minutes: float) -> None:
    """Plant, train, check and compare."""
    triples = read()
    wrong = plant(triples, seed=1)  # the order of the list was chosen on seed 0
    rows = sorted([*triples, *wrong])
    (folder / "planted.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    graph = halfgraph.Graph.read(folder / "planted.tsv", folder / "graph", split="90/5/5")
    engine = halfgraph.train(graph, folder / "run", minutes=minutes)
    found = unlikely_triples(engine.predictors.links, graph.train, limit=1_000)
    name = graph.entities.name
    listed = [(name(one.head), graph.relations.name(one.relation // 2), name(one.tail)) for one in found]
    random = len(wrong) / len(rows)
    verdicts = Verdicts(f"Check: {len(wrong):,} wrong triples planted among {len(rows):,}")
    for count in (100, 1_000):
        precision = sum(triple in wrong for triple in listed[:count]) / count
        figures = f"{precision:.1%} of the first {count:,} are planted, {random:.1%} at random"
        if count == 100:
            verdicts.at_least(f"precision at {count}", figures, precision / random, TARGET)
        else:
            verdicts.note(f"precision at {count}", figures, precision / random)
    verdicts.leave()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="halfgraph-check-") as made:
        main(Path(made), float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES)
