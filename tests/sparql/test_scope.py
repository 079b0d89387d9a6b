"""Variables in scope: as pyoxigraph's SELECT * and its solutions have them."""

import pytest
from pyoxigraph import Store

from halfgraph.sparql.parse import parse
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.scope import always_bound, in_scope
from halfgraph.sparql.syntax_tree import Select

PREFIXES = Prefixes({"": "http://h/"}, "http://h/")


@pytest.mark.parametrize(
    ("pattern", "bound"),
    [
        ("?a :p ?b", "ab"),
        ("?a ?c ?b . ?b :p+ []", "abc"),
        ("?a :p ?b OPTIONAL { ?b :p ?c }", "ab"),
        ("{ ?a :p ?b } UNION { ?a :p ?c }", "a"),
        ("?a :p ?b MINUS { ?a :q ?c }", "ab"),
        ("?a :p ?b FILTER EXISTS { ?b :q ?c }", "ab"),
        ("?a :p ?b BIND(1/0 AS ?c)", "ab"),
        ("VALUES (?a ?b) { (1 UNDEF) (2 3) }", "a"),
        ("VALUES ?a { }", ""),
        ("GRAPH ?g { ?a :p ?b OPTIONAL { ?a :q ?c } }", "gab"),
        ("{ SELECT ?a (COUNT(?b) AS ?n) { ?a :p ?b } GROUP BY ?a }", "a"),
        ("{ SELECT * { ?a :p ?b OPTIONAL { ?b :p ?c } } }", "ab"),
        ("{ { ?a :p ?b } }", "ab"),
    ],
)
def test_variables_in_scope_are_those_of_select_star(pattern: str, bound: str) -> None:
    tree = parse(f"SELECT * {{ {pattern} }}", PREFIXES).tree
    assert isinstance(tree, Select)
    solutions = Store().query(f"PREFIX : <http://h/> SELECT * {{ {pattern} }}")
    assert in_scope(tree.where.elements) == {variable.value for variable in solutions.variables}  # type: ignore[union-attr]
    assert always_bound(tree.where.elements) == set(bound)
