"""Queries for rows: patterns between terms, with any number of selected variables.

A query tree (tree.py) leads from entities to one variable. A row query has no direction: its patterns may form cycles
or unconnected parts, its relations may be variables, and it need not name an entity. Its links are uncertain; whatever
else a text asks is decided by the store and is no part of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Term = int | str  # an entity's id, or the name of a variable
Value = int | str | None  # of a variable: the id of an entity or of a relation, the IRI of a class, or unbound
Domain = Literal["entity", "relation", "class"]


@dataclass(frozen=True)
class Relation:
    """One relation by its id: even in the direction of the triples, odd against it."""

    id: int


@dataclass(frozen=True)
class AnyRelation:
    """Any relation in the direction of the triples but the excluded ones; `variable` stands for it, if given."""

    variable: str | None = None
    excluded: frozenset[int] = frozenset()
    inverse: bool = False  # against the direction of the triples


@dataclass(frozen=True)
class PathSequence:
    """Paths one after another."""

    parts: tuple["Path", ...]


@dataclass(frozen=True)
class PathChoice:
    """Any of some paths."""

    parts: tuple["Path", ...]


@dataclass(frozen=True)
class PathRepeat:
    """A path repeated: `?` is from 0 to 1 times, `*` from 0 and `+` from 1 to any number of times (None)."""

    path: "Path"
    least: int
    most: int | None


Path = Relation | AnyRelation | PathSequence | PathChoice | PathRepeat


@dataclass(frozen=True)
class LinkPattern:
    """A path leads from one term to another."""

    source: Term
    path: Path
    target: Term


@dataclass(frozen=True)
class TypePattern:
    """A term has a class, given by its IRI or a variable; with `subclasses`, or one of its subclasses."""

    term: Term
    iri: str | None = None
    variable: str | None = None
    subclasses: bool = False


@dataclass(frozen=True)
class Given:
    """Some variables have the values of one of the rows; None in a row allows any value."""

    variables: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Exclusion:
    """None of some conjunctions holds; their variables that occur nowhere else stand for any value."""

    parts: tuple["Conjunction", ...]


Pattern = LinkPattern | TypePattern | Given | Exclusion
Conjunction = tuple[Pattern, ...]


@dataclass(frozen=True)
class RowQuery:
    """Conjunctions of which one must hold, and the selected variables.

    A selected variable that a conjunction does not have is unbound in its rows.
    """

    conjunctions: tuple[Conjunction, ...]
    selected: tuple[str, ...]
    domains: dict[str, Domain] = field(default_factory=dict)  # of variables that are no entities


def path_variables(path: Path) -> Iterator[str]:
    """Yield the variables that stand for relations of a path."""
    match path:
        case AnyRelation(variable=str(name)):
            yield name
        case PathSequence(parts) | PathChoice(parts):
            for part in parts:
                yield from path_variables(part)
        case PathRepeat(inner):
            yield from path_variables(inner)


def pattern_variables(pattern: Pattern) -> Iterator[str]:
    """Yield the variables of a pattern, those inside an exclusion too."""
    match pattern:
        case LinkPattern(source, path, target):
            yield from (term for term in (source, target) if isinstance(term, str))
            yield from path_variables(path)
        case TypePattern(term, _, variable):
            yield from (name for name in (term, variable) if isinstance(name, str))
        case Given(variables):
            yield from variables
        case Exclusion(parts):
            for part in parts:
                for inner in part:
                    yield from pattern_variables(inner)


def is_uncertain(conjunction: Conjunction) -> bool:
    """Whether a conjunction has a link or a type that may be missing."""
    return any(isinstance(pattern, LinkPattern | TypePattern) for pattern in conjunction)
