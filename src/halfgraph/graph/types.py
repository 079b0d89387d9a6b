"""Give each entity one type and its final id.

The type comes from its stated types and the class hierarchy, or is guessed by a vote of its relations. Ids are given
type by type, stated before guessed and in alphabetical order, so that they do not depend on the order of the input.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import EntityTypes
from halfgraph.graph.statements import OWL, RDFS, Statements
from halfgraph.graph.vocabulary import Vocabulary

Triples = NDArray[np.int32]

UNTYPED = "Untyped"  # the type of entities without one
GUESSED = "guess: vote of their relations"
OWL_THING = OWL + "Thing"
How = Literal["nearest", "top", "one"]
Untyped = Literal["vote", "leave"]  # how an entity without a stated type gets one
BATCH = 1024  # entities typed at once, to bound the memory
FEWEST_VOTERS = 5  # typed entities that a relation needs at one end to vote for the type of others there
# Classes of everything: ignored beside any other class.
UNIVERSAL = frozenset({OWL_THING, OWL + "NamedIndividual", RDFS + "Resource"})


@dataclass
class Hierarchy:
    """Classes and their superclasses."""

    parents: Mapping[str, set[str]]
    _distances: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Hierarchy":
        parents: dict[str, set[str]] = defaultdict(set)
        for lower, upper in pairs:
            if lower != upper:
                parents[lower].add(upper)
        return cls(dict(parents))

    def ancestors(self, name: str) -> dict[str, int]:
        """Return each superclass of a class, itself included, with its distance."""
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
        """Return the classes that are not a superclass of another of them."""
        names = sorted(set(classes))
        return [name for name in names if not any(self._is_wider(name, other) for other in names)]

    def _is_wider(self, name: str, other: str) -> bool:
        """Return whether a class is a superclass of another; in a cycle the alphabetically later one is."""
        if name == other or name not in self.ancestors(other):
            return False
        return other not in self.ancestors(name) or other < name

    def nearest_common(self, classes: Iterable[str]) -> str | None:
        """Return the nearest common superclass of the classes, themselves included, or None."""
        narrow = self.narrowest(classes)
        if len(narrow) == 1:
            return narrow[0]
        common = set.intersection(*(set(self.ancestors(name)) for name in narrow))
        reach = {name: [self.ancestors(lower)[name] for lower in narrow] for name in common}
        return min(common, key=lambda name: (max(reach[name]), sum(reach[name]), name), default=None)

    def roots(self) -> set[str]:
        """Return the root: the only class without a superclass, else owl:Thing."""
        everything = set(self.parents).union(*self.parents.values()) if self.parents else set()
        tops = {name for name in everything if not self.parents.get(name)}
        if OWL_THING in everything or len(tops) != 1:
            return {OWL_THING}
        return tops

    def first_level(self, classes: Iterable[str]) -> list[str]:
        """Return the superclasses of the classes just below the root."""
        roots = self.roots()
        above = {upper for name in classes for upper in self.ancestors(name)} - roots
        return sorted(name for name in above if self.parents.get(name, set()) <= roots)


@dataclass(frozen=True)
class TypeAssignment:
    """The type of every used entity, by its position, and the number of entities typed in each way."""

    names: list[str]
    types: NDArray[np.int32]
    is_stated: NDArray[np.bool_]
    counts: Counter[str]


def assign_types(
    statements: Statements,
    used: NDArray[np.integer],
    triples: NDArray[np.int32],
    how: How,
    *,
    untyped: Untyped = "vote",
    smallest: int = 1,
) -> TypeAssignment:
    """Give each used entity (provisional ids, sorted) one type; triples (n, 3) have positions among the used."""
    if how == "one":
        types, is_stated = np.zeros(len(used), np.int32), np.zeros(len(used), bool)
        return TypeAssignment(["Entity"], types, is_stated, Counter({"one type for all": len(used)}))
    stated, counts = _stated_types(statements, used, how)
    names = sorted(set(stated.values()))
    numbers = {name: number for number, name in enumerate(names)}
    types = np.full(len(used), -1, dtype=np.int32)
    for position, name in stated.items():
        types[position] = numbers[name]
    is_stated = types >= 0
    if untyped == "vote" and names and not is_stated.all():
        vote(types, triples, len(statements.relations), len(names))
    return _settle(names, types, is_stated, counts, smallest)


def _stated_types(statements: Statements, used: NDArray[np.integer], how: How) -> tuple[dict[int, str], Counter[str]]:
    """Return the type of each used entity with stated types, by its position among the used."""
    classes = list(statements.classes)
    positions = np.full(len(statements.names), -1, dtype=np.int32)
    positions[used] = np.arange(len(used), dtype=np.int32)
    of: dict[int, set[int]] = defaultdict(set)
    for entity, class_id in zip(statements.typed, statements.types, strict=True):
        of[entity].add(class_id)
    frequency = Counter(class_id for types in of.values() for class_id in types)
    hierarchy = Hierarchy.of(statements.super_classes)
    memo: dict[frozenset[int], tuple[str, str]] = {}
    counts: Counter[str] = Counter()
    stated: dict[int, str] = {}
    for entity, types in of.items():
        if (position := int(positions[entity])) >= 0:
            key = frozenset(types)
            if key not in memo:
                memo[key] = _reduce({classes[k]: frequency[k] for k in types}, hierarchy, how)
            stated[position], way = memo[key]
            counts[way] += 1
    return stated, counts


def _reduce(frequency: Mapping[str, int], hierarchy: Hierarchy, how: How) -> tuple[str, str]:
    """Reduce stated types (with their frequency in the graph) to one; return it and how it was chosen."""
    types = sorted(set(frequency) - UNIVERSAL) or sorted(frequency)
    if how == "top":
        tops = hierarchy.first_level(types)
        if len(tops) == 1:
            return tops[0], "level-1 class"
        if tops:
            weight = {top: sum(frequency[name] for name in types if top in hierarchy.ancestors(name)) for top in tops}
            return min(tops, key=lambda top: (-weight[top], top)), "most frequent of several level-1 classes"
    if len(types) == 1:
        return types[0], "only stated type"
    common = hierarchy.nearest_common(types)
    if common is not None:
        return common, "nearest common superclass of stated types"
    return min(types, key=lambda name: (-frequency[name], name)), "most frequent of unrelated stated types"


def vote(types: NDArray[np.int32], triples: NDArray[np.int32], relation_count: int, type_count: int) -> None:
    """Give each entity of type -1, in place, the type with more than half of the votes of its relations, if any.

    Each of its triples has one vote, shared among the types of the entities at the same end of the relation.
    """
    keys = (triples[:, 0].astype(np.int64) * relation_count + triples[:, 1]) * len(types) + triples[:, 2]
    rest, tails = np.divmod(np.unique(keys), len(types))  # each triple once
    heads, relations = np.divmod(rest, relation_count)
    # A role is the head (2r) or the tail (2r + 1) of a relation.
    entities, roles = np.concatenate([heads, tails]), np.concatenate([2 * relations, 2 * relations + 1])
    held, times = np.unique(entities * (2 * relation_count) + roles, return_counts=True)
    entities, roles = np.divmod(held, 2 * relation_count)
    typed = types[entities] >= 0
    usual = np.zeros((2 * relation_count, type_count))  # share of each type among the typed entities of a role
    np.add.at(usual, (roles[typed], types[entities[typed]]), 1.0)
    voters = usual.sum(axis=1, keepdims=True)
    usual = np.where(voters < FEWEST_VOTERS, 0.0, usual / np.maximum(voters, 1.0))
    roles, times = roles[~typed], times[~typed]
    untyped, firsts = np.unique(entities[~typed], return_index=True)
    for first in range(0, len(untyped), BATCH):
        batch = slice(first, first + BATCH)
        last = firsts[first + BATCH] if first + BATCH < len(firsts) else len(roles)
        rows = slice(firsts[first], last)
        votes = np.add.reduceat(usual[roles[rows]] * times[rows, None], firsts[batch] - firsts[first], axis=0)
        types[untyped[batch]] = np.where(2 * votes.max(axis=1) > votes.sum(axis=1), votes.argmax(axis=1), -1)


def _settle(
    names: list[str], types: NDArray[np.int32], is_stated: NDArray[np.bool_], counts: Counter[str], smallest: int
) -> TypeAssignment:
    """Return the assignment; entities without a type, or of a type that is too small, become `Untyped`."""
    untyped = types < 0
    small = ~untyped & (np.bincount(types[~untyped], minlength=len(names) + 1)[types] < smallest)
    counts[GUESSED] = int((~is_stated & ~small & ~untyped).sum())
    counts[f"{UNTYPED}: their type has too few entities"] = int(small.sum())
    counts[f"{UNTYPED}: no type"] = int(untyped.sum())
    names, types = [*names, UNTYPED], np.where(small | untyped, len(names), types)
    kept = sorted({names[k] for k in np.unique(types)})
    numbers = np.array([kept.index(name) if name in kept else -1 for name in names], dtype=np.int32)
    return TypeAssignment(kept, numbers[types], is_stated & ~small, +counts)


@dataclass(frozen=True)
class Numbered:
    """A graph with final ids, ready to be written."""

    parts: dict[str, Triples]
    entities: Vocabulary
    relations: Vocabulary
    types: EntityTypes
    stated: list[int]  # number of entities of each type that have it by a statement; they come first
    ways: Mapping[str, int]  # number of entities that got their type in each way


def number(
    statements: Statements, parts: dict[str, Triples], how: How, *, untyped: Untyped = "vote", smallest: int = 1
) -> Numbered:
    """Give entities and relations their final ids; frees the names of the statements."""
    is_used = np.zeros(len(statements.names), dtype=bool)
    for triples in parts.values():
        is_used[triples[:, 0]] = is_used[triples[:, 2]] = True
    used = np.flatnonzero(is_used)
    positions = np.cumsum(is_used, dtype=np.int32) - 1
    _renumber(parts, positions)
    triples = np.concatenate(list(parts.values())) if len(parts) > 1 else next(iter(parts.values()))
    assignment = assign_types(statements, used, triples, how, untyped=untyped, smallest=smallest)
    names = [name for name, kept in zip(statements.names, is_used.tolist(), strict=True) if kept]
    statements.names.clear()
    by_name = _by_name(names)
    guessed_last = 2 * assignment.types + ~assignment.is_stated
    order = by_name[np.argsort(guessed_last[by_name], kind="stable")]
    _renumber(parts, _inverse(order))
    entities = _vocabulary([names[i] for i in order.tolist()], statements)
    relation_names = list(statements.relations)
    relation_order = _by_name(relation_names)
    for triples in parts.values():
        triples[:, 1] = 2 * _inverse(relation_order)[triples[:, 1]]
    relations = _vocabulary([relation_names[i] for i in relation_order.tolist()], statements)
    starts = np.searchsorted(assignment.types[order], np.arange(len(assignment.names) + 1)).astype(np.int64)
    types = EntityTypes(tuple(assignment.names), starts)
    stated = np.bincount(assignment.types[assignment.is_stated], minlength=len(types)).tolist()
    return Numbered(parts, entities, relations, types, stated, assignment.counts)


def _by_name(names: list[str]) -> Triples:
    """Return the positions of the names in alphabetical order."""
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int32)


def _renumber(parts: dict[str, Triples], numbers: Triples) -> None:
    """Replace the heads and tails of the triples by new ids, in place."""
    for triples in parts.values():
        triples[:, 0], triples[:, 2] = numbers[triples[:, 0]], numbers[triples[:, 2]]


def _inverse(order: Triples) -> Triples:
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return numbers


def _vocabulary(names: list[str], statements: Statements) -> Vocabulary:
    return Vocabulary.of(names, [statements.labels.get(name, (0, ""))[1] for name in names])
