"""Conditions on the answer that the store decides, exact for known and predicted answers alike."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode

from halfgraph.graph.folder import Graph
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.normalise import Among, Item, Items, OneOf, Test, Without, is_internal, variables_of
from halfgraph.sparql.syntax_tree import Group, Iri, Literal, Select, Term, Triple, Values, Variable

AT_ONCE = 1_000  # entities asked about in one query
Ask = Callable[[Select], Iterable[str]]  # returns the IRIs that answer a query of one variable


def split_tests(items: Items, target: str, graph: Graph) -> tuple[Items, Items]:
    """Return the items to translate, and those that test the target by what only the store knows.

    Those are FILTERs of the target and of its literals, patterns with a literal, and a negation without an entity.
    """
    triples = [item for item in items if isinstance(item, Triple)]
    attributes = [one for one in triples if one.subject == Variable(target) and not _is_relation(one.predicate, graph)]
    linked = {term for one in triples if one not in attributes for term in (one.subject, one.object)}
    tested = {Variable(name) for item in items if isinstance(item, Test) for name in item.variables}
    values = tested - linked - {Variable(target)}  # variables of the target's literals

    def is_test(item: Item) -> bool:
        match item:
            case Triple():
                return item in attributes and (isinstance(item.object, Literal) or item.object in values)
            case Test():
                return {Variable(name) for name in item.variables} <= {Variable(target), *values}
            case Without():
                outside = variables_of(items if item.within is None else item.within)
                shared = {Variable(name) for name in variables_of(item.group) if name in outside}
                return Variable(target) in shared <= {Variable(target), *values} and _has_no_entity(item)
        return False

    return tuple(item for item in items if not is_test(item)), tuple(filter(is_test, items))


def conditions(patterns: Items, tests: Items, target: str) -> Items:
    """Return all that the store can decide about the target: the tests, VALUES, =, != and negations.

    MINUS comes first, since it does not see the variables of what comes after it; filters come last.
    """
    items = (*tests, *(item for item in patterns if _is_decided(item, target)))
    return tuple(sorted(items, key=lambda item: 0 if _is_minus(item) else 1 if isinstance(item, Triple) else 2))


def _is_minus(item: Item) -> bool:
    return isinstance(item, Without) and item.keyword == "MINUS"


def _is_decided(item: Item, target: str) -> bool:
    if isinstance(item, Without):
        return target in variables_of(item.group) and (item.within is None or target in variables_of(item.within))
    return isinstance(item, Among) and item.variable == target


def _is_relation(predicate: tree.SyntaxNode, graph: Graph) -> bool:
    return not isinstance(predicate, Iri) or graph.find_relation(predicate.value) is not None


def _has_no_entity(item: Without) -> bool:
    """Whether a negation names no entity, so that no path leads to its variable."""
    return all(
        isinstance(one, Triple) and not any(isinstance(term, Iri) for term in (one.subject, one.object))
        for one in item.group
    )


def as_group(items: Items) -> Group:
    """Return items as graph patterns for the store."""
    return Group(tuple(map(_element, items)))


def _element(item: Item) -> tree.Element:
    match item:
        case OneOf():
            return tree.UnionPattern(tuple(map(as_group, item.groups)))
        case Without(keyword="MINUS"):
            return tree.Clause("MINUS", as_group(item.group))
        case Without():
            return tree.Filter(tree.Exists(as_group(item.group), negated=True))
        case Among(iris=(iri,)):
            return tree.Filter(tree.Operation(Variable(item.variable), (("!=" if item.negated else "=", iri),)))
        case Among():
            return tree.Filter(tree.Call("NOT IN" if item.negated else "IN", (Variable(item.variable), *item.iris)))
        case Test():
            return tree.Filter(item.expression)
    return replace(item, subject=_term(item.subject), object=_term(item.object))


def _term(term: Term) -> Term:
    """Return a term with a name that SPARQL allows."""
    internal = isinstance(term, Variable) and is_internal(term.name)
    return Variable(re.sub(r"\W", "_", term.name)) if internal else term  # type: ignore[union-attr]


def passes_filters(ask: Ask, tests: Group, target: str, graph: Graph, entities: Sequence[int]) -> NDArray[np.bool_]:
    """Return which entities (n,) pass the tests of the target, by the store; all if there are none.

    A blank node cannot be named in a query, so it never passes.
    """
    if not tests.elements:
        return np.ones(len(entities), dtype=bool)
    terms = [graph.namer.term(graph.entities.name(int(entity))) for entity in entities]
    found: set[str] = set()
    for first in range(0, len(terms), AT_ONCE):
        iris = [term.value for term in terms[first : first + AT_ONCE] if not isinstance(term, BlankNode)]
        found |= set(ask(restricted(tests, target, iris)))
    return np.array([not isinstance(term, BlankNode) and term.value in found for term in terms], dtype=bool)


def restricted(tests: Group, target: str, iris: Iterable[str]) -> Select:
    """Return the query for those of some entities that pass the tests."""
    values = Values((Variable(target),), tuple((Iri(iri),) for iri in iris))
    return Select((Variable(target),), Group((values, *tests.elements)), duplicates="DISTINCT")
