"""Import and open graphs: time against the bare parser, TSV against N-Triples, peak memory, 10M triples, start-up.

Every measured step is a child process: this file again, with the name of the step.
"""

import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from measure import MB, Child, Verdicts, interleave, run_child

ROUNDS = 5
STATEMENTS, ENTITIES, RELATIONS, LITERAL_SHARE = 1_000_000, 100_000, 200, 0.1
BIG_TRIPLES, BIG_ENTITIES = 10_000_000, 1_000_000
RESOURCE, PROPERTY = "http://dbpedia.example/resource/", "http://dbpedia.example/ontology/"
LABEL, XSD = "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2001/XMLSchema#"
SYLLABLES = "al an ar ba ber bo ca cor da del den el en fa gar ha in ka la lin ma mon na or pa ra ri sa ta ton ver vi"
HALFGRAPH = str(Path(sys.executable).parent / "halfgraph")


def main() -> None:
    """Measure and print everything."""
    verdicts = Verdicts("Importing a graph and opening it")
    with tempfile.TemporaryDirectory(prefix="halfgraph-bench-") as folder:
        measure_import(Path(folder), verdicts)
        measure_opening(Path(folder) / "big", verdicts)
    measure_start(verdicts)
    verdicts.leave()


def measure_import(folder: Path, verdicts: Verdicts) -> None:
    """Compare imports of the same rows with the bare parser, and their memory with the size of the graph."""
    written = json.loads(step("write", folder).output)
    triples, table = folder / "rows.nt", folder / "rows.tsv"
    works = {
        "parse": partial(step, "parse", triples),
        "triples": partial(run_import, triples),
        "table": partial(run_import, table),
    }
    children = interleave(ROUNDS, works)
    check(folder_of(triples), written)
    judge_times(children, verdicts)
    judge_memory(children["triples"], size_of(folder_of(triples)), verdicts)


def judge_times(children: dict[str, list[Child]], verdicts: Verdicts) -> None:
    """Compare the best times."""
    best = {name: min(child.seconds for child in runs) for name, runs in children.items()}
    alone = min(float(child.output) for child in children["parse"])
    what = f"import of {STATEMENTS:,} N-Triples, the whole command, against pyoxigraph.parse alone"
    verdicts.at_most(what, f"{best['triples']:.2f} s against {alone:.2f} s", best["triples"] / alone, 4)
    what = "the same against pyoxigraph.parse with the start of its interpreter"
    verdicts.note(what, f"{best['triples']:.2f} s against {best['parse']:.2f} s", best["triples"] / best["parse"])
    what = "import of the same rows as TSV against N-Triples"
    verdicts.at_most(what, f"{best['table']:.2f} s against {best['triples']:.2f} s", best["table"] / best["triples"], 1)


def judge_memory(children: list[Child], size: int, verdicts: Verdicts) -> None:
    """Compare the smallest peak with the size of the integer arrays and names."""
    peak, bare = min(child.peak for child in children), step("nothing").peak
    what = "peak memory of the import of N-Triples against the integer arrays and names that it makes"
    verdicts.at_most(what, f"{peak / MB:.1f} MB against {size / MB:.1f} MB", peak / size, 6)
    what = "the same without what a bare interpreter takes"
    verdicts.note(what, f"{(peak - bare) / MB:.1f} MB against {size / MB:.1f} MB", (peak - bare) / size)


