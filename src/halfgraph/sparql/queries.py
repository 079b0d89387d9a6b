"""Queries for the store, as syntax trees: derived from a query, or made of patterns."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.syntax_tree import Ask, Group, Select, Variable, walk


def unlimited(query: Select) -> Select:
    """Return a query without its LIMIT and OFFSET."""
    return replace(query, modifiers=replace(query.modifiers, limit=None, offset=None))


def select(
    elements: Iterable[tree.Element | Select],
    variables: Sequence[str] = (),
    *,
    distinct: bool = False,
    limit: int | None = None,
) -> Select:
    """Return the query for some variables of patterns, or for all of them."""
    names = tuple(map(Variable, variables))
    modifiers = tree.Modifiers(limit=limit)
    return Select(names, Group(tuple(elements)), duplicates="DISTINCT" if distinct else "", modifiers=modifiers)


def ask(elements: Iterable[tree.Element]) -> Ask:
    """Return the query whether patterns match at all."""
    return Ask(Group(tuple(elements)))


def count_by(relations: Iterable[str]) -> Select:
    """Return the query for the number of triples of each relation, as ?relation and ?count."""
    relation = Variable("relation")
    values = tree.Values((relation,), tuple((tree.Iri(iri),) for iri in relations))
    group = Group((values, tree.Triple(Variable("head"), relation, Variable("tail"))))
    counted = tree.Named(tree.Call("COUNT", ()), Variable("count"))
    return Select((relation, counted), group, modifiers=tree.Modifiers(group_by=(relation,)))


def variables_in(node: tree.SyntaxNode) -> list[str]:
    """Return the variables of a node in the order of the text."""
    found = sorted((one.span, one.name) for one in walk(node) if isinstance(one, Variable))
    return list(dict.fromkeys(name for _, name in found))
