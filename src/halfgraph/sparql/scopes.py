"""The scope of variables: which ones a group binds always, which sometimes, and which must not be bound before it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.syntax_tree import Iri, Literal, SyntaxNode, Variable, walk
from halfgraph.sparql.terminals import AGGREGATES

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Scope:
    """The variables of the solutions of a group, as far as its elements were read.

    SPARQL joins the elements of a group in their order. Patterns that are joined may change places, but OPTIONAL, MINUS
    and BIND depend on what is bound before them: binding one of the `sensitive` variables earlier changes the result.
    """

    certain: frozenset[str] = NONE  # bound in every solution
    possible: frozenset[str] = NONE  # bound in some solution
    sensitive: frozenset[str] = NONE

    def bind(self, certain: Iterable[str], possible: Iterable[str] = ()) -> "Scope":
        """Return the scope with more variables."""
        names = frozenset(certain)
        return replace(self, certain=self.certain | names, possible=self.possible | names | frozenset(possible))

    def after(self, element: SyntaxNode) -> "Scope":
        """Return the scope after one more element of the group."""
        match element:
            case tree.Triple():
                return self.bind(mentioned(element))
            case tree.Values():
                return self.bind(*_value_scope(element))
            case tree.Bind():
                is_constant = isinstance(element.expression, Iri | Literal)
                target = {element.variable.name}
                sensitive = self.sensitive | target | (mentioned(element.expression) - self.certain)
                return replace(self.bind(target if is_constant else (), target), sensitive=sensitive)
            case tree.Clause(keyword="OPTIONAL" | "MINUS" | "LATERAL" as keyword):
                inner = scope_of(element.group)
                certain, possible = (inner.certain, inner.possible) if keyword == "LATERAL" else (NONE, inner.possible)
                bound = self if keyword == "MINUS" else self.bind(certain, possible)
                return replace(bound, sensitive=self.sensitive | (mentioned(element) - self.certain))
            case tree.Clause():
                inner = scope_of(element.group)
                name = mentioned(element.name)
                return self.bind(inner.certain | name, inner.possible)
            case tree.UnionPattern():
                parts = [scope_of(group) for group in element.groups]
                certain = frozenset.intersection(*(part.certain for part in parts))
                return self.bind(certain, frozenset().union(*(part.possible for part in parts)))
            case tree.Group():
                inner = scope_of(element)
                return self.bind(inner.certain, inner.possible)
            case tree.Select():
                return self.bind(*_select_scope(element))
        return self


def scope_of(group: tree.Group) -> Scope:
    """Return the scope of a group."""
    return reduce(Scope.after, group.elements, Scope())


def mentioned(node: object) -> frozenset[str]:
    """Return every variable that a node mentions, in whatever scope."""
    return frozenset(part.name for part in walk(node) if isinstance(part, Variable))


def is_aggregated(query: tree.Query) -> bool:
    """Whether a query groups the rows of its pattern."""
    modifiers = query.modifiers
    parts = (query.projection if isinstance(query, tree.Select) else (), modifiers.having, modifiers.order_by)
    return bool(modifiers.group_by or modifiers.having) or any(map(is_aggregate, walk(parts)))


def is_aggregate(node: object) -> bool:
    """Whether a node is an aggregate, such as COUNT(?x)."""
    return isinstance(node, tree.Call) and node.function in AGGREGATES


def projected(select: tree.Select) -> tuple[str, ...]:
    """Return the names of the columns of a SELECT; for SELECT * in the order of the text."""
    if select.projection:
        return tuple(part.name if isinstance(part, Variable) else part.variable.name for part in select.projection)
    values = (select.modifiers.values,) if select.modifiers.values else ()
    possible = scope_of(tree.Group((select.where, *values))).possible
    places = sorted((part.span, part.name) for part in walk(select) if isinstance(part, Variable))
    return tuple(dict.fromkeys(name for _, name in places if name in possible))


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """Return a node, or a tuple of nodes, with other names for some variables."""
    if not names:
        return node
    if isinstance(node, Variable):
        return replace(node, name=names.get(node.name, node.name))
    if isinstance(node, tuple):
        return tuple(renamed(part, names) for part in node)
    if not isinstance(node, SyntaxNode) or isinstance(node, tree.LEAVES):
        return node
    parts = {name: value for name, value in vars(node).items() if isinstance(value, SyntaxNode | tuple)}
    changed = {name: renamed(value, names) for name, value in parts.items() if name not in ("span", "clauses")}
    return replace(node, **changed)


def _value_scope(values: tree.Values) -> tuple[frozenset[str], frozenset[str]]:
    names = [variable.name for variable in values.variables]
    unbound = {name for row in values.rows for name, cell in zip(names, row, strict=True) if cell is None}
    return frozenset(names) - unbound, frozenset(names)


def _select_scope(select: tree.Select) -> tuple[frozenset[str], frozenset[str]]:
    names = frozenset(projected(select))
    inner = scope_of(select.where)
    keys = mentioned(tuple(key for key in select.modifiers.group_by if isinstance(key, Variable)))
    values = Scope() if select.modifiers.values is None else Scope().after(select.modifiers.values)
    certain = (inner.certain & keys if is_aggregated(select) else inner.certain) | values.certain
    return names & certain, names
