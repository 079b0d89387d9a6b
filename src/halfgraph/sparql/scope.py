"""The variables of graph patterns: those in scope, and those that every solution binds."""

from collections.abc import Iterable

from halfgraph.sparql.syntax_tree import (
    Bind,
    Clause,
    Element,
    Group,
    Named,
    Select,
    Triple,
    UnionPattern,
    Values,
    Variable,
    walk,
)


def in_scope(elements: "Iterable[Element | Select]") -> set[str]:
    """Return the variables that the elements of a group can bind."""
    names = set[str]()
    for element in elements:
        names |= _in_scope(element)
    return names


def _in_scope(element: "Element | Select") -> set[str]:
    match element:
        case Triple():
            return {part.name for part in walk(element) if isinstance(part, Variable)}
        case Group():
            return in_scope(element.elements)
        case UnionPattern():
            return in_scope(element.groups)
        case Clause() if element.keyword != "MINUS":
            return _name(element) | in_scope(element.group.elements)
        case Bind():
            return {element.variable.name}
        case Values():
            return {variable.name for variable in element.variables}
        case Select():
            return _selected(element) or in_scope(element.where.elements)
    return set()


def _selected(query: Select) -> set[str]:
    return {part.variable.name if isinstance(part, Named) else part.name for part in query.projection}


def always_bound(elements: "Iterable[Element | Select]") -> set[str]:
    """Return variables that every solution of the elements of a group binds; perhaps not all of them."""
    names = set[str]()
    for element in elements:
        names |= _always_bound(element)
    return names


def _always_bound(element: "Element | Select") -> set[str]:
    match element:
        case Triple():
            return _in_scope(element)
        case Group():
            return always_bound(element.elements)
        case UnionPattern():
            return set.intersection(*(always_bound(group.elements) for group in element.groups))
        case Clause(keyword="GRAPH" | "LATERAL"):
            return _name(element) | always_bound(element.group.elements)
        case Values():
            columns = zip(element.variables, zip(*element.rows, strict=True), strict=False)
            return {variable.name for variable, column in columns if None not in column}
        case Select():
            selected = {part.name for part in element.projection if isinstance(part, Variable)}
            bound = always_bound(element.where.elements)
            return bound & selected if element.projection else bound
    return set()


def _name(clause: Clause) -> set[str]:
    return {clause.name.name} if isinstance(clause.name, Variable) else set()
