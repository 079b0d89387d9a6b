"""A small split graph with questions, and plain answers to queries in the form of query files."""

import gzip
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from halfgraph.graph.folder import Graph
from halfgraph.workload.folder import Counts, Plan, Workload, sample
from halfgraph.workload.negatives import NegativeCounts
from imported_graphs import made, triples_by_name, tsv
from oracles import Named

SMALL = Plan(Counts(60, 60, 6, 8, 5), negatives=NegativeCounts(20, 3), threads=1)


def split_graph(folder: Path, seed: int = 0) -> Graph:
    """A graph of 30 entities of two types and 4 relations, split."""
    rng = random.Random(seed)
    triples = {(f"e{rng.randrange(30)}", f"r{rng.randrange(4)}", f"e{rng.randrange(30)}") for _ in range(260)}
    types = folder / f"types{seed}.tsv"
    types.write_text("".join(f"e{number}\t{'odd' if number % 2 else 'even'}\n" for number in range(30)))
    from halfgraph.graph.splitting import Shares

    return made(folder, tsv(sorted(triples)), types_file=types, split=Shares.parse("70/12/18"))


def sampled(graph: Graph, folder: Path, plan: Plan = SMALL) -> Workload:
    """Questions of all structures, few of each."""
    return sample(graph, folder, plan)


def edges_on(graph: Graph, view: str) -> set[Named]:
    """The triples of a view by name."""
    return set(triples_by_name(graph, getattr(graph, view)))


def plain_answers(query: list[Any], edges: set[Named]) -> set[str]:
    """The answers of nested lists on a set of triples, list by list."""
    if isinstance(query[0], str):
        found, relations = {query[0]}, query[1]
    elif len(query) == 2 and all(isinstance(name, str) for name in query[1]):
        found, relations = plain_answers(query[0], edges), query[1]
    elif query[-1] == ["u"]:
        return set().union(*(plain_answers(part, edges) for part in query[:-1]))
    else:
        negated = [[part[0], part[1][:-1]] for part in query if part[1][-1] == "n"]
        parts = [part for part in query if part[1][-1] != "n"]
        return set.intersection(*(plain_answers(part, edges) for part in parts)).difference(
            *(plain_answers(part, edges) for part in negated)
        )
    for relation in relations:
        plain = relation.removesuffix("^-1")
        pairs = {(h, t) if plain == relation else (t, h) for h, r, t in edges if r == plain}
        found = {tail for head, tail in pairs if head in found}
    return found


def published(graph: Graph, queries: Iterable[list[Any]], easy_on: str, all_on: str) -> list[dict[str, Any]]:
    """Queries with their easy and hard answers on two views, those without answers left out."""
    easy_edges, all_edges = edges_on(graph, easy_on), edges_on(graph, all_on)
    lines = []
    for query in queries:
        easy, everything = plain_answers(query, easy_edges), plain_answers(query, all_edges)
        if everything:
            lines.append({"query": query, "easy": sorted(easy & everything), "hard": sorted(everything - easy)})
    return lines


def some_queries(count: int, seed: int = 0, negated: bool = False) -> list[list[Any]]:
    """Queries of all nine structures of the published files, or of the five with negation, over any relations."""
    rng = random.Random(seed)

    def path(length: int) -> list[Any]:
        relations = [f"r{rng.randrange(4)}" + rng.choice(["", "^-1"]) for _ in range(length)]
        return [f"e{rng.randrange(30)}", relations]

    def no(length: int) -> list[Any]:
        start, relations = path(length)
        return [start, [*relations, "n"]]

    def one() -> list[list[Any]]:
        hop = path(1)[1]
        if negated:
            not_one = [path(1), no(1)]
            return [not_one, [path(1), path(1), no(1)], [[path(1), no(1)], hop], [path(2), no(1)], [no(2), path(1)]]
        return [
            *(path(length) for length in (1, 2, 3)),
            [path(1), path(1)],
            [path(1), path(1), path(1)],
            [path(2), path(1)],
            [[path(1), path(1)], hop],
            [path(1), path(1), ["u"]],
            [[path(1), path(1), ["u"]], hop],
        ]

    return [query for _ in range(count) for query in one()]


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    """A file of JSON lines, gzipped if its name says so; a text stands as it is."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    raw = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines()]