def measure_opening(folder: Path, verdicts: Verdicts) -> None:
    """Compare opening a large graph and reading one entity's neighbours with fixed limits."""
    name = step("make", folder).output.strip()
    opening = {how: partial(step, "open", folder, name, how) for how in ("cached", "evicted")}
    figures = {how: [json.loads(child.output) for child in runs] for how, runs in interleave(ROUNDS, opening).items()}
    seconds = {how: min(figure["seconds"] for figure in runs) for how, runs in figures.items()}
    neighbours = figures["cached"][0]["neighbours"]
    what = f"opening {BIG_TRIPLES:,} triples and reading one entity's {neighbours} neighbours by name"
    verdicts.at_most(what, f"{1000 * seconds['cached']:.1f} ms against 50 ms", seconds["cached"] / 0.05, 1)
    what = "the same with no file in the system's cache, where the disk decides"
    verdicts.note(what, f"{1000 * seconds['evicted']:.1f} ms against 50 ms", seconds["evicted"] / 0.05)
    memory, own = (min(figure[what] for figure in figures["cached"]) for what in ("memory", "own_memory"))
    what = "resident memory by then beyond a bare interpreter's, packages included"
    verdicts.at_most(what, f"{memory / MB:.1f} MB against 100 MB", memory / (100 * MB), 1)
    verdicts.note("the same without the packages", f"{own / MB:.1f} MB against 100 MB", own / (100 * MB))


def measure_start(verdicts: Verdicts) -> None:
    """Compare `import halfgraph` and `halfgraph --help` with an interpreter that imports typer."""
    commands = {
        "typer": [sys.executable, "-c", "import typer"],
        "package": [sys.executable, "-c", "import halfgraph"],
        "help": [HALFGRAPH, "--help"],
    }
    works = {name: partial(run_child, command) for name, command in commands.items()}
    best = {name: min(child.seconds for child in runs) for name, runs in interleave(ROUNDS, works).items()}
    for name, what, target in (("package", "import halfgraph", 1), ("help", "halfgraph --help", 4)):
        figures = f"{best[name]:.2f} s against {best['typer']:.2f} s"
        verdicts.at_most(f"{what} against importing typer", figures, best[name] / best["typer"], target)


def step(name: str, *arguments: str | Path) -> Child:
    """Run a step of this file as a process of its own."""
    return run_child([sys.executable, __file__, name, *map(str, arguments)])


def run_import(source: Path) -> Child:
    """Import the source, after removing the graph of an earlier import."""
    shutil.rmtree(folder_of(source), ignore_errors=True)
    return run_child([HALFGRAPH, "import", str(source), "--quiet", "--out", str(folder_of(source))])


def folder_of(source: Path) -> Path:
    """Return the graph folder of a source."""
    return source.with_name(f"{source.name}.graph")


def check(folder: Path, written: dict[str, int]) -> None:
    """Raise RuntimeError if the import did not read what was written."""
    counts = json.loads((folder / "graph.json").read_text(encoding="utf-8"))["counts"]
    imported = {what: counts["triples"]["train"] if what == "triples" else counts[what] for what in written}
    if imported != written:
        raise RuntimeError(f"{written} were written, but {imported} were imported")


def size_of(folder: Path) -> int:
    """Return the bytes of a graph's integer arrays and names, without the texts of labels."""
    return sum(path.stat().st_size for path in folder.glob("*.npy") if not path.name.endswith(".labels.npy"))


def write_rows(folder: str) -> None:
    """Write the same rows as N-Triples and as TSV, and print the numbers of distinct items."""
    triples, literals = set(), set()
    with (Path(folder) / "rows.nt").open("w") as lines, (Path(folder) / "rows.tsv").open("w") as table:
        for head, relation, tail, mark in rows(random.Random(0)):
            if mark is None:
                triples.add((head, relation, tail))
                lines.write(f"<{head}> <{relation}> <{tail}> .\n")
            else:
                literals.add((head, relation, tail, mark))
                lines.write(f'<{head}> <{relation}> "{tail}"{mark} .\n')
            table.write(f"{head}\t{relation}\t{tail}\n")
    entities = {name for head, _, tail in triples for name in (head, tail)}
    relations = {relation for _, relation, _ in triples}
    counts = {"triples": len(triples), "entities": len(entities), "relations": len(relations)}
    print(json.dumps({**counts, "literals": len(literals)}))


