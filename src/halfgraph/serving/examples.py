"""Questions to begin with: those of a file beside the run or the graph, or some made from the graph."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halfgraph.answering.engine import Engine
from halfgraph.errors import InputError
from halfgraph.graph.folder import Graph
from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.exact import Exact
from halfgraph.query.rendering import to_sparql
from halfgraph.query.structures import inter, path
from halfgraph.query.tree import Query
from halfgraph.sparql.reading import read

FILE = "examples.json"
FIELDS = {"title": str, "query": str, "missing": bool}
COUNT = 6
MOST_ANSWERS = 50  # of an example: one with more asks for too little
# On the training view a triple that answers each of the first five is missing: Koufax's award, and so on.
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


def examples(engine: Engine, folders: Sequence[str]) -> list[dict[str, Any]]:
    """Some questions with their titles, and whether a triple that answers them is missing from what is served."""
    file = next((one for folder in folders if (one := Path(folder) / FILE).is_file()), None)
    if file is not None:
        return from_file(file)
    is_demo = engine.graph.description.get("provenance", {}).get("sources") == ["demo"]
    return [*(_demo(engine) if is_demo else _made(engine.graph, getattr(engine.graph, engine.view)))]


def from_file(path: Path) -> list[dict[str, Any]]:
    """The questions of a file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return [{name: convert(one[name]) for name, convert in FIELDS.items()} for one in found["examples"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        advice = 'Write {"examples": [{"title": "...", "query": "...", "missing": false}]}.'
        raise InputError(f"cannot be read: {error!r}", path=path.name, advice=advice) from error


def _demo(engine: Engine) -> Iterator[dict[str, Any]]:
    """The questions about the demo graph."""
    known = getattr(engine.graph, engine.view)
    for title, text in DEMO.items():
        yield _example(title, text, read(text, engine.graph).query, engine.graph, known)


def _example(title: str, text: str, query: Query, graph: Graph, known: KnowledgeGraph) -> dict[str, Any]:
    """A question; something is missing where all triples give more answers than those that are known."""
    every, found = (Exact(edges).answers(query) for edges in (graph.whole, known))
    return {"title": title, "query": text, "missing": len(every) > len(found)}


def _made(graph: Graph, known: KnowledgeGraph) -> Iterator[dict[str, Any]]:
    """Questions made from held-out triples, or from any where none were held out, of different relations."""
    triples = (graph.test if graph.has_split else graph.train).triples()
    triples = np.random.default_rng(0).permutation(triples)  # the same ones each time
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
            title = " and ".join(_said(graph, anchor, edge) for anchor, edge in parts)
            yield _example(title, to_sparql(query, graph), query, graph, known)


def _parts(graph: Graph, head: int, relation: int, tail: int, *, pair: bool) -> list[tuple[int, int]]:
    """Anchors with the relations that lead from them to the head: by a triple, and by another one for a pair."""
    parts = [(tail, relation ^ 1)]
    relations, tails = graph.train.neighbours(head)
    others = np.flatnonzero((relations >> 1) != relation >> 1)
    if pair and len(others):
        rarest = others[np.argmin(graph.whole.degrees()[tails[others]])]
        parts.append((int(tails[rarest]), int(relations[rarest]) ^ 1))
    return parts


def _said(graph: Graph, anchor: int, edge: int) -> str:
    """A pattern by its labels, with a question mark for the answer."""
    name, relation = graph.entities.label(anchor), graph.relations.label(edge // 2)
    return f"? {relation} {name}" if edge & 1 else f"{name} {relation} ?"
