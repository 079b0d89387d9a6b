"""Real SPARQL queries on graphs that fit them: predicted rows compared with those of all possible worlds.

Draws texts from the collections given as arguments (JSON lines with `id` and `query`, gzipped), or from those of
../shared/data. Exits with 1 if a prediction contradicts the possible worlds.
"""

import argparse
import gzip
import json
import multiprocessing
import resource
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from sparql_comparison import compare

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "sparql-queries"
SECONDS = 60  # of processor time for a text
COLUMNS = ("texts run", "with predictions", "rows compared", "too long", "contradictions")


def main() -> None:
    """Print what was compared in each collection, and all contradictions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(FOLDER.glob("*.jsonl.gz")))
    parser.add_argument("--count", type=int, default=500, help="number of texts that are run (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of texts and of the graphs (default: 0)")
    parser.add_argument("--only", metavar="ID", nargs="+", help="run some texts by their ids, and show them")
    arguments = parser.parse_args()
    if not arguments.files:
        sys.exit(f"{FOLDER} has no collections; pass files.")
    torch.set_num_threads(1)
    counts = {path.name.partition(".")[0]: Counter[str]() for path in arguments.files}
    for name, text in chosen(arguments.files, arguments.seed, arguments.only):
        if sum(count["texts run"] for count in counts.values()) >= arguments.count:
            break
        add(counts[name], text, arguments.seed, is_shown=arguments.only is not None)
    print_table(counts)
    sys.exit(any(count["contradictions"] for count in counts.values()))


def chosen(paths: list[Path], seed: int, only: list[str] | None) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield texts in a random order, one of each collection in turn, with the name of their collection."""
    shuffled = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts = [text for text in map(json.loads, lines) if only is None or text["id"] in only]
        Random(seed).shuffle(texts)
        shuffled.append([(path.name.partition(".")[0], text) for text in texts])
    for number in range(max(map(len, shuffled))):
        yield from (texts[number] for texts in shuffled if number < len(texts))


def add(count: Counter[str], text: dict[str, str], seed: int, *, is_shown: bool) -> None:
    """Run a text in a process of its own, and count what was compared."""
    outcome = in_process(text["query"], seed)
    if is_shown:
        print(text["query"], outcome, sep="\n")
    if outcome is None:
        return
    count["texts run"] += 1
    count["with predictions"] += outcome.get("is_predicted", False)
    count["rows compared"] += outcome.get("rows", 0)
    count["too long"] += outcome.get("too long", 0)
    count["contradictions"] += bool(outcome.get("wrong"))
    for wrong in outcome.get("wrong", [])[:3]:
        print(f"{text['id']}: {wrong}", flush=True)


def in_process(query: str, seed: int) -> dict[str, Any] | None:
    """Return what was compared for a text, None if it cannot be predicted."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(query, seed, sender))
    process.start()
    sender.close()
    try:
        outcome: dict[str, Any] | None = receiver.recv()
    except EOFError:
        outcome = {"too long": 1}
    process.join()
    return outcome


def run(query: str, seed: int, sender: Connection) -> None:
    """Compare a text within the limit of processor time."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        found = compare(query, seed)
        sender.send(None if found is None else vars(found))
    except Exception:
        sender.send({"wrong": [traceback.format_exc()]})


def print_table(counts: dict[str, Counter[str]]) -> None:
    """Print a line for each collection and one for all."""
    counts = {**counts, "all": sum(counts.values(), Counter[str]())}
    print("collection", *COLUMNS, sep=" | ")
    for name, count in counts.items():
        print(name, *(count[column] for column in COLUMNS), sep=" | ")


if __name__ == "__main__":
    main()
