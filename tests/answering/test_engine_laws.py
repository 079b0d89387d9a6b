"""The laws of confidence, through the engine: one triple has one probability, whatever query it came from."""

from dataclasses import dataclass
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.answering.engine import Engine
from halfgraph.answering.explanation_schema import Witness, status
from halfgraph.answering.proposals import missing
from halfgraph.answering.schema import certainty
from imported_graphs import short_lived
from small_engines import engine_of, with_links

FEW = settings(max_examples=15)
PEOPLE = [f"p{number}" for number in range(7)]
CITIES = [f"c{number}" for number in range(3)]
EVERY = 20  # more than there are entities
DIGITS = 1.5e-4  # confidences are rounded to four digits


@dataclass(frozen=True)
class World:
    """Triples of people who know each other and live in cities, and some names to ask about."""

    triples: tuple[tuple[str, str, str], ...]
    person: str
    city: str
    other: str

    @property
    def tsv(self) -> str:
        return "".join("\t".join(triple) + "\n" for triple in self.triples)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    person, city = st.sampled_from(PEOPLE), st.sampled_from(CITIES)
    lives = [(name, "lives", draw(city)) for name in PEOPLE]
    lives += [(PEOPLE[number], "lives", name) for number, name in enumerate(CITIES)]  # all names are there
    knows = draw(st.lists(st.tuples(person, st.just("knows"), person), min_size=3, max_size=15))
    knows = [(one, relation, other) for one, relation, other in knows if one != other]
    knows += [(PEOPLE[0], "knows", PEOPLE[1])]
    return World(tuple(dict.fromkeys([*lives, *knows])), draw(person), draw(city), draw(city))


def confidences(engine: Engine, body: str) -> dict[str, float]:
    """The confidence of every predicted answer ?x."""
    answers = engine.ask(f"SELECT ?x {{ {body} }}", top=EVERY, explain=False)
    shown = [one.confidence for one in answers.predicted]
    assert shown == sorted(shown, reverse=True), "rows are in the order of the number shown"
    assert all(0 < own < 1 for own in shown)
    assert not {certainty(one) for one in answers.predicted} & {"0%", "100%"}
    return {one.label: one.confidence for one in answers.predicted}


def with_known(engine: Engine, body: str) -> dict[str, float]:
    """The same, and 1 for known answers."""
    answers = engine.ask(f"SELECT ?x {{ {body} }}", top=1, explain=False)
    return {**confidences(engine, body), **{one.label: 1.0 for one in answers.known}}


def witness_of(engine: Engine, body: str, entity: str) -> Witness:
    return engine.explain(f"SELECT ?x {{ {body} }}", entity)


def lacking(witness: Witness) -> list[float]:
    return [triple.confidence for triple in witness.triples if not triple.known]


@FEW
@given(worlds())
def test_the_same_triple_has_the_same_confidence_wherever_it_is_shown(world):
    with short_lived(world.tsv) as graph:
        engine = with_links(engine_of(graph))
        there = {name: confidences(engine, f"<{name}> <lives> ?x") for name in PEOPLE}
        back = {name: confidences(engine, f"?x <lives> <{name}>") for name in CITIES}
        for person in PEOPLE:
            for city in CITIES:
                assert (city in there[person]) == (person in back[city])
                if city in there[person]:
                    assert there[person][city] == pytest.approx(back[city][person], abs=DIGITS)
        bodies = [
            f"<{world.person}> <knows>/<lives> ?x",
            f"?x <lives> <{world.city}> ; <knows> ?y . ?y <lives> <{world.other}>",
            f"{{ ?x <lives> <{world.city}> }} UNION {{ <{world.person}> <knows> ?x }}",
            f"?x <lives> <{world.city}> . FILTER NOT EXISTS {{ ?x <knows> <{world.person}> }}",
        ]
        for body in bodies:
            witnesses = [witness_of(engine, body, entity) for entity in [*confidences(engine, body)][:3]]
            shown = [triple for witness in witnesses for triple in witness.triples]
            proposed = missing(witnesses)
            for triple in [*shown, *proposed]:
                ends = triple.subject.label, triple.predicate.label, triple.object.label
                known = getattr(triple, "known", False)  # a proposed triple is missing
                assert known == (ends in world.triples)
                if ends[1] == "lives" and ends[0] in PEOPLE and not known:
                    alone = there[ends[0]].get(ends[2])
                    assert alone is None or triple.confidence == pytest.approx(alone, abs=DIGITS)
            for triple in shown:
                assert ("0%" in status(triple).split()) is ("100%" in status(triple).split()) is False


