"""The scope of variables, against what the store binds."""

from collections.abc import Iterator

import pyoxigraph as ox
import pytest
from hypothesis import assume, given

from halfgraph.errors import SparqlError
from halfgraph.sparql.parse import parse
from halfgraph.sparql.prefixes import COMMON, Prefixes
from halfgraph.sparql.scopes import Scope, mentioned, projected, renamed, scope_of
from halfgraph.sparql.syntax_tree import Group, Select
from halfgraph.sparql.writer import write
from sparql_row_texts import BASE, groups, stores

PREFIXES = Prefixes({"": BASE, **COMMON}, BASE)


def select(text: str) -> Select:
    try:
        tree = parse(text, PREFIXES).tree
    except SparqlError:
        assume(False)
    assert isinstance(tree, Select)
    return tree


def group(text: str) -> Group:
    return select(f"SELECT * {text}").where


def bound(row: ox.QuerySolution, names: tuple[str, ...]) -> Iterator[str]:
    return (name for name in names if row[name] is not None)


@given(groups(), stores())
def test_certain_variables_are_bound_in_every_row_and_others_than_possible_ones_in_none(
    text: str, store: ox.Store
) -> None:
    query = select(f"SELECT * {text}")
    scope, names = scope_of(query.where), projected(query)
    assert set(names) == scope.possible
    for row in store.query(write(query)):  # type: ignore[union-attr]
        assert scope.certain <= set(bound(row, names))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ ?a :r ?b OPTIONAL { ?b :s ?c FILTER(?d = 1) } }", ("a b", "a b c", "c d")),
        ("{ ?a :r ?b MINUS { ?b :s ?c } }", ("a b", "a b", "c")),
        ("{ ?a :r ?b BIND(?b + ?c AS ?d) }", ("a b", "a b d", "c d")),
        ("{ BIND(1 AS ?a) }", ("a", "a", "a")),
        ("{ { ?a :r ?b } UNION { ?a :r ?c } }", ("a", "a b c", "")),
        ("{ { ?a :r ?b OPTIONAL { ?b :s ?c } } }", ("a b", "a b c", "")),
        ("{ VALUES (?a ?b) { (1 UNDEF) } }", ("a", "a b", "")),
        ("{ GRAPH ?g { ?a :r ?b } }", ("a b g", "a b g", "")),
        ("{ SELECT ?a (COUNT(?b) AS ?n) { ?a :r ?b } GROUP BY ?a }", ("a", "a n", "")),
        ("{ SELECT ?a ?b { ?a :r ?c } VALUES ?b { 1 } }", ("a b", "a b", "")),
        ("{ ?a :r ?b LATERAL { ?b :s ?c } }", ("a b c", "a b c", "c")),
        ("{ ?a :r ?b FILTER(?c = 1 && EXISTS { ?a :r ?d }) }", ("a b", "a b", "")),
    ],
)
def test_the_scope_of_a_group(text: str, expected: tuple[str, str, str]) -> None:
    assert scope_of(group(text)) == Scope(*(frozenset(names.split()) for names in expected))


def test_variables_are_renamed_everywhere() -> None:
    text = "{ ?a :r ?b OPTIONAL { ?a :s ?c } FILTER(?a > 1 && EXISTS { ?a ?p ?d }) BIND(?a AS ?e) VALUES ?a { 1 } }"
    new = renamed(group(text), {"a": "x", "p": "q"})
    assert write(new) == write(group(text.replace("?a", "?x").replace("?p", "?q")))
    assert mentioned(new) == frozenset("xbcqde")
