"""The probability of ways against enumeration of all events."""

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.prediction.lineage import CERTAIN, Lineage, LinkEvent, Way, components, link_event

EVENTS = "abcdef"
sets = st.frozensets(st.sampled_from(EVENTS), max_size=3)
ways = st.builds(Way, sets, st.frozensets(sets.filter(bool), max_size=2))
lineages = st.lists(st.sampled_from((0.05, 0.3, 0.5, 0.8, 1.0)), min_size=len(EVENTS), max_size=len(EVENTS)).map(
    lambda likely: Lineage(dict(zip(EVENTS, likely, strict=True)))
)


def enumerated(lineage: Lineage, some: list[Way]) -> float:
    """The probability that any way holds, one set of events after another."""
    total = 0.0
    for case in product((True, False), repeat=len(EVENTS)):
        holds = {event for event, value in zip(EVENTS, case, strict=True) if value}
        if any(way.needs <= holds and not any(out <= holds for out in way.excludes) for way in some):
            total += prod(p if event in holds else 1 - p for event, p in lineage.probabilities.items())
    return total


@settings(max_examples=300)
@given(lineages, st.lists(ways, max_size=6))
def test_the_probability_of_ways_is_that_of_all_cases(lineage, some):
    assert lineage.probability(some) == pytest.approx(enumerated(lineage, some), abs=1e-9)


@given(lineages, st.lists(ways, max_size=6))
def test_without_case_distinctions_the_probability_stays_between_the_best_way_and_the_sum(lineage, some):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.lineage.EXPANSIONS", 0)
        likely = lineage.probability(some)
    alone = [lineage.way_probability(way) for way in some]
    assert max(alone, default=0.0) - 1e-9 <= likely <= min(1.0, sum(alone)) + 1e-9


@given(lineages, st.lists(sets.map(Way), max_size=5), sets.map(Way), st.integers(0, 3))
def test_a_further_way_never_lowers_the_probability(lineage, some, further, expansions):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.lineage.EXPANSIONS", expansions)
        assert lineage.probability([*some, further]) >= lineage.probability(some) - 1e-9


@given(lineages, ways, sets.filter(bool))
def test_a_further_exclusion_never_raises_the_probability(lineage, way, excluded):
    stricter = Way(way.needs, way.excludes | {excluded})
    assert lineage.probability([stricter]) <= lineage.probability([way]) + 1e-9


def test_the_order_and_copies_of_ways_do_not_matter():
    lineage = Lineage({"a": 0.5, "b": 0.25, "c": 0.5})
    some = [Way(frozenset("ab")), Way(frozenset("bc")), Way(frozenset("a"), frozenset({frozenset("c")}))]
    assert lineage.probability(some) == pytest.approx(lineage.probability([*reversed(some), some[0]]))


def test_no_way_has_probability_zero_and_a_way_that_needs_nothing_one():
    assert Lineage().probability([]) == 0.0
    assert Lineage({"a": 0.5}).probability([Way(frozenset("a")), CERTAIN]) == 1.0


def test_a_way_that_excludes_what_it_needs_cannot_hold():
    assert Lineage({"a": 0.5}).probability([Way(frozenset("a"), frozenset({frozenset("a")}))]) == 0.0


def test_a_link_is_one_event_in_both_directions():
    assert link_event(1, 3, 2) == link_event(2, 2, 1) == LinkEvent(2, 2, 1)


@given(st.lists(ways, max_size=8))
def test_components_share_no_event_and_cannot_be_divided(some):
    parts = components(some)
    assert sorted(map(id, some)) == sorted(id(way) for part in parts for way in part)
    events = [frozenset().union(*(way.events() for way in part)) for part in parts]
    assert sum(map(len, events)) == len(frozenset().union(*events))
    for part in parts:
        reached = {0}
        for _ in part:
            near = frozenset().union(*(part[number].events() for number in reached))
            reached |= {number for number, way in enumerate(part) if way.events() & near}
        assert len(reached) == len(part)


def test_many_ways_over_different_events_are_combined_exactly():
    lineage = Lineage({(name, number): 0.01 for name in "ab" for number in range(300)})
    some = [Way(frozenset({("a", number), ("b", number)})) for number in range(300)]
    assert lineage.probability(some) == pytest.approx(1 - (1 - 1e-4) ** 300)
