"""One type for each entity: from stated types and the class hierarchy, by the relations it takes part in, or none."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.statements import OWL, RDFS, Statements

THING = "Thing"
OWL_THING = OWL + "Thing"
How = Literal["nearest", "top", "one"]
Untyped = Literal["vote", "thing"]  # how an entity without a type gets a type
VOTERS = 1024  # entities that vote at once, so that memory does not grow with untyped entities times types
# What anything may be said to be, so that it tells nothing where something else is said as well.
SAYS_NOTHING = frozenset({OWL_THING, OWL + "NamedIndividual", RDFS + "Resource"})


@dataclass
class Hierarchy:
    """Classes and their super classes."""

    parents: Mapping[str, set[str]]
    _distances: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Hierarchy":
        """The hierarchy of (class, super class) pairs."""
        parents: dict[str, set[str]] = defaultdict(set)
        for lower, upper in pairs:
            if lower != upper:
                parents[lower].add(upper)
        return cls(dict(parents))

    def ancestors(self, name: str) -> dict[str, int]:
        """Each super class of a class, itself included, with the steps to it."""
        if name not in self._distances:
            steps, queue = {name: 0}, deque([name])
            while queue:
                at = queue.popleft()
                for upper in sorted(self.parents.get(at, ())):
                    if upper not in steps:
                        steps[upper] = steps[at] + 1
                        queue.append(upper)
            self._distances[name] = steps
        return self._distances[name]

    def narrowest(self, classes: Iterable[str]) -> list[str]:
        """The classes that are no super class of another of them."""
        names = sorted(set(classes))
        return [name for name in names if not any(self._is_wider(name, other) for other in names)]

    def _is_wider(self, name: str, other: str) -> bool:
        """Whether a class is a super class of another; of two that are each other's, the later in the alphabet is."""
        if name == other or name not in self.ancestors(other):
            return False
        return other not in self.ancestors(name) or other < name

    def nearest_common(self, classes: Iterable[str]) -> str | None:
        """The nearest super class that all of the classes have, themselves included."""
        narrow = self.narrowest(classes)
        if len(narrow) == 1:
            return narrow[0]
        common = set.intersection(*(set(self.ancestors(name)) for name in narrow))
        reach = {name: [self.ancestors(lower)[name] for lower in narrow] for name in common}
        return min(common, key=lambda name: (max(reach[name]), sum(reach[name]), name), default=None)

    def roots(self) -> set[str]:
        """The root: owl:Thing, or else the one class that stands above all others and below none."""
        everything = set(self.parents).union(*self.parents.values()) if self.parents else set()
        tops = {name for name in everything if not self.parents.get(name)}
        if OWL_THING in everything or len(tops) != 1:
            return {OWL_THING}
        return tops

    def first_level(self, classes: Iterable[str]) -> list[str]:
        """The super classes just below the root of each of the classes."""
        roots = self.roots()
        return sorted(
            {
                upper
                for name in classes
                for upper in self.ancestors(name)
                if upper not in roots and self.parents.get(upper, set()) <= roots
            }
        )


@dataclass(frozen=True)
class Decision:
    """The type of every used entity (by its place among them) and how many came by which way."""

    names: list[str]
    types: NDArray[np.int32]
    counts: Counter[str]


def decide(
    statements: Statements,
    used: NDArray[np.integer],
    triples: NDArray[np.int32],
    how: How,
    *,
    untyped: Untyped = "vote",
    smallest: int = 1,
) -> Decision:
    """One type for each used entity (provisional ids, sorted); triples (n, 3) are of places among the used."""
    if how == "one":
        return Decision(["Entity"], np.zeros(len(used), np.int32), Counter({"one type for all": len(used)}))
    stated, counts = _stated_types(statements, used, how)
    names = sorted(set(stated.values()))
    numbers = {name: number for number, name in enumerate(names)}
    types = np.full(len(used), -1, dtype=np.int32)
    for place, name in stated.items():
        types[place] = numbers[name]
    missing = int((types < 0).sum())
    if untyped == "vote" and names and missing:
        vote(types, triples, len(statements.relations), len(names))
        counts["by the relations they take part in"] = missing - int((types < 0).sum())
    return _settle(names, types, counts, smallest)


