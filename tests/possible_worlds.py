"""Probabilities of rows by enumerating all possible worlds, and a link predictor that is a table of probabilities."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, combinations, product
from math import prod

import numpy as np

from halfgraph.prediction.baselines import TriplesByRelation
from halfgraph.prediction.link_executor import LinkExecutor
from halfgraph.prediction.row_executor import RowExecutor
from halfgraph.query.rows import (
    AnyRelation,
    Conjunction,
    Exclusion,
    Given,
    LinkPattern,
    Path,
    PathChoice,
    PathRepeat,
    PathSequence,
    Relation,
    RowQuery,
    TypePattern,
    Value,
    path_variables,
    pattern_variables,
)
from query_oracles import Triple, graph_of

Fact = Triple | tuple[int, str]  # a link in the direction of the triples, or an entity and a class
Row = tuple[Value, ...]


@dataclass(frozen=True)
class SmallWorld:
    """Known and uncertain facts of a few entities."""

    entities: int
    relations: int  # of both directions
    classes: tuple[str, ...]
    known: frozenset[Fact]
    uncertain: Mapping[Fact, float] = field(hash=False)

    def worlds(self) -> Iterator[tuple[frozenset[Fact], float]]:
        """Every set of facts that may hold, with its probability."""
        facts = list(self.uncertain)
        for chosen in chain.from_iterable(combinations(facts, size) for size in range(len(facts) + 1)):
            likely = prod(p if fact in chosen else 1 - p for fact, p in self.uncertain.items())
            yield self.known | set(chosen), likely

    def executor(self) -> RowExecutor:
        """The executor for this world."""
        links = TableLinks(self)
        return RowExecutor(LinkExecutor(links, None), links.members, lambda: self.classes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class TableLinks:
    """As a link predictor: the probabilities of a small world, 0 for all other links."""

    world: SmallWorld

    @cached_property
    def graph(self):
        triples = [fact for fact in self.world.known if len(fact) == 3]
        return graph_of(triples, [self.world.entities], self.world.relations)

    @cached_property
    def triples(self):
        return TriplesByRelation.of(self.graph)

    @cached_property
    def row(self):
        return cache(self._row)

    def _row(self, head: int, relation: int):
        row = np.zeros(self.world.entities, np.float32)
        for fact, likely in self.world.uncertain.items():
            if len(fact) == 3:
                for start, own, end in (fact, (fact[2], fact[1] ^ 1, fact[0])):
                    if (start, own) == (head, relation):
                        row[end] = likely
        return row

    def rows(self, pairs: Iterable[tuple[int, int]]):
        return {pair: self.row(*pair) for pair in pairs}

    def probability(self, head: int, relation: int, tail: int) -> float:
        return 1.0 if tail in self.graph.tails_of(head, relation) else float(self.row(head, relation)[tail])

    def known_tails(self, relation: int):
        return np.bincount(self.triples.of_relation(relation)[0], minlength=self.world.entities)

    def missing_tails(self, relation: int):
        return np.stack([self.row(head, relation) for head in range(self.world.entities)]).sum(axis=1)

    def members(self, iri: str, _subclasses: bool):
        scores = np.zeros(self.world.entities, np.float32)
        for entity in range(self.world.entities):
            known = (entity, iri) in self.world.known
            scores[entity] = 1.0 if known else self.world.uncertain.get((entity, iri), 0.0)
        return scores


def row_probabilities(world: SmallWorld, query: RowQuery) -> dict[Row, float]:
    """The probability of every row, by all worlds; rows that are known are left out."""
    likely: dict[Row, float] = {}
    for facts, share in world.worlds():
        for row in exact_rows(world, facts, query):
            likely[row] = likely.get(row, 0.0) + share
    return {row: p for row, p in likely.items() if row not in exact_rows(world, world.known, query)}


def any_row_probability(world: SmallWorld, query: RowQuery) -> float:
    """The probability that there is any row; 1 if one is known."""
    if exact_rows(world, world.known, query):
        return 1.0
    return sum(share for facts, share in world.worlds() if exact_rows(world, facts, query))


def exact_rows(world: SmallWorld, facts: frozenset[Fact], query: RowQuery) -> set[Row]:
    """The rows of a query where just these facts hold."""
    rows = set()
    for conjunction in query.conjunctions:
        for values in solutions(world, facts, conjunction, {}):
            rows.add(tuple(values.get(name) for name in query.selected))
    return rows


def solutions(
    world: SmallWorld, facts: frozenset[Fact], conjunction: Conjunction, bound: Mapping[str, Value]
) -> Iterator[dict[str, Value]]:
    """Values of all variables with which a conjunction holds, one value after another."""
    uncertain = [pattern for pattern in conjunction if isinstance(pattern, LinkPattern | TypePattern)]
    exclusions = [pattern for pattern in conjunction if isinstance(pattern, Exclusion)]
    free = sorted({name for pattern in uncertain for name in pattern_variables(pattern)} - set(bound))
    for values in product(*(values_of(world, uncertain, name) for name in free)):
        every = {**bound, **dict(zip(free, values, strict=True))}
        if all(holds(world, facts, pattern, every) for pattern in uncertain):
            for merged in with_given_rows(conjunction, every):
                if not any(excludes(world, facts, pattern, merged) for pattern in exclusions):
                    yield merged


def with_given_rows(conjunction: Conjunction, values: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """The values with those of one row of each given table that agrees with them."""
    tables = [pattern for pattern in conjunction if isinstance(pattern, Given)]
    for rows in product(*(table.rows for table in tables)):
        merged, agree = dict(values), True
        for table, row in zip(tables, rows, strict=True):
            for name, value in zip(table.variables, row, strict=True):
                agree = agree and (value is None or merged.setdefault(name, value) == value)
        if agree:
            yield merged


def excludes(world: SmallWorld, facts: frozenset[Fact], pattern: Exclusion, values: Mapping[str, Value]) -> bool:
    """Whether any part of an exclusion holds."""
    return any(next(solutions(world, facts, part, values), None) is not None for part in pattern.parts)


def values_of(world: SmallWorld, patterns: list[LinkPattern | TypePattern], name: str) -> list[Value]:
    """All values that a variable can have."""
    if any(isinstance(own, LinkPattern) and name in path_variables(own.path) for own in patterns):
        return list(range(0, world.relations, 2))
    if any(isinstance(own, TypePattern) and own.variable == name for own in patterns):
        return list(world.classes)
    return list(range(world.entities))


def holds(
    world: SmallWorld, facts: frozenset[Fact], pattern: LinkPattern | TypePattern, values: Mapping[str, Value]
) -> bool:
    """Whether a link or a type holds with values of all its variables."""
    match pattern:
        case LinkPattern(source, path, target):
            pairs = path_pairs(world, facts, path, values)
            return (values.get(source, source), values.get(target, target)) in pairs
        case TypePattern(term, iri, variable):
            return (values.get(term, term), iri if variable is None else values[variable]) in facts


def path_pairs(
    world: SmallWorld, facts: frozenset[Fact], path: Path, values: Mapping[str, Value]
) -> set[tuple[int, int]]:
    """All pairs of entities that a path leads between."""
    match path:
        case Relation(number):
            forward = {(fact[0], fact[2]) for fact in facts if len(fact) == 3 and fact[1] == number & ~1}
            return forward if number % 2 == 0 else {(tail, head) for head, tail in forward}
        case AnyRelation(variable, excluded, inverse):
            numbers = [values[variable]] if variable else range(0, world.relations, 2)
            some = [path_pairs(world, facts, Relation(n ^ inverse), values) for n in numbers if n not in excluded]
            return set().union(*some)
        case PathSequence(parts):
            pairs = {(entity, entity) for entity in range(world.entities)}
            for part in parts:
                pairs = joined(pairs, path_pairs(world, facts, part, values))
            return pairs
        case PathChoice(parts):
            return set().union(*(path_pairs(world, facts, part, values) for part in parts))
        case PathRepeat(part, least, most):
            step, pairs = path_pairs(world, facts, part, values), {(entity, entity) for entity in range(world.entities)}
            for _ in range(least):
                pairs = joined(pairs, step)
            for _ in range(world.entities + 1 if most is None else most - least):
                pairs = pairs | joined(pairs, step)
            return pairs


def joined(first: set[tuple[int, int]], second: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The pairs over a common middle."""
    return {(start, end) for start, middle in first for other, end in second if middle == other}
