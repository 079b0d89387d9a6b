"""Example queries: from a file beside the run or the graph, or made from the graph."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from halfgraph.answering.engine import Engine
from halfgraph.answering.exact_engine import ExactEngine
from halfgraph.errors import FolderError, InputError
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.graph.manifest import read_json
from halfgraph.query.exact import Exact
from halfgraph.query.structures import inter, path
from halfgraph.query.tree import Query
from halfgraph.serving.schema import Example
from halfgraph.sparql.read import read
from halfgraph.sparql.rendering import to_sparql

FILE = "examples.json"
COUNT = 6
MOST_ANSWERS = 50  # of an example: one with more is too broad
DEMO = Path(__file__).parent / "demo.rq"  # the training view lacks a triple for each of the first five


def examples(engine: Engine | ExactEngine, folders: Sequence[str]) -> list[Example]:
    """Return example queries: from the first folder with a file of them, of the demo graph, or made now."""
    file = next((path for folder in folders if os.path.lexists(path := Path(folder) / FILE)), None)
    if file is not None:
        return from_file(file)
    graph, known = engine.graph, engine.known
    if graph.description.get("provenance", {}).get("sources") != ["demo"]:
        return list(_generate(graph, known))
    return [_example(title, text, read(text, graph).query, graph, known) for title, text in demo_queries().items()]


def from_file(path: Path) -> list[Example]:
    """Read the examples of a file."""
    try:
        given = read_json(path, "", listed=False)["examples"]
        return [Example(str(one["title"]), str(one["query"]), bool(one["missing"])) for one in given]
    except (FolderError, TypeError, KeyError) as error:
        advice = 'Write {"examples": [{"title": "...", "query": "...", "missing": false}]}.'
        problem = error.problem if isinstance(error, FolderError) else f"cannot be read: {error!r}"
        raise InputError(problem, path=path.name, advice=advice) from error


def demo_queries() -> dict[str, str]:
    """Return the queries about the demo graph by their titles."""
    blocks = DEMO.read_text(encoding="utf-8").strip().split("\n\n")
    return {title.removeprefix("# "): text for title, _, text in (block.partition("\n") for block in blocks)}


def _example(title: str, text: str, query: Query, graph: Graph, known: KnowledgeGraph) -> Example:
    """An example, with whether the whole graph has more answers than the known triples."""
    every, exact = (Exact(edges).answers(query) for edges in (graph.whole, known))
    return Example(title, text, len(every) > len(exact))


def _generate(graph: Graph, known: KnowledgeGraph) -> Iterator[Example]:
    """Make queries of different relations from held-out triples, or from any if none were held out."""
    views = (graph.test, graph.valid, graph.train)
    triples = next((view for view in views if view.triple_count), graph.train).triples()
    triples = np.random.default_rng(0).permutation(triples)  # the same examples each time
    seen: set[int] = set()
    made = 0
    for head, relation, tail in triples.tolist():
        if relation in seen or made == COUNT:
            continue
        parts = _parts(graph, int(head), int(relation), int(tail), pair=made % 2 == 0)
        query = inter(*(path(anchor, edge) for anchor, edge in parts))
        nameless = any(graph.entities.name(anchor).startswith("_:") for anchor, _ in parts)
        if not nameless and len(Exact(graph.whole).answers(query)) <= MOST_ANSWERS:
            seen.add(relation)
            made += 1
            title = " and ".join(_title(graph, anchor, edge) for anchor, edge in parts)
            yield _example(title, to_sparql(query, graph), query, graph, known)


def _parts(graph: Graph, head: int, relation: int, tail: int, *, pair: bool) -> list[tuple[int, int]]:
    """Anchors and the relations from them to the head of a triple: one, or two for a pair."""
    parts = [(tail, relation ^ 1)]
    relations, tails = graph.train.neighbours(head)
    others = np.flatnonzero((relations >> 1) != relation >> 1)
    if pair and len(others):
        rarest = others[np.argmin(graph.whole.degrees()[tails[others]])]
        parts.append((int(tails[rarest]), int(relations[rarest]) ^ 1))
    return parts


def _title(graph: Graph, anchor: int, edge: int) -> str:
    """A pattern by its labels, with a question mark for the answer."""
    name, relation = graph.entities.label(anchor), graph.relations.label(edge // 2)
    return f"? {relation} {name}" if edge & 1 else f"{name} {relation} ?"
