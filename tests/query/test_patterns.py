from hypothesis import given

from halfgraph.query.patterns import flatten, variables
from halfgraph.query.rewriting import disjuncts
from halfgraph.query.tree import Anchor, Project, Query
from sparql_strategies import (
    any_queries,
    dags,
)


@given(dags())
def test_every_variable_comes_after_those_that_lead_to_it(query) -> None:
    seen: set[str] = set()
    for pattern in flatten(query):
        source, target = getattr(pattern, "source", None), getattr(pattern, "target", None)
        assert not isinstance(source, str) or source in seen
        seen |= {target} if target else set()


@given(any_queries())
def test_the_alternatives_of_a_query_have_no_unions(query) -> None:
    assert not any("Either" in type(one).__name__ for some in disjuncts(query) for one in flatten(some))


def test_ten_variables_are_in_the_order_of_their_numbers() -> None:
    query: Query = Anchor(0)
    for _ in range(12):
        query = Project(query, 0)
    assert variables(flatten(query)) == ["answer", *(f"v{number}" for number in range(1, 12))]
