"""Predicted rows against possible worlds, and the laws of their probabilities on small random graphs."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from halfgraph.prediction.row_executor import RowExecutor
from halfgraph.prediction.row_plan import plan_rows
from halfgraph.prediction.row_ways import ENUMERATED
from halfgraph.query.rows import (
    Conjunction,
    Exclusion,
    Given,
    LinkPattern,
    PathRepeat,
    Relation,
    RowQuery,
    TypePattern,
    pattern_variables,
)
from halfgraph.query.tree import Anchor, Intersect, Project, Query, edges
from possible_worlds import SmallWorld, any_row_probability, exact_rows, row_probabilities
from small_graphs import smalls
from small_links import executor_of
from small_rows import draw_conjunction, draw_pattern, draw_query, draw_world, randoms, worlds, worlds_and_queries

EVERY = 100_000  # rows
WAYS = "halfgraph.prediction.row_ways"


def found(world: SmallWorld, query: RowQuery, count: int = EVERY) -> dict:
    rows = world.executor().rows(query, count).rows
    assert len({row.values for row in rows}) == len(rows)
    return {row.values: row.probability for row in rows}


def is_enumerated(world: SmallWorld, conjunction: Conjunction, kept: set[str]) -> bool:
    """Whether there are so few values of the variables that are not selected that none is folded."""
    plan = plan_rows(conjunction, kept, {}, fold=False)
    inner = [part for pattern in plan.exclusions for part in pattern.parts]
    own = world.entities ** len(set(plan.factors) - kept) <= ENUMERATED
    return own and all(is_enumerated(world, part, set(plan.variables)) for part in inner)


@settings(max_examples=300)
@given(worlds_and_queries())
def test_the_probability_of_a_row_is_that_of_all_possible_worlds(given_):
    world, query = given_
    assume(all(is_enumerated(world, part, set(query.selected)) for part in query.conjunctions))
    assert found(world, query) == pytest.approx(row_probabilities(world, query), abs=1e-6)


@settings(max_examples=80)
@given(worlds_and_queries())
def test_the_probability_of_any_row_is_that_of_all_possible_worlds(given_):
    world, query = given_
    assume(all(is_enumerated(world, part, set()) for part in query.conjunctions))
    assert world.executor().any_probability(query) == pytest.approx(any_row_probability(world, query), abs=1e-6)


@pytest.mark.slow
@settings(max_examples=5_000)
@given(worlds_and_queries(most_uncertain=8, most=4))
def test_many_more_rows_have_the_probability_of_all_possible_worlds(given_):
    world, query = given_
    assume(all(is_enumerated(world, part, set()) for part in query.conjunctions))
    assert found(world, query) == pytest.approx(row_probabilities(world, query), abs=1e-6)
    assert world.executor().any_probability(query) == pytest.approx(any_row_probability(world, query), abs=1e-6)


@settings(max_examples=80)
@given(worlds_and_queries(), st.integers(1, 4))
def test_rows_are_unknown_and_the_best_come_first(given_, count):
    world, query = given_
    result = world.executor().rows(query, count)
    likely = [row.probability for row in result.rows]
    assert likely == sorted(likely, reverse=True)
    assert all(0 < p <= 1 for p in likely)
    assert exact_rows(world, world.known, query).isdisjoint(row.values for row in result.rows)
    best = sorted(found(world, query).values(), reverse=True)
    assert likely == pytest.approx(best[:count])
    for row in result.rows:
        assert all(way.needs for way in row.ways)
        assert result.lineage.probability(row.ways) == pytest.approx(row.probability)


@settings(max_examples=60)
@given(randoms)
def test_a_further_pattern_never_raises_a_probability(rng):
    world = draw_world(rng)
    query, further = draw_query(rng, world, exclusions=False), draw_pattern(rng, world)
    every = [{name for own in part for name in pattern_variables(own)} for part in query.conjunctions]
    assume(all(names.issuperset(set(pattern_variables(further)).intersection(query.selected)) for names in every))
    stricter = RowQuery(tuple((*part, further) for part in query.conjunctions), query.selected)
    before, known = found(world, query), exact_rows(world, world.known, query)
    for values, likely in found(world, stricter).items():
        assert values in known or likely <= before.get(values, 0.0) + 1e-6


@settings(max_examples=60)
@given(randoms)
def test_a_further_conjunction_never_lowers_a_probability(rng):
    world = draw_world(rng)
    query = draw_query(rng, world)
    wider = RowQuery((*query.conjunctions, draw_conjunction(rng, world)), query.selected)
    after, known = found(world, wider), exact_rows(world, world.known, wider)
    for values, likely in found(world, query).items():
        assert values in known or likely <= after[values] + 1e-6


@settings(max_examples=60)
@given(worlds_and_queries(), st.data())
def test_the_order_of_patterns_and_the_names_of_variables_do_not_matter(given_, data):
    world, query = given_
    shuffled = [tuple(data.draw(st.permutations(part))) for part in query.conjunctions]
    parts = tuple(renamed(part) for part in data.draw(st.permutations(shuffled)))
    other = RowQuery(parts, tuple(f"_{name}" for name in query.selected))
    assert found(world, other) == pytest.approx(found(world, query), abs=1e-6)


def renamed(part):
    """A conjunction with other names of variables, in another order."""

    def change(value):
        if isinstance(value, tuple):
            return tuple(map(change, value))
        if isinstance(value, str) and not value.startswith("http"):
            return f"_{value}"
        if hasattr(value, "__dataclass_fields__"):
            return type(value)(*(change(getattr(value, name)) for name in value.__dataclass_fields__))
        return value

    return change(part)


# Folded variables


@st.composite
def trees(draw, small, depth: int = 3) -> Query:
    """A query tree for one variable, without unions, negations and equal parts."""
    entity, relation = st.integers(0, small.graph.entity_count - 1), st.integers(0, small.relation_count - 1)
    source = draw(trees(small, depth - 1)) if depth > 1 and draw(st.booleans()) else Anchor(draw(entity))
    if draw(st.integers(0, 2)):
        return Project(source, draw(relation), draw(st.one_of(st.none(), st.integers(0, len(small.sizes) - 1))))
    other = Project(Anchor(draw(entity)), draw(relation))
    first = Project(source, draw(relation))
    return Intersect((first, other)) if first != other else first


def as_patterns(query: Query, name: str = "x") -> list:
    """The patterns of a tree whose target is a variable."""
    if isinstance(query, Intersect):
        return [pattern for number, part in enumerate(query.parts) for pattern in renumbered(part, name, number)]
    return renumbered(query, name, 0)


def renumbered(query: Project, name: str, number: int) -> list:
    source = query.source.entity if isinstance(query.source, Anchor) else f"{name}{number}"
    types = [] if query.type_id is None else [TypePattern(name, f"type{query.type_id}")]
    below = [] if isinstance(source, int) else as_patterns(query.source, source)
    return [LinkPattern(source, Relation(int(query.relation)), name), *types, *below]


@settings(max_examples=100)
@given(smalls(), st.data())
def test_one_variable_has_the_numbers_of_the_link_executor(small, data):
    tree = data.draw(trees(small))
    relations = [int(edge.relation) // 2 for edge in edges(tree)]
    assume(len(set(relations)) == len(relations))  # a link that two parts share counts once in a row, twice in a tree
    executor = executor_of(small.graph)
    scores = executor.scores(tree)
    rows = RowExecutor(executor, lambda iri, _: executor.types.probabilities(int(iri[4:])), list)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{WAYS}.ENUMERATED", 0)
        result = rows.rows(RowQuery((tuple(as_patterns(tree)),), ("x",)), EVERY)
    expected = {(entity,): float(score) for entity, score in enumerate(scores) if 0 < score < 0.99999}
    likely = {row.values: row.probability for row in result.rows if row.probability < 0.99999}
    assert likely == pytest.approx(expected, abs=1e-5)


@st.composite
def simple_parts(draw, world: SmallWorld):
    """Two selected variables with one that hangs on the second, is between both, or is excluded; no relation twice."""
    first, second, third = (Relation(number) for number in draw(st.permutations([0, 2, 4])))
    path = LinkPattern("x", first, "y")
    hanging = LinkPattern("y", second, "u")
    shapes = [
        (path, hanging),
        (path, hanging, TypePattern("u", "http://c/A")),
        (LinkPattern("x", first, "u"), LinkPattern("u", second, "y")),
        (LinkPattern("x", first, "u"), LinkPattern("y", second, "u"), LinkPattern("x", third, "y")),
        (path, Exclusion(((hanging,),))),
        (path, Exclusion(((LinkPattern("x", second, "u"), LinkPattern("u", third, "y")),))),
        (path, Exclusion(((hanging, Given(("u",), ((0,), (1,)))),))),
    ]
    return draw(st.sampled_from(shapes))


@settings(max_examples=150)
@given(worlds(relations=3), st.data(), st.booleans())
def test_folded_variables_keep_their_probability_if_no_link_is_needed_twice(world, data, cut):
    query = RowQuery((data.draw(simple_parts(world)),), ("x", "y"))
    expected = row_probabilities(world, query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{WAYS}.ENUMERATED", 0)
        if cut:  # rows are found by a beam, and completed one by one
            patch.setattr("halfgraph.prediction.row_extension.TAILS", 1)
        likely = found(world, query)
        assert set(likely) <= set(expected)
        assert likely == pytest.approx({values: expected[values] for values in likely}, abs=1e-6)
        assert cut or set(likely) == set(expected)


@settings(max_examples=60)
@given(worlds(relations=3), st.permutations([0, 2, 4]), st.integers(1, 2))
def test_the_probability_of_any_entity_on_a_path_is_folded_exactly(world, relations, length):
    terms = [0, "u", "v"]
    links = [LinkPattern(terms[n], Relation(relations[n]), terms[n + 1]) for n in range(length)]
    query = RowQuery((tuple(links),), ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{WAYS}.ENUMERATED", 0)
        likely = world.executor().any_probability(query)
    assert likely == pytest.approx(any_row_probability(world, query), abs=1e-6)


@settings(max_examples=60)
@given(worlds(), st.sampled_from((0, 1)))
def test_a_folded_path_is_at_least_as_sure_as_its_best_way_and_known_where_known_links_lead(world, least):
    query = RowQuery(((LinkPattern("x", PathRepeat(Relation(0), least, None), "y"),),), ("x", "y"))
    exact = world.executor().rows(query, EVERY)
    best = {row.values: max(map(exact.lineage.way_probability, row.ways)) for row in exact.rows}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.path_ways.MOST_ENTITIES", 0)
        likely = found(world, query)
    assert set(likely) == set(best)
    assert all(best[values] - 1e-6 <= p <= 1 for values, p in likely.items())


# Real link probabilities


def rows_of(small) -> RowExecutor:
    executor = executor_of(small.graph)
    return RowExecutor(executor, lambda iri, _: executor.types.probabilities(int(iri[4:])), list)


@settings(max_examples=20)
@given(smalls(most_entities=8), st.data(), st.booleans())
def test_a_row_of_one_link_has_the_probability_of_the_link(small, data, large):
    relation = data.draw(st.integers(0, small.relation_count - 1))
    rows = rows_of(small)
    query = RowQuery(((LinkPattern("x", Relation(relation), "y"),),), ("x", "y"))
    with pytest.MonkeyPatch.context() as patch:
        if large:
            patch.setattr("halfgraph.prediction.facts.LARGE", 0)
            patch.setattr("halfgraph.prediction.link_predictor.LARGE", 0)
        result = rows.rows(query, EVERY)
    assert large or len(result.rows) > 0 or small.graph.entity_count < 3
    for row in result.rows:
        assert row.probability == pytest.approx(
            rows.executor.links.probability(row.values[0], relation, row.values[1]), abs=1e-5
        )


def test_a_beam_is_told_and_unconnected_parts_too():
    world = SmallWorld(4, 2, (), frozenset({(0, 0, 1)}), {(1, 0, 2): 0.5, (2, 0, 3): 0.25})
    query = RowQuery(((LinkPattern("x", Relation(0), "y"), LinkPattern("z", Relation(0), 3)),), ("x", "y", "z"))
    result = world.executor().rows(query, 10)
    assert result.notes == ["Parts of the query share no variable: rows combine the best of each part."]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfgraph.prediction.row_search.TABLE", 1)
        assert any("best partial rows" in note for note in world.executor().rows(query, 10).notes)
