"""Predicted rows against possible worlds, and the laws of their probabilities on small random graphs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfgraph.query.rows import (
    AnyRelation,
    Conjunction,
    Exclusion,
    Given,
    LinkPattern,
    Path,
    PathChoice,
    PathRepeat,
    PathSequence,
    Pattern,
    Relation,
    RowQuery,
    TypePattern,
    pattern_variables,
)
from possible_worlds import SmallWorld, any_row_probability, row_probabilities

CLASSES = ("http://c/A", "http://c/B")
EVERY = 100_000  # rows


@st.composite
def worlds(draw, most_entities: int = 5, most_uncertain: int = 5) -> SmallWorld:
    entities, relations = draw(st.integers(2, most_entities)), draw(st.integers(1, 3))
    entity = st.integers(0, entities - 1)
    link = st.tuples(entity, st.integers(0, relations - 1).map(lambda number: 2 * number), entity)
    fact = st.one_of(link, link, link, st.tuples(entity, st.sampled_from(CLASSES)))
    facts = draw(st.lists(fact, min_size=1, max_size=10, unique=True))
    uncertain = facts[: draw(st.integers(1, most_uncertain))]
    likely = [draw(st.sampled_from((0.1, 0.25, 0.5, 0.9))) for _ in uncertain]
    known = frozenset(facts[len(uncertain) :])
    return SmallWorld(entities, 2 * relations, CLASSES, known, dict(zip(uncertain, likely, strict=True)))


def paths(world: SmallWorld, deep: bool = True) -> st.SearchStrategy[Path]:
    relation = st.integers(0, world.relations - 1).map(Relation)
    other = st.builds(AnyRelation, st.none(), st.frozensets(st.sampled_from([0, 2]), max_size=1), st.booleans())
    simple = st.one_of(relation, relation, relation, other)
    if not deep:
        return relation
    parts = st.lists(simple, min_size=2, max_size=2).map(tuple)
    longer = st.one_of(parts.map(PathSequence), parts.map(PathChoice))
    repeat = st.sampled_from(((0, 1), (0, None), (1, None)))
    repeated = st.builds(lambda path, often: PathRepeat(path, *often), st.one_of(simple, longer), repeat)
    return st.one_of(relation, relation, relation, other, longer, repeated)


VARIABLES = ("x", "y", "z")


@st.composite
def patterns(draw, world: SmallWorld, names: tuple[str, ...] = VARIABLES) -> Pattern:
    entity = st.integers(0, world.entities - 1)
    term = st.one_of(st.sampled_from(names), st.sampled_from(names), entity)
    sort = draw(st.sampled_from(["link"] * 4 + ["path"] * 2 + ["any", "class", "class of", "given"]))
    if sort == "link":
        return LinkPattern(draw(term), draw(paths(world, deep=False)), draw(term))
    if sort == "path":
        return LinkPattern(draw(term), draw(paths(world)), draw(term))
    if sort == "any":
        path = AnyRelation(draw(st.sampled_from(("p", "q"))), draw(st.frozensets(st.just(0))), draw(st.booleans()))
        return LinkPattern(draw(term), path, draw(term))
    if sort == "class":
        return TypePattern(draw(term), draw(st.sampled_from(CLASSES)))
    if sort == "class of":
        return TypePattern(draw(term), None, "c")
    variables = tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)))
    row = st.tuples(*(st.one_of(entity, entity, st.none()) for _ in variables))
    return Given(variables, tuple(draw(st.lists(row, min_size=1, max_size=3))))


@st.composite
def conjunctions(draw, world: SmallWorld, most: int = 3, exclusions: bool = True) -> Conjunction:
    own = draw(st.lists(patterns(world), min_size=1, max_size=most))
    if exclusions and draw(st.integers(0, 3)) == 0:
        inner = st.lists(patterns(world, ("x", "y", "w")), min_size=1, max_size=2).map(tuple)
        own.append(Exclusion(tuple(draw(st.lists(inner, min_size=1, max_size=2)))))
    return tuple(own)


@st.composite
def queries(draw, world: SmallWorld, **choices) -> RowQuery:
    parts = tuple(draw(st.lists(conjunctions(world, **choices), min_size=1, max_size=2)))
    names = sorted({name for part in parts for pattern in part for name in pattern_variables(pattern)} - {"w"})
    selected = draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if names else []
    return RowQuery(parts, tuple(selected))


@st.composite
def worlds_and_queries(draw, most_uncertain: int = 5, **choices) -> tuple[SmallWorld, RowQuery]:
    world = draw(worlds(most_uncertain=most_uncertain))
    return world, draw(queries(world, **choices))


def check_by_worlds(world: SmallWorld, query: RowQuery) -> None:
    expected = row_probabilities(world, query)
    result = world.executor().rows(query, EVERY)
    found = {row.values: row.probability for row in result.rows}
    assert len(found) == len(result.rows)
    assert found == pytest.approx(expected, abs=1e-6)


@settings(max_examples=400)
@given(worlds_and_queries())
def test_the_probability_of_a_row_is_that_of_all_possible_worlds(given_):
    check_by_worlds(*given_)


@settings(max_examples=100)
@given(worlds_and_queries())
def test_the_probability_of_any_row_is_that_of_all_possible_worlds(given_):
    world, query = given_
    assert world.executor().any_probability(query) == pytest.approx(any_row_probability(world, query), abs=1e-6)
