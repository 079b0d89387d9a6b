"""Ways of rows: the missing facts that a row of a conjunction needs, and those that it excludes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod

from halfgraph.prediction.factors import Factor, Factors, LinkFactor
from halfgraph.prediction.facts import Facts, Likely
from halfgraph.prediction.lineage import (
    CERTAIN,
    Event,
    FoldedEvent,
    Lineage,
    MembershipEvent,
    Way,
    link_event,
    simplify,
)
from halfgraph.prediction.partial_rows import UNBOUND
from halfgraph.prediction.path_scores import reverse
from halfgraph.prediction.path_ways import MOST_ENTITIES, PathWays
from halfgraph.prediction.row_binding import bind, needed_rows
from halfgraph.prediction.row_plan import RowPlan, plan_rows
from halfgraph.prediction.row_search import RowSearch
from halfgraph.query.rows import (
    AnyRelation,
    Conjunction,
    Domain,
    Path,
    Relation,
    Term,
    TypePattern,
    Value,
    pattern_variables,
)

Needs = frozenset[Event]
Values = Mapping[str, int]  # of variables: entity, relation, or number of a class
ENUMERATED = 256  # values of all variables that are not selected, up to which they are tried and not folded
MOST_WAYS = 256  # of one row
MOST_EXCLUDED = 64  # sets of facts that a way excludes; more are one event
FEW_RELATIONS = 8  # of a path, each of which is an event of its own
NEGLIGIBLE = 1e-3  # share of the sum of all ways of a row, below which the last ones are left out
WAYS_NOTE = f"Of the ways in which a row can hold, the best {MOST_WAYS} were counted."
NOTHING: Needs = frozenset()


@dataclass(frozen=True)
class RowContext:
    """What all conjunctions of a query share."""

    facts: Facts
    domains: Mapping[str, Domain]
    paths: PathWays
    factors: Factors

    @classmethod
    def of(cls, facts: Facts, domains: Mapping[str, Domain]) -> "RowContext":
        paths = PathWays(facts)
        return cls(facts, domains, paths, Factors(paths))

    @property
    def lineage(self) -> Lineage:
        return Lineage(self.facts.probabilities)


@dataclass
class ConjunctionRows:
    """Rows and ways of one conjunction."""

    context: RowContext
    conjunction: Conjunction
    plan: RowPlan
    search: RowSearch
    is_folded: bool  # whether not all values of all variables can be tried
    _inner: dict[tuple[Conjunction, frozenset[str]], "ConjunctionRows"] = field(default_factory=dict)

    @classmethod
    def of(
        cls, context: RowContext, conjunction: Conjunction, kept: Iterable[str], *, fold: bool = True
    ) -> "ConjunctionRows":
        """Plan a conjunction. Variables are not folded if all their values can be tried."""
        kept = frozenset(kept)
        plan = plan_rows(conjunction, kept, context.domains, fold=False)
        free = [name for name in plan.factors if name not in kept]
        is_folded = fold and context.facts.count ** len(free) > ENUMERATED
        if is_folded:
            plan = plan_rows(conjunction, kept, context.domains)
        return cls(context, conjunction, plan, RowSearch(plan, context.factors), is_folded)

    @property
    def facts(self) -> Facts:
        return self.context.facts

    def decoded(self, bound: Values) -> dict[str, Value]:
        """Return the values of variables as a query has them."""
        names = ((name, self.plan.domains.get(name), value) for name, value in bound.items())
        return {name: self.facts.classes[value] if domain == "class" else value for name, domain, value in names}

    def prepare(self, rows: Iterable[Values]) -> None:
        """Compute the missing links that the ways of some rows need together."""
        if self.plan.exclusions or self.is_folded:
            bound = (bind(self.conjunction, self.decoded(values)) for values in rows)
            self.facts.fetch(pair for conjunction in bound for pair in needed_rows(conjunction))

    def all_ways(self, bound: Values) -> list[Way]:
        """Return the ways in which the conjunction holds with values of some variables, the best ones if many."""
        if not self.plan.givens and all(name in bound for name in self.plan.variables):
            return self.ways(bound)
        if bound and self.is_folded:
            return ConjunctionRows.of(self.context, bind(self.conjunction, self.decoded(bound)), ()).all_ways({})
        cuts = self.facts.cuts
        table = self.search.rows({name: bound[name] for name in self.plan.variables if name in bound})
        most = MOST_WAYS if self.facts.cuts == cuts else min(MOST_WAYS, _worthwhile(table.scores))
        if len(table) > most:
            self.facts.cut(WAYS_NOTE)
        columns = {name: column[:most].tolist() for name, column in table.columns.items()}
        rows = zip(*columns.values(), strict=True) if columns else [()][:most]
        return simplify(way for row in rows for way in self.ways({**bound, **dict(zip(columns, row, strict=True))}))

    def ways(self, values: Values) -> list[Way]:
        """Return the ways of a row, given the value of every variable."""
        excludes = self._excluded(values)
        if excludes is None:
            return []
        needs = (frozenset().union(*choice) for choice in self._choices(values))
        return [Way(own, excludes) for own in dict.fromkeys(needs) if not any(some <= own for some in excludes)]

    # Needed facts

    def _choices(self, values: Values) -> Iterable[tuple[Needs, ...]]:
        """Return the choices of needed facts, one for each pattern; the best of each first, and not too many."""
        parts = [part for part in self._parts(values) if part != [NOTHING]]
        if prod(map(len, parts)) > MOST_WAYS:
            self.facts.cut(WAYS_NOTE)
        return islice(product(*(self._by_probability(part) for part in parts)), MOST_WAYS)

    def _by_probability(self, part: Sequence[Needs]) -> Sequence[Needs]:
        known = self.facts.probabilities
        return sorted(part, key=lambda needs: -prod(known[event] for event in needs))

    def _parts(self, values: Values) -> Iterable[list[Needs]]:
        """Yield for each pattern the sets of facts of which one is needed."""
        for name, factors in self.plan.factors.items():
            for factor in factors:
                yield self._factor(factor, values[name])
        for pattern in self.plan.links:
            yield self.link(_value(pattern.source, values), pattern.path, _value(pattern.target, values), values)
        for member in self.plan.types:
            yield self._membership(member, values)
        for fold in self.plan.exists:
            yield self._single(FoldedEvent(fold, UNBOUND), self.context.factors.exists(fold))

    def _factor(self, factor: Factor, entity: int) -> list[Needs]:
        if isinstance(factor, LinkFactor) and isinstance(factor.end, int):
            return self.link(factor.end, factor.path, entity, {})
        event = self.context.factors.event(factor, entity)
        return [NOTHING] if event is None else self._single(event, self.facts.probabilities[event])

    def _single(self, event: Event, likely: float) -> list[Needs]:
        """Return one needed fact; none if it is known, no choice if it is impossible."""
        if likely <= 0 or likely == 1:
            return [NOTHING] if likely == 1 else []
        self.facts.probabilities.setdefault(event, likely)
        return [frozenset({event})]

    def _membership(self, pattern: TypePattern, values: Values) -> list[Needs]:
        entity = _value(pattern.term, values)
        iri = pattern.iri or self.facts.classes[values[str(pattern.variable)]]
        likely = float(self.facts.members(iri, pattern.subclasses)[entity])
        return self._single(MembershipEvent(entity, iri, pattern.subclasses), likely)

    def link(self, head: int, path: Path, tail: int, values: Values) -> list[Needs]:
        """Return the sets of links, one of which leads from one entity to another."""
        match path:
            case Relation(relation):
                return self._single(link_event(head, relation, tail), self.facts.link(head, relation, tail))
            case AnyRelation(str(name), excluded):
                number = values[name]
                return [] if number in excluded else self.link(head, Relation(number), tail, values)
        direct, few = self.context.paths.direct(path), self.facts.count <= MOST_ENTITIES
        if direct is not None and (few or len(direct.relations) <= FEW_RELATIONS):
            if direct.reflexive and head == tail:
                return [NOTHING]
            choices = [self.link(head, Relation(relation), tail, values) for relation in direct.relations]
            return [NOTHING] if [NOTHING] in choices else [needs for choice in choices for needs in choice]
        listed = None if direct is not None else self.context.paths.ways(path, head)
        return self._path(head, path, tail) if listed is None else list(listed.get(tail, ()))

    def _path(self, head: int, path: Path, tail: int) -> list[Needs]:
        """Return the event that a path leads from one entity to another, the same one in both directions."""
        likely, back = float(self.context.paths.tails(path, head)[tail]), reverse(path)
        ends = min((repr(path), path, head, tail), (repr(back), back, tail, head))
        return self._single(FoldedEvent(ends[1], ends[3], ends[2]), likely)

    # Excluded facts

    def _excluded(self, values: Values) -> frozenset[Needs] | None:
        """Return the sets of facts that must not hold; None if the row is excluded by known facts."""
        excluded: set[Needs] = set()
        for pattern in self.plan.exclusions:
            for part in pattern.parts:
                ways = self.inner_ways(part, values)
                if CERTAIN in ways:
                    return None
                excluded.update(ways_needs := [way.needs for way in ways])
                if len(ways) > MOST_EXCLUDED or any(way.excludes for way in ways):
                    excluded -= set(ways_needs)
                    excluded.add(frozenset({self._folded(part, values, ways)}))
        return frozenset(excluded)

    def bound_in(self, part: Conjunction, values: Values) -> dict[str, int]:
        """Return the values of the variables that an excluded part shares with a row."""
        names = dict.fromkeys(name for pattern in part for name in pattern_variables(pattern))
        return {name: values[name] for name in names if values.get(name, UNBOUND) != UNBOUND}

    def inner_ways(self, part: Conjunction, values: Values) -> list[Way]:
        """Return the ways in which an excluded part holds for a row."""
        bound = self.bound_in(part, values)
        key = part, frozenset(bound)
        if key not in self._inner:
            self._inner[key] = ConjunctionRows.of(self.context, part, bound)
        return self._inner[key].all_ways(bound)

    def _folded(self, part: Conjunction, values: Values, ways: Sequence[Way]) -> Event:
        event = FoldedEvent((part, tuple(sorted(self.bound_in(part, values).items()))), UNBOUND)
        self.facts.probabilities[event] = self.context.lineage.probability(ways)
        return event


def _value(term: Term, values: Values) -> int:
    return term if isinstance(term, int) else values[term]


def _worthwhile(scores: Likely) -> int:
    """Return how many ways, the best first, are worth counting if they cannot all be listed."""
    if not len(scores):
        return 0
    rest = scores[::-1].cumsum()[::-1]  # from each way on
    return int((rest > NEGLIGIBLE * rest[0]).sum())
