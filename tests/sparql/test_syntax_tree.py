"""Queries for the store that are derived from others."""

import pytest

from halfgraph.sparql.parse import parse
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.syntax_tree import Iri, Select, Triple, Variable, count_by, select, unlimited, variables_in
from halfgraph.sparql.writer import write

PREFIXES = Prefixes({}, "http://h/")
TRIPLE = Triple(Variable("b"), Iri("http://h/p"), Variable("a"))


def parsed(text: str) -> Select:
    tree = parse(text, PREFIXES).tree
    assert isinstance(tree, Select)
    return tree


@pytest.mark.parametrize("cut", ["LIMIT 3", "OFFSET 2", "limit 3 offset 2", "OFFSET 2\nLIMIT 3 # LIMIT 4"])
def test_limit_and_offset_are_removed_from_the_outer_query_alone(cut: str) -> None:
    text = "SELECT ?limit { ?limit <LIMIT> <city0> { SELECT * { ?limit ?p ?o } LIMIT 9 } } "
    assert unlimited(parsed(text + cut)) == parsed(text)


def test_queries_are_made_of_patterns() -> None:
    assert write(select([TRIPLE])) == "SELECT * WHERE { ?b <http://h/p> ?a . }"
    limited = select([TRIPLE], ["a"], distinct=True, limit=5)
    assert write(limited) == "SELECT DISTINCT ?a WHERE { ?b <http://h/p> ?a . } LIMIT 5"
    counted = "SELECT ?relation (COUNT(*) AS ?count) WHERE { VALUES ?relation { <http://h/p> <http://h/q> }"
    assert write(count_by(["http://h/p", "http://h/q"])) == f"{counted} ?head ?relation ?tail . }} GROUP BY ?relation"


def test_variables_come_in_the_order_of_the_text() -> None:
    assert variables_in(parsed("SELECT * { ?b <p> ?a FILTER(?c > 1) } LIMIT 1")) == ["b", "a", "c"]
