"""Example queries: from a file beside the run or the graph, or made from the graph."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from halfgraph.answering.engine import Engine
from halfgraph.errors import InputError
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.exact import Exact
from halfgraph.query.structures import inter, path
from halfgraph.query.tree import Query
from halfgraph.serving.schema import Example
from halfgraph.sparql.read import read
from halfgraph.sparql.rendering import to_sparql

FILE = "examples.json"
COUNT = 6
MOST_ANSWERS = 50  # of an example: one with more is too broad
# The training view lacks a triple for each of the first five, such as Koufax's award.
DEMO = {
    "Which left-handers of the 1963 Dodgers won the Cy Young Award?": (
        "SELECT ?player WHERE {\n  ?player :throws :Left_hand .\n  ?player :won_award :Cy_Young_Award .\n"
        "  ?player :played_for :Los_Angeles_Dodgers_1963 .\n}"
    ),
    "With which teams did Curt Schilling win the World Series?": (
        "SELECT ?team WHERE {\n  :Curt_Schilling :played_for ?team .\n  ?team :won :World_Series .\n}"
    ),
    "Which Yankees of 2003 were born in Panama?": (
        "SELECT ?player WHERE {\n  ?player :played_for :New_York_Yankees_2003 .\n  ?player :born_in ?city .\n"
        "  ?city :in_country :Panama .\n}"
    ),
    "Which Baltimore Orioles of 1966 were ever Most Valuable Player?": (
        "SELECT ?player WHERE {\n  ?player :played_for :Baltimore_Orioles_1966 .\n"
        "  ?player :won_award :Most_Valuable_Player .\n}"
    ),
    "Which left-handers in the Hall of Fame played for Oakland?": (
        "SELECT DISTINCT ?player WHERE {\n  ?player :in_hall_of_fame_as :Player .\n  ?player :throws :Left_hand .\n"
        "  ?player :played_for ?season .\n  ?season :season_of :Oakland_Athletics .\n}"
    ),
    "Which players in the Hall of Fame were born in Mobile, Alabama?": (
        "SELECT ?player WHERE {\n  ?player :born_in :Mobile_Alabama .\n  ?player :in_hall_of_fame_as :Player .\n}"
    ),
}


def examples(engine: Engine, folders: Sequence[str]) -> list[Example]:
    """Return example queries: from the first folder with a file of them, of the demo graph, or made now."""
    file = next((path for folder in folders if (path := Path(folder) / FILE).is_file()), None)
    if file is not None:
        return from_file(file)
    is_demo = engine.graph.description.get("provenance", {}).get("sources") == ["demo"]
    return [*(_demo(engine) if is_demo else _generate(engine.graph, engine.graph.view(engine.view)))]


def from_file(path: Path) -> list[Example]:
    """Read the examples of a file."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))["examples"]
        return [Example(str(one["title"]), str(one["query"]), bool(one["missing"])) for one in given]
    except (OSError, ValueError, TypeError, KeyError) as error:
        advice = 'Write {"examples": [{"title": "...", "query": "...", "missing": false}]}.'
        raise InputError(f"cannot be read: {error!r}", path=path.name, advice=advice) from error


def _demo(engine: Engine) -> Iterator[Example]:
    known = engine.graph.view(engine.view)
    for title, text in DEMO.items():
        yield _example(title, text, read(text, engine.graph).query, engine.graph, known)


def _example(title: str, text: str, query: Query, graph: Graph, known: KnowledgeGraph) -> Example:
    """An example, with whether the whole graph has more answers than the known triples."""
    every, exact = (Exact(edges).answers(query) for edges in (graph.whole, known))
    return Example(title, text, len(every) > len(exact))


def _generate(graph: Graph, known: KnowledgeGraph) -> Iterator[Example]:
    """Make queries of different relations from held-out triples, or from any if none were held out."""
    triples = (graph.test if graph.has_split else graph.train).triples()
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
