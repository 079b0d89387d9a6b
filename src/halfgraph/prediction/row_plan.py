"""Plan of a conjunction: which variables a search binds, and what is asked of each of them alone.

Variables that are not selected and hang on one other variable are folded into a factor of it (factors.py).
What remains is a table with the selected variables and those that connect them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from halfgraph.prediction.factors import ClassFactor, Factor, Fold, GivenFactor, LinkFactor, is_anchored, sort_key
from halfgraph.prediction.path_scores import reverse
from halfgraph.query.rows import (
    AnyRelation,
    Conjunction,
    Domain,
    Exclusion,
    Given,
    LinkPattern,
    PathSequence,
    Pattern,
    Relation,
    Term,
    TypePattern,
    Value,
    path_variables,
    pattern_variables,
)


@dataclass(frozen=True)
class RowPlan:
    """A conjunction as a table of variables with factors, patterns between them, and folded parts without variables."""

    variables: tuple[str, ...]
    domains: Mapping[str, Domain]
    factors: Mapping[str, frozenset[Factor]]  # of variables for entities
    links: tuple[LinkPattern, ...]
    types: tuple[TypePattern, ...]  # of named entities, or with a variable for the class
    givens: tuple[Given, ...]
    exclusions: tuple[Exclusion, ...]
    exists: tuple[Fold, ...]
    facts: tuple[LinkPattern | TypePattern, ...]  # all links and types in the order of the query, sequences divided

    @property
    def patterns(self) -> tuple[LinkPattern | TypePattern | Given, ...]:
        return (*self.links, *self.types, *self.givens)

    @property
    def given_only(self) -> frozenset[str]:
        """The variables that only given rows have."""
        patterns: list[Pattern] = [*self.links, *self.types]
        asked = {name for pattern in patterns for name in pattern_variables(pattern)}
        given = {name for pattern in self.givens for name in pattern.variables}
        return frozenset(given - asked - set(self.factors))


def domains_of(conjunction: Conjunction, stated: Mapping[str, Domain]) -> dict[str, Domain]:
    """Return what each variable of a conjunction stands for, those inside exclusions too."""
    domains: dict[str, Domain] = {}
    for pattern in _with_inner(conjunction):
        for name in pattern_variables(pattern):
            domains.setdefault(name, "entity")
        if isinstance(pattern, LinkPattern):
            domains |= dict.fromkeys(path_variables(pattern.path), "relation")
        elif isinstance(pattern, TypePattern) and pattern.variable is not None:
            domains[pattern.variable] = "class"
    return domains | {name: domain for name, domain in stated.items() if name in domains}


def _with_inner(conjunction: Conjunction) -> Iterator[Pattern]:
    for pattern in conjunction:
        yield pattern
        if isinstance(pattern, Exclusion):
            for part in pattern.parts:
                yield from _with_inner(part)


def plan_rows(
    conjunction: Conjunction, kept: Iterable[str], stated: Mapping[str, Domain], *, fold: bool = True
) -> RowPlan:
    """Plan a conjunction; `kept` variables are selected or bound, and with `fold` others are folded where possible."""
    builder = _Builder(domains_of(conjunction, stated), frozenset(kept))
    builder.read(conjunction)
    if fold:
        builder.fold()
    return builder.plan()


@dataclass
class _Builder:
    """A plan in the making."""

    domains: dict[str, Domain]
    kept: frozenset[str]
    factors: dict[str, set[Factor]] = field(default_factory=dict)
    links: dict[LinkPattern, None] = field(default_factory=dict)  # in order, each once
    types: dict[TypePattern, None] = field(default_factory=dict)
    givens: list[Given] = field(default_factory=list)
    exclusions: list[Exclusion] = field(default_factory=list)
    exists: dict[Fold, None] = field(default_factory=dict)
    facts: list[LinkPattern | TypePattern] = field(default_factory=list)

    def read(self, conjunction: Conjunction) -> None:
        uncertain = [pattern for pattern in conjunction if isinstance(pattern, LinkPattern | TypePattern)]
        asked = dict.fromkeys(name for pattern in uncertain for name in pattern_variables(pattern))
        for name in asked:
            if self.domains[name] == "entity":
                self.factors[name] = set()
        for pattern in conjunction:
            match pattern:
                case LinkPattern():
                    self._read_link(pattern)
                case TypePattern():
                    self._read_type(pattern)
                case Given((name,)) if name in self.factors:
                    self._read_values(name, [row[0] for row in pattern.rows])
                case Given():
                    self._read_given(pattern, set(asked))
                case Exclusion():
                    self.exclusions.append(pattern)

    def _read_type(self, pattern: TypePattern) -> None:
        self.facts.append(pattern)
        match pattern:
            case TypePattern(str(name), str(iri), None, subclasses):
                self.factors[name].add(ClassFactor(iri, subclasses))
            case _:
                self.types[pattern] = None

    def _read_values(self, name: str, values: list[Value]) -> None:
        if None not in values:
            self.factors[name].add(GivenFactor(frozenset(value for value in values if isinstance(value, int))))

    def _read_given(self, given: Given, asked: set[str]) -> None:
        """Add given rows; those that share a variable which no other pattern has are joined."""
        for other in self.givens:
            if set(given.variables).intersection(other.variables) - asked:
                self.givens.remove(other)
                return self._read_given(_joined(other, given), asked)
        self.givens.append(given)
        return None

    def _read_link(self, pattern: LinkPattern) -> None:
        source, path, target = pattern.source, pattern.path, pattern.target
        if isinstance(path, PathSequence) and path.parts:
            middles = [f"/{len(self.domains) + number}" for number in range(len(path.parts) - 1)]
            self.domains |= dict.fromkeys(middles, "entity")
            self.factors |= {name: set() for name in middles}
            terms: list[Term] = [source, *middles, target]
            for part, start, end in zip(path.parts, terms, terms[1:], strict=False):
                self._read_link(LinkPattern(start, part, end))
        else:
            self.facts.append(pattern)
            self._add_link(LinkPattern(target, reverse(path), source) if _is_backwards(pattern) else pattern)

    def _add_link(self, pattern: LinkPattern) -> None:
        source, path, target = pattern.source, pattern.path, pattern.target
        if list(path_variables(path)) or isinstance(source, str) == isinstance(target, str):
            self.links[pattern] = None
        elif isinstance(source, int):
            self.factors[str(target)].add(LinkFactor(path, source))
        else:
            self.factors[source].add(LinkFactor(reverse(path), int(target)))

    # Folding

    def fold(self) -> None:
        """Fold leaves into the variable that they hang on, until there are no more."""
        while leaves := self._leaves():
            for name, pattern in leaves.items():
                if pattern is None:
                    self.exists[Fold(frozenset(self.factors.pop(name)))] = None
                elif pattern in self.links:
                    self._fold_into(name, pattern)

    def _leaves(self) -> dict[str, LinkPattern | None]:
        """Return the variables that can be folded now, with the only pattern of each.

        Those that lead to no named entity come first: a path from a named entity is folded towards it, which is exact.
        """
        free = {name for name in self.factors if name not in self.kept and name not in self._pinned()}
        patterns: dict[str, list[LinkPattern]] = {name: [] for name in free}
        for pattern in self.links:
            for name in free.intersection(pattern_variables(pattern)):
                patterns[name].append(pattern)
        names = sorted(
            (name for name in free if len(patterns[name]) < 2), key=lambda name: sort_key(self.factors[name])
        )
        hanging = [name for name in names if not any(map(is_anchored, self.factors[name])) and patterns[name]]
        return {name: patterns[name][0] if patterns[name] else None for name in hanging or names}

    def _pinned(self) -> set[str]:
        """Return the variables of patterns that cannot be folded."""
        loops = (
            pattern for pattern in self.links if pattern.source == pattern.target or any(path_variables(pattern.path))
        )
        others: list[Pattern] = [*loops, *self.types, *self.givens, *self.exclusions]
        return {name for pattern in others for name in pattern_variables(pattern)}

    def _fold_into(self, name: str, pattern: LinkPattern) -> None:
        del self.links[pattern]
        fold = Fold(frozenset(self.factors.pop(name)))
        other, path = (
            (pattern.target, pattern.path) if pattern.source == name else (pattern.source, reverse(pattern.path))
        )
        self.factors[str(other)].add(LinkFactor(path, fold))

    def plan(self) -> RowPlan:
        patterns: list[Pattern] = [*self.links, *self.types, *self.givens]
        named = {name for pattern in patterns for name in pattern_variables(pattern)}
        variables = tuple(name for name in self.domains if name in self.factors or name in named)
        factors = {name: frozenset(factors) for name, factors in self.factors.items()}
        rest = tuple(self.givens), tuple(self.exclusions), tuple(self.exists), tuple(self.facts)
        return RowPlan(variables, self.domains, factors, tuple(self.links), tuple(self.types), *rest)


def _joined(first: Given, second: Given) -> Given:
    """Return the given rows that agree with both; None agrees with any value."""
    further = [column for column, name in enumerate(second.variables) if name not in first.variables]
    shared = [
        (first.variables.index(name), column) for column, name in enumerate(second.variables) if name in first.variables
    ]
    rows: dict[tuple[Value, ...], None] = {}
    for row, other in product(first.rows, second.rows):
        if all(row[left] is None or other[right] in (None, row[left]) for left, right in shared):
            merged = list(row)
            for left, right in shared:
                merged[left] = other[right] if row[left] is None else row[left]
            rows[(*merged, *(other[column] for column in further))] = None
    return Given((*first.variables, *(second.variables[column] for column in further)), tuple(rows))


def _is_backwards(pattern: LinkPattern) -> bool:
    """Whether the pattern is the inverse of one in the direction of the triples."""
    match pattern.path:
        case Relation(number):
            return number % 2 == 1
        case AnyRelation(_, _, inverse):
            return inverse
    return False
