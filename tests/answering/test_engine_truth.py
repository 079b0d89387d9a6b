"""What is shown is true: known rows are the store's, and no predicted row violates what the store can decide."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from halfgraph.answering.engine import Engine
from halfgraph.answering.row_answers import binding_of, key_of
from halfgraph.answering.schema import Answers
from halfgraph.errors import HalfgraphError, UnknownName
from halfgraph.graph.store import open_store
from halfgraph.sparql.results import Binding, store_rows
from imported_graphs import short_lived
from small_engines import engine_of, with_links

EX = "http://t/"
PREFIX = f"PREFIX : <{EX}> "
NAMES = [f":e{number}" for number in range(5)]
CLASSES = [":A", ":B", ":C"]
entity = st.sampled_from(NAMES)
relation = st.sampled_from([":r", ":s"])


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Turtle in which entities have several types, literals and blank nodes, and a relation leads to literals too."""
    node = st.sampled_from([*NAMES, "_:b", "_:c"])
    triples = draw(st.lists(st.tuples(node, relation, node), min_size=8, max_size=24))
    triples += [(draw(entity), name, draw(entity)) for name in (":r", ":s")]
    triples += draw(st.lists(st.tuples(node, st.just("a"), st.sampled_from(CLASSES)), max_size=8))
    triples += draw(st.lists(st.tuples(node, st.just(":n"), st.sampled_from("0123")), max_size=6))
    triples += draw(st.lists(st.tuples(node, relation, st.sampled_from(['"e1"', '"x"@en', "7"])), max_size=2))
    return f"@prefix : <{EX}> .\n" + "".join(f"{' '.join(triple)} .\n" for triple in triples)


PATTERNS = [
    "?x {r} {a} .",
    "{a} {r} ?x .",
    "?y {r} ?x . ?y {s} {a} .",
    "{a} {r}/{s} ?x .",
    "?x {r} ?y . {a} {s} ?y .",
    "{{ ?x {r} {a} }} UNION {{ {b} {s} ?x }}",
    "?x {r}|{s} {a} .",
    "?x {r} {a} ; a {c} .",
    "?x a {c} . {a} {r} ?x .",
    "?x {r} {a} . VALUES ?x {{ {b} {d} }}",
    "?y {r} ?x . ?z {r} ?x . ?y {s} {a} . ?z {s} ?y .",
]
OF_TARGET = [  # conditions on ?x alone, which the store can decide
    "VALUES ?x {{ {a} {b} }}",
    "VALUES ?x {{ {a} }}",
    "FILTER(?x IN ({a}, {b}, {d}))",
    "FILTER(?x NOT IN ({a}, {b}))",
    "FILTER(?x = {a})",
    "FILTER(?x != {a})",
    "FILTER(?x != {a} && ISIRI(?x))",
    "FILTER(STRENDS(STR(?x), '2') || ?x = {a})",
    "?x :n ?n FILTER(?n > 1)",
    "?x :n 2 .",
    "MINUS {{ ?x {r} {a} }}",
    "FILTER NOT EXISTS {{ ?x {r} {a} }}",
    "FILTER NOT EXISTS {{ {a} {r} ?w . ?w {s} ?x }}",
    "FILTER NOT EXISTS {{ ?x :n ?m }}",
    "MINUS {{ ?x :n ?m }}",
]
OF_OTHERS = [
    "FILTER(?y != {a})",
    "VALUES ?y {{ {a} {b} }}",
    "FILTER(?y IN ({a}, {b}))",
    "FILTER(?y = {a})",
    "?x {r} ?v .",
]
CUTS = ["", "", "LIMIT 1", "LIMIT 2", "OFFSET 1", "LIMIT 2 OFFSET 1", "LIMIT 0"]


@dataclass(frozen=True)
class Question:
    """A query in parts: what is selected, its patterns, conditions on ?x, and LIMIT and OFFSET."""

    head: str
    body: str
    conditions: tuple[str, ...]
    cut: str

    @property
    def text(self) -> str:
        return f"{PREFIX} SELECT {self.head} {{ {self.body} {' '.join(self.conditions)} }} {self.cut}"


@st.composite
def questions(draw: st.DrawFn) -> Question:
    def filled(text: str) -> str:
        names = {key: draw(entity) for key in "abd"}
        return text.format(**names, r=draw(relation), s=draw(relation), c=draw(st.sampled_from(CLASSES)))

    body = [filled(draw(st.sampled_from(PATTERNS)))]
    body += [filled(text) for text in draw(st.lists(st.sampled_from(OF_OTHERS), max_size=1))]
    conditions = [filled(text) for text in draw(st.lists(st.sampled_from(OF_TARGET), max_size=2, unique=True))]
    heads = ["?x", "DISTINCT ?x", "*", *(["?x ?y", "?y ?x"] if any("?y" in part for part in body) else [])]
    return Question(draw(st.sampled_from(heads)), " ".join(body), tuple(conditions), draw(st.sampled_from(CUTS)))


def rows_of(store: Store, text: str) -> list[Binding]:
    """The rows of pyoxigraph."""
    return list(store_rows(store.query(text)))  # type: ignore[arg-type]


def asked(engine: Engine, text: str, mode: str) -> Answers | None:
    """The answers alone and in a batch, which are the same; None if the graph lacks a name."""
    (together,) = engine.ask_batch([text], top=20, mode=mode)
    if isinstance(together, HalfgraphError):
        with pytest.raises(UnknownName, match=re.escape(str(together))):
            engine.ask(text, top=20, mode=mode)
        return None
    alone = engine.ask(text, top=20, mode=mode)
    assert (together.variables, together.known) == (alone.variables, alone.known)
    assert {one.entity for one in together.predicted} == {one.entity for one in alone.predicted}
    return alone


@pytest.mark.parametrize("mode", ["embedding", "links"])
@settings(max_examples=50, deadline=None)
@given(turtle=graphs(), question=questions())
def test_known_rows_are_the_stores_and_predicted_rows_violate_nothing(mode: str, turtle: str, question: Question):
    with short_lived(turtle, "ttl") as graph:
        engine, store = with_links(engine_of(graph)), open_store(graph)
        expected = rows_of(store, question.text)
        answers = asked(engine, question.text, mode)
        if answers is None:
            assert expected == []
            return
        assert answers.rows()[1] == expected
        every = rows_of(store, f"{PREFIX} SELECT * {{ {question.body} {' '.join(question.conditions)} }}")
        known = {key_of(row, answers.variables) for row in every}
        for one in answers.predicted:
            assert key_of(binding_of(one.row), answers.variables) not in known
            if "x" in one.row:
                iri = one.row["x"].value
                assert not (question.conditions and iri.startswith("_:"))  # the store cannot test it
                for condition in question.conditions:
                    assert store.query(f"{PREFIX} ASK {{ VALUES ?x {{ <{iri}> }} {condition} }}"), condition
