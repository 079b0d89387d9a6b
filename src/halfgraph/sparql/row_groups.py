"""Groups of a text as alternatives: the uncertain patterns of each, and the rest, which the store decides.

The uncertain patterns of an alternative move to the front, where candidate rows take their place. The rest keeps its
order. Where an OPTIONAL, MINUS or BIND must not see variables that are bound after it, it is put into a group of its
own, with those variables of the candidate rows that were bound before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from halfgraph.query.rows import Conjunction, Exclusion, LinkPattern, Pattern, TypePattern, pattern_variables
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.normalise import conjuncts
from halfgraph.sparql.row_patterns import RowPatterns
from halfgraph.sparql.scopes import Scope, is_aggregated, mentioned, projected, renamed, scope_of
from halfgraph.sparql.syntax_tree import Clause, Exists, Filter, Group, Iri, SyntaxNode, UnionPattern, Variable
from halfgraph.sparql.unsupported import MOST_BRANCHES, refused

Cell = Iri | tree.Literal | tree.TripleTerm | None  # None allows any value
TOO_MANY = "Some alternatives of the query are exact only: together they are too many to predict."
NAMED_GRAPHS = "The query names graphs of the dataset; known rows respect them, predictions use all links."


class CandidateRows(tree.Values):
    """A place of the rest where candidate rows are joined: some of their variables, still without rows."""


@dataclass(frozen=True)
class Limit:
    """Values that VALUES or FILTER allow for some variables."""

    variables: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Alternative:
    """One conjunction of a group: its uncertain patterns, the rest in the order of the text, and its variables."""

    core: Conjunction = ()
    rest: tuple[tree.Element | tree.Select, ...] = ()
    limits: tuple[Limit, ...] = ()
    scope: Scope = field(default_factory=Scope)

    @property
    def core_variables(self) -> dict[str, None]:
        """The variables that the uncertain patterns bind, in the order of the text."""
        return core_variables(self.core)

    @property
    def shared(self) -> tuple[str, ...]:
        """The variables that the uncertain patterns share with the rest."""
        used = mentioned(self.rest)
        return tuple(name for name in self.core_variables if name in used)

    def with_core(self, patterns: Iterable[Pattern]) -> "Alternative":
        """Return the alternative with more uncertain patterns, which move before the rest."""
        added = tuple(patterns)
        names = core_variables(added)
        alternative = self.enclosed() if self.scope.sensitive & names.keys() else self
        return replace(alternative, core=(*self.core, *added), scope=alternative.scope.bind(names))

    def with_rest(self, element: tree.Element | tree.Select) -> "Alternative":
        """Return the alternative with another element for the store."""
        return replace(self, rest=(*self.rest, element), scope=self.scope.after(element))

    def enclosed(self) -> "Alternative":
        """Return the alternative with its rest as a group of its own."""
        return replace(self, rest=(self.as_group(),), scope=replace(self.scope, sensitive=frozenset()))

    def as_group(self) -> Group:
        """Return the rest as a group that sees the variables of this alternative only."""
        rows = CandidateRows(tuple(map(Variable, self.shared)), ())
        return Group((rows, *self.rest) if rows.variables else self.rest)

    def joined(self, inner: "Alternative") -> "Alternative":
        """Return this alternative joined with one of a group inside it."""
        both = self.with_core(inner.core)
        rest = inner.rest if inner.is_flat else (inner.as_group(),)
        scope = both.scope.bind(inner.scope.certain, inner.scope.possible)
        return replace(both, rest=(*both.rest, *rest), limits=(*self.limits, *inner.limits), scope=scope)

    @property
    def is_flat(self) -> bool:
        """Whether the rest means the same if more variables are bound before it."""
        filters = (element for element in self.rest if isinstance(element, Filter))
        return not self.scope.sensitive and all(mentioned(one) <= self.scope.certain for one in filters)


def core_variables(patterns: Iterable[Pattern]) -> dict[str, None]:
    """Return the variables that links and types bind, in their order."""
    binding = (pattern for pattern in patterns if isinstance(pattern, LinkPattern | TypePattern))
    return dict.fromkeys(name for pattern in binding for name in pattern_variables(pattern))


@dataclass
class GroupReader:
    """Reads groups; collects notes, and the variables that do not multiply rows."""

    patterns: RowPatterns
    notes: dict[str, None] = field(default_factory=dict)
    uncounted: set[str] = field(default_factory=set)
    is_countable: bool = True  # whether rows of different alternatives are different rows
    _conditions: dict[tuple[Group, frozenset[str]], list[Conjunction] | None] = field(default_factory=dict)

    def alternatives(self, group: Group) -> list[Alternative]:
        """Return the alternatives of a group."""
        found = [Alternative()]
        for element in group.elements:
            if not isinstance(element, Filter):
                found = self._with_element(found, element)
        for element in group.elements:
            if isinstance(element, Filter):
                for condition in conjuncts(element.constraint):
                    found = self._with_filter(found, _plain(condition))
        return found

    def _with_element(self, alternatives: list[Alternative], element: tree.Element | tree.Select) -> list[Alternative]:
        match element:
            case tree.Triple():
                return self._with_triple(alternatives, element)
            case Group() | UnionPattern() | tree.Select() | Clause(keyword="GRAPH"):
                return self._with_parts(alternatives, self._parts(element), element)
            case Clause(keyword="SERVICE"):
                raise refused("SERVICE", self.patterns.names.request.source.place_of(element))
            case Clause(keyword="MINUS"):
                return [self._with_minus(one, element) for one in alternatives]
            case tree.Values():
                limit = Limit(tuple(variable.name for variable in element.variables), element.rows)
                return [_limited(one.with_rest(element), limit) for one in alternatives]
            case tree.Bind(expression=Iri() as iri, variable=Variable(name)):
                return [_limited(one.with_rest(element), Limit((name,), ((iri,),))) for one in alternatives]
        return [one.with_rest(element) for one in alternatives]

    def _parts(self, element: SyntaxNode) -> list[Alternative]:
        """Return the alternatives of an element with groups inside."""
        match element:
            case Group():
                return self.alternatives(element)
            case UnionPattern(groups):
                return [part for group in groups for part in self.alternatives(group)]
            case tree.Select():
                return self._subquery(element)
        assert isinstance(element, Clause)
        return [self._in_graph(part, element) for part in self.alternatives(element.group)]

    def _with_parts(
        self, alternatives: list[Alternative], parts: list[Alternative], element: tree.Element | tree.Select
    ) -> list[Alternative]:
        """Return alternatives joined with those of an element; the store decides an element without uncertain ones."""
        if any(part.core for part in parts) and len(alternatives) * len(parts) <= MOST_BRANCHES:
            return [one.joined(part) for one in alternatives for part in parts]
        if any(part.core for part in parts):
            self.notes[TOO_MANY] = None
        whole = Group((element,)) if isinstance(element, tree.Select) else element
        return [one.with_rest(whole) for one in alternatives]

    def _with_triple(self, alternatives: list[Alternative], triple: tree.Triple) -> list[Alternative]:
        plain = self.patterns.fresh.without_blank_nodes(triple)
        steps = [(step, self.patterns.pattern(step)) for step in self.patterns.steps(plain)]
        if len(steps) == 1 and steps[0][1] is None and (choice := _choice(steps[0][0])) is not None:
            return self._with_parts(alternatives, self._parts(choice), plain)
        if all(pattern is None for _, pattern in steps) and not any(_choice(step) for step, _ in steps):
            return [one.with_rest(plain) for one in alternatives]
        for step, pattern in steps:
            if pattern is not None:
                alternatives = [one.with_core((pattern,)) for one in alternatives]
            elif (choice := _choice(step)) is not None:
                alternatives = self._with_parts(alternatives, self._parts(choice), step)
            else:
                alternatives = [one.with_rest(step) for one in alternatives]
        return alternatives

    def _in_graph(self, part: Alternative, clause: Clause) -> Alternative:
        """Return an alternative inside GRAPH, whose rest is decided in that graph."""
        self.notes[NAMED_GRAPHS] = None
        name = mentioned(clause.name)
        if not part.rest:
            return replace(part, scope=part.scope.bind((), name))
        rest = (replace(clause, group=part.as_group()),)
        return replace(part, rest=rest, scope=replace(part.scope.bind(name), sensitive=frozenset()))

    def _subquery(self, select: tree.Select) -> list[Alternative]:
        """Return the alternatives of a SELECT inside the query, as far as it is no more than a group."""
        modifiers = select.modifiers
        if is_aggregated(select) or modifiers.limit is not None or modifiers.offset is not None:
            return [Alternative().with_rest(Group((select,)))]
        before = len(self.patterns.fresh.names)
        names = self.patterns.rename(mentioned(select) - set(projected(select)))
        named = (part for part in select.projection if isinstance(part, tree.Named))
        binds = (tree.Bind(part.expression, part.variable) for part in named)
        values = (modifiers.values,) if modifiers.values else ()
        group = Group((select.where, *values, *binds)) if values or select.projection else select.where
        found = self.alternatives(renamed(group, names))
        if select.duplicates:
            self.is_countable &= len(found) == 1
            self.uncounted.update(self.patterns.fresh.names[before:])
        return found

    # Conditions

    def _with_filter(self, alternatives: list[Alternative], condition: tree.Expression) -> list[Alternative]:
        """Return alternatives with a condition of the whole group."""
        element = Filter(condition)
        if isinstance(condition, Exists) and not condition.negated:
            found = [new for one in alternatives for new in self._with_exists(one, condition)]
            return found if len(found) <= MOST_BRANCHES else [one.with_rest(element) for one in alternatives]
        if isinstance(condition, Exists):
            return [_excluded(one, self._exclusion(one, condition.group)).with_rest(element) for one in alternatives]
        limit = _limit(condition)
        return [_limited(one.with_rest(element), limit) for one in alternatives]

    def _with_exists(self, alternative: Alternative, condition: Exists) -> list[Alternative]:
        """Return an alternative joined with the patterns of EXISTS; the store decides EXISTS with other parts."""
        before = len(self.patterns.fresh.names)
        parts = self._certain_parts(alternative, condition.group, alternative.scope.certain)
        self.uncounted.update(self.patterns.fresh.names[before:])
        if parts is None:
            return [alternative.with_rest(Filter(condition))]
        return [alternative.with_core(part) for part in parts]

    def _with_minus(self, alternative: Alternative, clause: Clause) -> Alternative:
        shared = scope_of(clause.group).possible & alternative.scope.possible
        exclusion = self._exclusion(alternative, clause.group, shared) if shared else None
        return _excluded(alternative.with_rest(clause), exclusion)

    def _exclusion(
        self, alternative: Alternative, group: Group, shared: frozenset[str] | None = None
    ) -> Exclusion | None:
        """Return the exclusion of a group, or None if only the store can decide it.

        MINUS passes the variables that it shares: a part without any of them removes nothing.
        """
        parts = self._certain_parts(alternative, group, alternative.core_variables.keys())
        if parts is not None and shared is not None:
            parts = [part for part in parts if shared & core_variables(part).keys()]
        return Exclusion(tuple(parts)) if parts else None

    def _certain_parts(self, alternative: Alternative, group: Group, bound: Iterable[str]) -> list[Conjunction] | None:
        """Return the uncertain patterns of a group that is a condition, if it has no others.

        The variables that it shares with the alternative must be bound; all others get names of their own.
        """
        names = mentioned(group)
        shared = names & alternative.scope.possible
        if not shared <= set(bound):
            return None
        if (group, shared) not in self._conditions:
            parts = self.alternatives(renamed(group, self.patterns.rename(names - shared)))
            is_whole = all(not part.rest for part in parts)
            self._conditions[group, shared] = [part.core for part in parts] if is_whole else None
        return self._conditions[group, shared]


def _excluded(alternative: Alternative, exclusion: Exclusion | None) -> Alternative:
    return alternative if exclusion is None else replace(alternative, core=(*alternative.core, exclusion))


def _limited(alternative: Alternative, limit: Limit | None) -> Alternative:
    return alternative if limit is None else replace(alternative, limits=(*alternative.limits, limit))


def _choice(triple: tree.Triple) -> UnionPattern | None:
    """Return a path of alternatives as a UNION."""
    match triple.predicate:
        case tree.PathOperation("|", parts):
            triples = (replace(triple, predicate=part) for part in parts)
            return UnionPattern(tuple(Group((part,)) for part in triples), span=triple.span)
    return None


def _plain(condition: tree.Expression) -> tree.Expression:
    """Return ! EXISTS as NOT EXISTS."""
    match condition:
        case tree.Call("!", (Exists() as exists,)):
            return replace(exists, negated=not exists.negated)
    return condition


def _limit(condition: tree.Expression) -> Limit | None:
    """Return the values that a condition allows for a variable: by =, IN, or several of them between ||."""
    match condition:
        case tree.Operation(Variable(name), (("=", Iri() as iri),)) | tree.Operation(
            Iri() as iri, (("=", Variable(name)),)
        ):
            return Limit((name,), ((iri,),))
        case tree.Call("IN", (Variable(name), *options)) if all(isinstance(option, Iri) for option in options):
            return Limit((name,), tuple((option,) for option in options))  # type: ignore[misc]
        case tree.Operation(first, (("||", _), *_) as others):
            limits = [_limit(part) for part in (first, *(operand for _, operand in others))]
            return _either([limit for limit in limits if limit is not None], len(limits))
    return None


def _either(limits: list[Limit], count: int) -> Limit | None:
    if len(limits) < count or len({limit.variables for limit in limits}) > 1:
        return None
    return Limit(limits[0].variables, tuple(row for limit in limits for row in limit.rows))
