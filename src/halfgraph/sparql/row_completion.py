"""Queries for the store about candidate rows: which ones pass the rest of a query, and which ones are known."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.row_groups import CandidateRows, Cell
from halfgraph.sparql.row_reading import Branch, RowReading
from halfgraph.sparql.scopes import mentioned, projected, scope_of
from halfgraph.sparql.syntax_tree import Group, Modifiers, Named, Select, SyntaxNode, Values, Variable

Row = tuple[Cell, ...]


def completed(reading: RowReading, branch: Branch, rows: Sequence[Row]) -> Select:
    """Return the query for those candidate rows that pass the rest, with the columns that the store adds.

    The columns are those of the query, or its groups' keys and the arguments of its aggregates, then the variables of
    the branch and those that the query orders by. `rows` have the values of `branch.variables`; a blank node cannot be
    named.
    """
    front = values(branch.variables, rows)
    rest = (_placed(element, branch.variables, rows) for element in branch.rest.elements)
    select = reading.select
    columns = _grouped_columns(reading) if reading.is_aggregated else select.projection
    names = {_name(column) for column in columns}
    further = dict.fromkeys((*branch.variables, *sorted(mentioned(select.modifiers.order_by))))
    others = () if reading.is_aggregated else tuple(further)
    columns += tuple(Variable(name) for name in (*branch.variables, *others) if name not in names)
    return Select(
        tuple(dict.fromkeys(columns)),
        Group((front, *rest)),
        "" if reading.is_aggregated else "DISTINCT",
        graphs=select.graphs,
        base=select.base,
    )


def known_rows(reading: RowReading, rows: Sequence[Row]) -> Select:
    """Return the query for the known rows that agree with some complete rows, as far as SPARQL can bind them first.

    `rows` have the values of the columns of the query. The known rows among them are those that the store returns too.
    """
    select = reading.select
    columns, scope = projected(select) if select.projection else (), scope_of(select.where)
    bound = tuple(name for name in columns if name in scope.certain - scope.sensitive)
    cells = [tuple(row[columns.index(name)] for name in bound) for row in rows]
    where = Group((values(bound, cells), *_elements(select.where)))
    modifiers = Modifiers(values=select.modifiers.values, limit=None if columns else 1)
    return replace(select, where=where, duplicates="DISTINCT" if columns else "", modifiers=modifiers)


def values(names: Sequence[str], rows: Iterable[Row]) -> Values:
    """Return VALUES for some variables, each row once."""
    return Values(tuple(map(Variable, names)), tuple(dict.fromkeys(rows)))


def _elements(group: Group) -> tuple[Any, ...]:
    """Return the elements of a group; a subquery is a group of its own."""
    return (group,) if any(isinstance(element, Select) for element in group.elements) else group.elements


def _placed(node: Any, names: Sequence[str], rows: Sequence[Row]) -> Any:
    """Return a node with candidate rows in their places."""
    if isinstance(node, CandidateRows):
        columns = [names.index(variable.name) for variable in node.variables]
        return values([names[column] for column in columns], (tuple(row[column] for column in columns) for row in rows))
    if isinstance(node, tuple):
        return tuple(_placed(part, names, rows) for part in node)
    if isinstance(node, Group | tree.Clause):
        parts = {name: value for name, value in vars(node).items() if isinstance(value, SyntaxNode | tuple)}
        return replace(node, **{name: _placed(part, names, rows) for name, part in parts.items() if name != "span"})
    return node


def _grouped_columns(reading: RowReading) -> tuple[Variable | Named, ...]:
    """Return the keys of the groups, and the arguments of the aggregates."""
    measures = ((call.arguments[0], Variable(name)) for call, name in reading.measures if name)
    arguments = (column if argument == column else Named(argument, column) for argument, column in measures)
    return tuple(dict.fromkeys((*reading.keys, *arguments)))


def _name(column: Variable | Named) -> str:
    return column.name if isinstance(column, Variable) else column.variable.name