def rows(rng: random.Random) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield statements like DBpedia's: head, relation, tail, and the language or datatype of a literal."""
    parts = SYLLABLES.split()
    names = ["_".join("".join(rng.choices(parts, k=3)).title() for _ in range(2)) for _ in range(ENTITIES)]
    entities = [f"{RESOURCE}{name}_{number}" for number, name in enumerate(names)]
    relations = [f"{PROPERTY}{rng.choice(parts)}{rng.choice(parts).title()}{number}" for number in range(RELATIONS)]
    # A few entities and relations are very frequent.
    tails = list(accumulate(1 / (rank + 100) for rank in range(ENTITIES)))
    common = list(accumulate(1 / (rank + 5) for rank in range(RELATIONS)))
    for _ in range(STATEMENTS):
        [head], [relation] = rng.choices(entities), rng.choices(relations, cum_weights=common)
        if rng.random() < LITERAL_SHARE:
            yield head, *literal(rng, head, relation)
        else:
            yield head, relation, rng.choices(entities, cum_weights=tails)[0], None


def literal(rng: random.Random, head: str, relation: str) -> tuple[str, str, str]:
    """Return a relation, a text, and its language or datatype: labels, numbers and dates, a third each."""
    choice = rng.randrange(3)
    if choice == 0:
        return LABEL, head.removeprefix(RESOURCE).replace("_", " "), f"@{rng.choice(('en', 'de', 'fr', 'ja'))}"
    if choice == 1:
        return relation, str(rng.randrange(10**6)), f"^^<{XSD}integer>"
    return (
        relation,
        f"{rng.randrange(1800, 2025)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
        f"^^<{XSD}date>",
    )


def parse_file(path: str) -> None:
    """Print the seconds that the bare parser takes."""
    from pyoxigraph import RdfFormat, parse

    start = time.perf_counter()
    count = sum(1 for _ in parse(path=path, format=RdfFormat.N_TRIPLES))
    seconds = time.perf_counter() - start
    assert count == STATEMENTS
    print(seconds)


def make_big(folder: str) -> None:
    """Import 10M triples given as ids, and print the name of an entity."""
    import numpy as np

    from halfgraph.graph.importing import ImportOptions, make_graph
    from halfgraph.graph.statements import Statements

    def gather(statements: Statements) -> None:
        rng = np.random.default_rng(0)
        for number in range(BIG_ENTITIES):
            statements.names[f"{RESOURCE}Entity_{number}"]
        for number in range(RELATIONS):
            statements.relations[f"{PROPERTY}relation{number}"]
        ids = rng.integers((BIG_ENTITIES, RELATIONS, BIG_ENTITIES), size=(BIG_TRIPLES, 3), dtype=np.int32)
        statements.split("train").pieces.append(array("i", ids.tobytes()))
        statements.counts["read"] = BIG_TRIPLES

    graph = make_graph(gather, Path(folder), ImportOptions(types="one"), {"sources": ["benchmarks/graph_import.py"]})
    assert graph.train.triple_count > 0.99 * BIG_TRIPLES
    print(graph.entities.name(len(graph.entities) // 2))


def open_and_read(folder: str, name: str, how: str) -> None:
    """Print the time and memory of opening a graph and reading one entity."""
    bare = resident()
    from halfgraph.graph.folder import Graph

    for path in Path(folder).iterdir() if how == "evicted" else ():
        evict(path)
    imported = resident()
    start = time.perf_counter()
    graph = Graph.open(folder)
    entity = graph.entities.find(name)
    assert entity is not None
    relations, tails = graph.train.neighbours(entity)
    read = [
        (graph.relation_name(r), graph.entities.name(t))
        for r, t in zip(relations.tolist(), tails.tolist(), strict=True)
    ]
    seconds = time.perf_counter() - start
    memory = resident()
    figures = {"seconds": seconds, "neighbours": len(read), "memory": memory - bare, "own_memory": memory - imported}
    print(json.dumps(figures))


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def evict(path: Path) -> None:
    """Ask the system to drop a file from its cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


STEPS: dict[str, Any] = {
    "write": write_rows,
    "parse": parse_file,
    "nothing": lambda: None,
    "make": make_big,
    "open": open_and_read,
}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        STEPS[sys.argv[1]](*sys.argv[2:])
    else:
        main()
