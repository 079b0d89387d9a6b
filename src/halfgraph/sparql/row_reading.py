"""Read a request for rows: what is uncertain becomes row queries, and what only the store decides stays SPARQL."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from halfgraph.errors import SparqlError, UnknownName
from halfgraph.graph.folder import Graph
from halfgraph.query.rows import Conjunction, Domain, Given, RowQuery, Value, is_uncertain
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.parse import Request
from halfgraph.sparql.row_groups import NAMED_GRAPHS, Alternative, Cell, GroupReader, Limit, core_variables
from halfgraph.sparql.row_patterns import FreshNames, RowPatterns
from halfgraph.sparql.scopes import is_aggregate, is_aggregated, mentioned, projected
from halfgraph.sparql.syntax_tree import Call, Group, Iri, Named, Select, Variable, walk
from halfgraph.sparql.translate import Names
from halfgraph.sparql.unsupported import MOST_PATTERNS, refused

_MULTIPLIED = ("COUNT", "SUM", "AVG", "GROUP_CONCAT")  # aggregates that count rows of a pattern, without DISTINCT


@dataclass(frozen=True)
class Branch:
    """One conjunction of a query, and what the store decides about its rows."""

    conjunction: Conjunction
    variables: tuple[str, ...]  # that candidate rows must bind
    rest: Group  # patterns and conditions for the store; CandidateRows in it stand for the candidate rows


@dataclass(frozen=True)
class RowReading:
    """What a request asks of a graph, in rows.

    `select` is the query as a SELECT with its columns written out. Without columns (ASK, SELECT * without a variable)
    it asks whether there is a row.
    """

    branches: tuple[Branch, ...]
    select: Select
    domains: Mapping[str, Domain]  # of variables that are no entities
    notes: tuple[str, ...] = ()
    predicates: tuple[Iri, ...] = ()  # of the text that are no relations: they lead to literals, or are mistakes
    keys: tuple[Variable | Named, ...] = ()  # of the groups
    measures: tuple[tuple[Call, str], ...] = ()  # aggregates, and the column of the argument of each
    is_countable: bool = True  # whether rows of different branches are different rows, each counted

    @property
    def is_aggregated(self) -> bool:
        """Whether the rows are grouped."""
        return is_aggregated(self.select)

    def query(self, branch: Branch) -> RowQuery:
        """Return the row query for the candidate rows of a branch."""
        return RowQuery((branch.conjunction,), branch.variables, dict(self.domains))


def read_rows(request: Request, graph: Graph) -> RowReading:
    """Return what a request asks of a graph; raise an error only if nothing of it is uncertain."""
    select = _select(request)
    fresh = FreshNames(mentioned(request.tree))
    patterns = RowPatterns(Names(graph, request), fresh)
    patterns.find_domains(select.where)
    reader = GroupReader(patterns)
    alternatives = reader.alternatives(_pattern(select, request))
    finisher = _Finisher(patterns, select, frozenset(reader.uncounted))
    branches = tuple(map(finisher.branch, (one for one in alternatives if is_uncertain(one.core))))
    if not branches:
        raise _nothing_uncertain(patterns, request)
    if max(len(branch.conjunction) for branch in branches) > MOST_PATTERNS:
        raise refused("size", None)
    notes = [*reader.notes, *([NAMED_GRAPHS] if select.graphs else [])]
    notes += [str(patterns.unknown_name(node)) for node, what in patterns.unknown.items() if what == "entity"]
    predicates = tuple(node for node, what in patterns.unknown.items() if what == "relation")
    domains = {name: patterns.domains[name] for name in finisher.names(branches) if name in patterns.domains}
    return RowReading(
        branches,
        select,
        domains,
        tuple(dict.fromkeys(notes)),
        predicates,
        _keys(select, fresh),
        finisher.measures(fresh),
        reader.is_countable,
    )


def _select(request: Request) -> Select:
    """Return a query as a SELECT with its columns written out."""
    match request.tree:
        case Select() as query:
            names = projected(query)
            return query if query.projection else replace(query, projection=tuple(map(Variable, names)))
        case tree.Ask() as query:
            return _as_select(query, ())
        case tree.Construct(template=template) as query:
            return _as_select(query, _in_order(query.where if template is None else template, query))
        case tree.Describe() as query:
            return _as_select(query, _in_order(query.subjects or query.where, query))
    raise refused("update", request.source.place_of(request.tree), word=request.tree.keyword)


def _as_select(query: tree.Ask | tree.Construct | tree.Describe, names: tuple[str, ...]) -> Select:
    columns = tuple(map(Variable, names))
    where = query.where or Group(())
    return Select(columns, where, modifiers=query.modifiers, graphs=query.graphs, base=query.base, span=query.span)


def _in_order(node: object, query: tree.Construct | tree.Describe) -> tuple[str, ...]:
    """Return the variables of a node that the pattern of the query binds, in the order of the text."""
    visible = projected(Select((), query.where or Group(()), modifiers=query.modifiers))
    places = sorted((part.span, part.name) for part in walk(node) if isinstance(part, Variable))
    return tuple(dict.fromkeys(name for _, name in places if name in visible))


def _pattern(select: Select, request: Request) -> Group:
    """Return the pattern of a query with the VALUES after it."""
    values = select.modifiers.values
    if values is None:
        return select.where
    keys = {key.name for key in select.modifiers.group_by if isinstance(key, Variable)}
    if is_aggregated(select) and not {variable.name for variable in values.variables} <= keys:
        raise refused("VALUES after groups", request.source.place_of(values))
    return Group((select.where, values))


def _nothing_uncertain(patterns: RowPatterns, request: Request) -> UnknownName | SparqlError:
    """Return the error for a query without uncertain patterns: an unknown name, if it has one."""
    names = sorted(patterns.unknown, key=lambda node: patterns.unknown[node] != "entity")  # entities first
    if names:
        return patterns.unknown_name(names[0])
    return refused("nothing uncertain", request.source.place_of(request.tree))


@dataclass(frozen=True)
class _Finisher:
    """Makes branches of alternatives."""

    patterns: RowPatterns
    select: Select
    uncounted: frozenset[str]

    def branch(self, alternative: Alternative) -> Branch:
        core = alternative.core_variables
        givens = (given for limit in alternative.limits if (given := self._given(limit, core)) is not None)
        conjunction = tuple(dict.fromkeys((*alternative.core, *givens)))
        modifiers = self.select.modifiers
        used = {
            *mentioned((self.select.projection, modifiers.group_by, modifiers.having, modifiers.order_by)),
            *alternative.shared,
            *(name for name in core if self._counts_rows and name not in self.uncounted),
        }
        return Branch(conjunction, tuple(name for name in core if name in used), Group(alternative.rest))

    @property
    def _aggregates(self) -> Iterator[Call]:
        modifiers = self.select.modifiers
        nodes = walk((self.select.projection, modifiers.having, modifiers.order_by))
        return (node for node in nodes if isinstance(node, Call) and is_aggregate(node))

    @property
    def _counts_rows(self) -> bool:
        """Whether an aggregate depends on how often a value occurs."""
        return any(call.function in _MULTIPLIED and not call.distinct for call in self._aggregates)

    def measures(self, fresh: FreshNames) -> tuple[tuple[Call, str], ...]:
        """Return the aggregates, each with a column for its argument; COUNT(*) has none."""
        calls = dict.fromkeys(self._aggregates)
        return tuple((call, _column(call, fresh)) for call in calls)

    def _given(self, limit: Limit, core: Mapping[str, None]) -> Given | None:
        """Return the values of variables that the uncertain patterns bind; rows without such values are left out."""
        columns = [number for number, name in enumerate(limit.variables) if name in core]
        if not columns:
            return None
        names = tuple(limit.variables[number] for number in columns)
        rows = (tuple(self._value(names[i], row[number]) for i, number in enumerate(columns)) for row in limit.rows)
        return Given(names, tuple(dict.fromkeys(row for row in rows if "" not in row)))

    def _value(self, name: str, cell: Cell) -> Value:
        """Return the value of a cell by the domain of its variable; an empty text if it has none there."""
        if not isinstance(cell, Iri):
            return None if cell is None else ""
        match self.patterns.domains.get(name):
            case "class":
                return cell.value
            case "relation":
                relation = self.patterns.path(cell)
                return "" if relation is None else relation.id  # type: ignore[union-attr]
        entity = self.patterns.term(cell)
        return "" if entity is None else entity

    def names(self, branches: tuple[Branch, ...]) -> Iterator[str]:
        for branch in branches:
            yield from core_variables(branch.conjunction)


def _keys(select: Select, fresh: FreshNames) -> tuple[Variable | Named, ...]:
    """Return the keys of groups, each with a name."""
    keys = select.modifiers.group_by
    return tuple(key if isinstance(key, Variable | Named) else Named(key, Variable(fresh.new())) for key in keys)


def _column(call: Call, fresh: FreshNames) -> str:
    if not call.arguments:
        return ""
    argument = call.arguments[0]
    return argument.name if isinstance(argument, Variable) else fresh.new()