@FEW
@given(worlds())
def test_an_answer_with_one_way_is_as_sure_as_the_triples_that_it_lacks(world):
    body = f"?x <lives> <{world.city}> ; <knows> <{world.person}>"
    with short_lived(world.tsv) as graph:
        engine = with_links(engine_of(graph))
        for entity, confidence in confidences(engine, body).items():
            lacks = lacking(witness_of(engine, body, entity))
            assert lacks
            if len(lacks) == 1:
                assert confidence == lacks[0]
            assert confidence == pytest.approx(prod(lacks), abs=DIGITS)


@FEW
@given(worlds())
def test_a_condition_never_raises_and_a_union_never_lowers_a_confidence(world):
    first, second = f"?x <lives> <{world.city}>", f"?x <knows>/<lives> <{world.other}>"
    with short_lived(world.tsv) as graph:
        engine = with_links(engine_of(graph))
        parts = [with_known(engine, part) for part in (first, second)]
        both = with_known(engine, f"{first} . {second}")
        either = with_known(engine, f"{{ {first} }} UNION {{ {second} }}")
        without = with_known(engine, f"{first} FILTER NOT EXISTS {{ {second} }}")
        typed = with_known(engine, f"{first} . ?x <knows> ?y")
        for entity in {*parts[0], *parts[1]}:
            own = [part.get(entity, 0.0) for part in parts]
            assert both.get(entity, 0.0) <= min(own) + DIGITS
            assert either.get(entity, 0.0) >= max(own) - DIGITS
            assert both.get(entity, 0.0) == pytest.approx(prod(own), abs=DIGITS)
            assert either.get(entity, 0.0) == pytest.approx(1 - (1 - own[0]) * (1 - own[1]), abs=DIGITS)
            assert without.get(entity, 0.0) <= own[0] + DIGITS
            assert typed.get(entity, 0.0) <= own[0] + DIGITS


@FEW
@given(worlds())
def test_a_filter_leaves_the_confidences_of_other_rows_unchanged(world):
    body = f"?x <lives> <{world.city}> . ?y <knows> ?x"
    with short_lived(world.tsv) as graph:
        engine = with_links(engine_of(graph))
        before = confidences(engine, body)
        after = confidences(engine, f"{body} FILTER(?x != <{world.person}>)")
        assert after == {entity: own for entity, own in before.items() if entity != world.person}


@FEW
@given(worlds())
def test_a_relation_without_loops_predicts_none(world):
    with short_lived(world.tsv) as graph:
        engine = with_links(engine_of(graph))
        for relation in ("knows", "lives"):
            assert world.person not in confidences(engine, f"<{world.person}> <{relation}> ?x")
        assert len(confidences(engine, f"<{world.person}> <knows> ?x")) > 0


@FEW
@given(worlds())
def test_a_pattern_stated_twice_is_as_sure_as_once(world):
    body = f"?x <lives> <{world.city}>"
    with short_lived(world.tsv) as graph:
        engine = with_links(engine_of(graph))
        once = confidences(engine, body)
        assert confidences(engine, f"{body} . {body}") == once
        assert confidences(engine, f"{{ {body} }} UNION {{ {body} }}") == once
        further, same = (f"?x <knows> ?{name} . ?{name} <lives> <{world.city}>" for name in "yz")
        assert confidences(engine, f"{further} . {same}") == confidences(engine, further)


@FEW
@given(worlds(), st.floats(0.05, 0.5))
def test_if_more_triples_are_missing_every_prediction_is_likelier(world, share):
    with short_lived(world.tsv) as graph:
        engine = with_links(engine_of(graph))
        few, many = (Engine(graph, engine.index, models=engine.models, missing=own) for own in (share, (1 + share) / 2))
        before, after = (confidences(own, f"?x <lives> <{world.city}>") for own in (few, many))
        assert set(before) == set(after)
        assert all(after[entity] >= own for entity, own in before.items())
        assert after != before
