"""Queries for the store that are derived from others."""

import pytest

from halfgraph.sparql.parse import parse
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import Iri, Select, Triple, Variable, columns, every_value, select
from halfgraph.sparql.writer import write

PREFIXES = Prefixes({}, "http://h/")
TRIPLE = Triple(Variable("b"), Iri("http://h/p"), Variable("a"))


def parsed(text: str) -> Select:
    tree = parse(text, PREFIXES).tree
    assert isinstance(tree, Select)
    return tree


@pytest.mark.parametrize("cut", ["LIMIT 3", "OFFSET 2", "limit 3 offset 2", "OFFSET 2\nLIMIT 3 # LIMIT 4"])
def test_every_value_of_a_variable_is_asked_for_without_limit_and_offset_of_the_outer_query_alone(cut: str) -> None:
    pattern = "{ ?limit <LIMIT> <city0> { SELECT * { ?limit ?p ?o } LIMIT 9 } } "
    asked = every_value(parsed(f"SELECT ?limit ?o {pattern} {cut}"), "limit")
    assert asked == parsed(f"SELECT DISTINCT ?limit {pattern}")


def test_queries_are_made_of_patterns() -> None:
    assert write(select([TRIPLE])) == "SELECT * WHERE { ?b <http://h/p> ?a . }"
    limited = select([TRIPLE], ["a"], distinct=True, limit=5)
    assert write(limited) == "SELECT DISTINCT ?a WHERE { ?b <http://h/p> ?a . } LIMIT 5"


def test_columns_come_in_the_order_of_the_text() -> None:
    assert columns(parsed("SELECT * { ?b <p> ?a FILTER(?c > 1) } LIMIT 1"), ["a", "b"]) == ["b", "a"]
    assert columns(parsed("SELECT ?a ?b { ?b <p> ?a }"), ["a", "b"]) == ["a", "b"]
