"""Conditions that only the store can test, exact for known and predicted answers alike: literals and their values."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Store

from halfgraph.graph.folder import Graph
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.normalise import Among, Item, Items, OneOf, Test, Without, is_internal, variables_of
from halfgraph.sparql.syntax_tree import Group, Iri, Literal, Select, Term, Triple, Values, Variable
from halfgraph.sparql.writer import write

AT_ONCE = 1_000  # entities asked about in one query
Ask = Callable[[Select], Iterable[str]]  # returns the IRIs that answer a query of one variable


def split_tests(items: Items, target: str, graph: Graph) -> tuple[Items, Items]:
    """Return the items to translate, and those that test the target by what only the store knows.

    Those are FILTERs of the target and of its literals, patterns with a literal, and a negation without an entity.
    """
    values = _values(items, target, graph)
    tests = [
        item
        for item in items
        if (isinstance(item, Triple) and _is_value(item, values, graph, target))
        or (isinstance(item, Test) and item.variables <= {target, *values})
        or (isinstance(item, Without) and _has_no_entity(item, target))
    ]
    return tuple(item for item in items if item not in tests), tuple(tests)


def _values(items: Items, target: str, graph: Graph) -> set[str]:
    """Return the variables of the target's literals: tested, and only objects of what is no relation of the graph."""
    tested = {name for item in items if isinstance(item, Test) for name in item.variables}
    entities = {
        term.name
        for item in items
        if isinstance(item, Triple)
        for term in (item.subject, item.object)
        if isinstance(term, Variable)
        and not (term is item.object and item.subject == Variable(target) and _is_attribute(item, graph))
    }
    return tested - entities


def _is_attribute(triple: Triple, graph: Graph) -> bool:
    """Whether the predicate is no relation between entities of the graph."""
    return isinstance(triple.predicate, Iri) and graph.find_relation(triple.predicate.value) is None


def _is_value(triple: Triple, values: set[str], graph: Graph, target: str) -> bool:
    """Whether a triple states a literal of the target."""
    if triple.subject != Variable(target) or not _is_attribute(triple, graph):
        return False
    return isinstance(triple.object, Literal) or (isinstance(triple.object, Variable) and triple.object.name in values)


def _has_no_entity(item: Without, target: str) -> bool:
    """Whether a negation of the target connects it to no entity, so that no path leads to it."""
    outside = item.within is None or target in variables_of(item.within)
    triples = [one for one in item.group if isinstance(one, Triple)]
    if not outside or target not in variables_of(item.group) or len(triples) < len(item.group):
        return False
    return not any(isinstance(term, Iri) for one in triples for term in (one.subject, one.object))


def as_group(items: Items) -> Group:
    """Return items as graph patterns for the store."""
    return Group(tuple(map(_element, items)))


def _element(item: Item) -> tree.Element:
    match item:
        case OneOf():
            return tree.UnionPattern(tuple(map(as_group, item.groups)))
        case Without():
            return tree.Filter(tree.Exists(as_group(item.group), negated=True))
        case Among():
            return tree.Filter(tree.Call("NOT IN" if item.negated else "IN", (Variable(item.variable), *item.iris)))
        case Test():
            return tree.Filter(item.expression)
    return replace(item, subject=_term(item.subject), object=_term(item.object))


def _term(term: Term) -> Term:
    """Return a term with a name that SPARQL allows."""
    internal = isinstance(term, Variable) and is_internal(term.name)
    return Variable(re.sub(r"\W", "_", term.name)) if internal else term  # type: ignore[union-attr]


def passes_filters(
    asked: Ask | Store, tests: Group, target: str, graph: Graph, entities: Sequence[int]
) -> NDArray[np.bool_]:
    """Return which entities (n,) pass the tests of the target, by the store; all if there are none.

    A blank node cannot be named in a query, so it never passes.
    """
    if not tests.elements:
        return np.ones(len(entities), dtype=bool)
    ask = _ask(asked) if isinstance(asked, Store) else asked
    terms = [graph.namer.term(graph.entities.name(int(entity))) for entity in entities]
    found: set[str] = set()
    for first in range(0, len(terms), AT_ONCE):
        iris = [term.value for term in terms[first : first + AT_ONCE] if not isinstance(term, BlankNode)]
        found |= set(ask(restricted(tests, target, iris)))
    return np.array([not isinstance(term, BlankNode) and term.value in found for term in terms], dtype=bool)


def _ask(store: Store) -> Ask:
    return lambda query: [row[0].value for row in store.query(write(query))]  # type: ignore[union-attr]


def restricted(tests: Group, target: str, iris: Iterable[str]) -> Select:
    """Return the query for those of some entities that pass the tests."""
    values = Values((Variable(target),), tuple((Iri(iri),) for iri in iris))
    return Select((Variable(target),), Group((values, *tests.elements)), duplicates="DISTINCT")