def _stated_types(statements: Statements, used: NDArray[np.integer], how: How) -> tuple[dict[int, str], Counter[str]]:
    """The type of each used entity that has a type, by its place among the used."""
    classes = list(statements.classes)
    places = np.full(len(statements.names), -1, dtype=np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    of: dict[int, set[int]] = defaultdict(set)
    for entity, class_id in zip(statements.typed, statements.types, strict=True):
        of[entity].add(class_id)
    frequency = Counter(class_id for types in of.values() for class_id in types)
    hierarchy = Hierarchy.of(statements.super_classes)
    memo: dict[frozenset[int], tuple[str, str]] = {}
    counts: Counter[str] = Counter()
    stated: dict[int, str] = {}
    for entity, types in of.items():
        if (place := int(places[entity])) >= 0:
            key = frozenset(types)
            if key not in memo:
                memo[key] = _reduce({classes[k]: frequency[k] for k in types}, hierarchy, how)
            stated[place], way = memo[key]
            counts[way] += 1
    return stated, counts


def _reduce(frequency: Mapping[str, int], hierarchy: Hierarchy, how: How) -> tuple[str, str]:
    """One type for some types (each with its frequency in the graph), and the way it was found."""
    types = sorted(set(frequency) - SAYS_NOTHING) or sorted(frequency)
    if how == "top":
        tops = hierarchy.first_level(types)
        if len(tops) == 1:
            return tops[0], "by their level-1 class"
        if tops:
            weight = {top: sum(frequency[name] for name in types if top in hierarchy.ancestors(name)) for top in tops}
            return min(tops, key=lambda top: (-weight[top], top)), "by the commonest of several level-1 classes"
    if len(types) == 1:
        return types[0], "by their one type"
    common = hierarchy.nearest_common(types)
    if common is not None:
        return common, "by the nearest common super class of their types"
    return min(types, key=lambda name: (-frequency[name], name)), "by the commonest of several unrelated types"


def vote(types: NDArray[np.int32], triples: NDArray[np.int32], relation_count: int, type_count: int) -> None:
    """Nothing; each entity of type -1 gets the type usual at its places in triples, if its places tell one."""
    heads, relations, tails = _without_duplicates(triples, len(types), relation_count)
    # A place is the head (2r) or the tail (2r + 1) of a relation; in it is an entity.
    entities, places = np.concatenate([heads, tails]), np.concatenate([2 * relations, 2 * relations + 1])
    typed = types[entities] >= 0
    usual = np.zeros((2 * relation_count, type_count))  # the share of each type among the typed entities in a place
    np.add.at(usual, (places[typed], types[entities[typed]]), 1.0)
    usual /= np.maximum(usual.sum(axis=1, keepdims=True), 1.0)
    held = entities[~typed] * (2 * relation_count) + places[~typed]
    held, times = np.unique(held, return_counts=True)  # sorted, so that sums do not depend on the order of the triples
    entities, places = np.divmod(held, 2 * relation_count)
    wanting, firsts = np.unique(entities, return_index=True)
    for first in range(0, len(wanting), VOTERS):
        some = slice(first, first + VOTERS)
        last = firsts[first + VOTERS] if first + VOTERS < len(firsts) else len(places)
        own = slice(firsts[first], last)
        votes = np.add.reduceat(usual[places[own]] * times[own, None], firsts[some] - firsts[first], axis=0)
        types[wanting[some]] = np.where(votes.max(axis=1) > 0, votes.argmax(axis=1), -1)


def _without_duplicates(
    triples: NDArray[np.int32], entity_count: int, relation_count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The heads, relations and tails of the triples (n, 3), each triple once."""
    keys = (triples[:, 0].astype(np.int64) * relation_count + triples[:, 1]) * entity_count + triples[:, 2]
    rest, tails = np.divmod(np.unique(keys), entity_count)
    heads, relations = np.divmod(rest, relation_count)
    return heads, relations, tails


def _settle(names: list[str], types: NDArray[np.int32], counts: Counter[str], smallest: int) -> Decision:
    """The decision, with entities of no type and of types too small under `Thing`; types that are left, by name."""
    sizes = np.bincount(types[types >= 0], minlength=len(names))
    untyped = types < 0
    small = ~untyped & (np.append(sizes, 0)[types] < smallest)
    if small.any():
        counts["Thing, their type having too few entities"] = int(small.sum())
    if untyped.any():
        counts["Thing, having no type"] = int(untyped.sum())
    kept = {names[k] for k in np.unique(types[~untyped & ~small])}
    if (small | untyped).any():
        kept.add(THING)
    numbers = {name: number for number, name in enumerate(sorted(kept))}
    table = np.array([numbers.get(name, -1) for name in [*names, THING]], dtype=np.int32)
    return Decision(sorted(kept), table[np.where(small | untyped, len(names), types)], counts)
