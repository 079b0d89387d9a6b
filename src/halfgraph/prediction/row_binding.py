"""Binding: a conjunction with values in place of some of its variables."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from halfgraph.prediction.link_predictor import Pair
from halfgraph.query.rows import (
    AnyRelation,
    Conjunction,
    Exclusion,
    Given,
    LinkPattern,
    Path,
    Pattern,
    Relation,
    Term,
    TypePattern,
    Value,
)

IMPOSSIBLE = Given((), ())  # no row


def bind(conjunction: Conjunction, values: Mapping[str, Value]) -> Conjunction:
    """Put values in place of variables, inside exclusions too."""
    return tuple(_bound(pattern, values) for pattern in conjunction)


def _bound(pattern: Pattern, values: Mapping[str, Value]) -> Pattern:
    match pattern:
        case LinkPattern(_, AnyRelation(str(name), excluded)) if values.get(name) in excluded:
            return IMPOSSIBLE
        case LinkPattern(source, path, target):
            return LinkPattern(_term(source, values), _path(path, values), _term(target, values))
        case TypePattern(term, iri, variable):
            iri = str(values[variable]) if variable is not None and variable in values else iri
            return replace(pattern, term=_term(term, values), iri=iri, variable=None if iri else variable)
        case Given():
            return _given(pattern, values)
        case Exclusion(parts):
            return Exclusion(tuple(bind(part, values) for part in parts))


def _term(term: Term, values: Mapping[str, Value]) -> Term:
    value = values.get(term) if isinstance(term, str) else None
    return value if isinstance(value, int) else term


def _path(path: Path, values: Mapping[str, Value]) -> Path:
    match path:
        case AnyRelation(str(name), _, inverse) if name in values:
            return Relation(int(str(values[name])) ^ int(inverse))
    return path


def _given(pattern: Given, values: Mapping[str, Value]) -> Given:
    """Keep the rows that agree with the values, without their columns."""
    free = [column for column, name in enumerate(pattern.variables) if name not in values]
    bound = [(column, values[name]) for column, name in enumerate(pattern.variables) if name in values]
    rows = (row for row in pattern.rows if all(row[column] in (None, value) for column, value in bound))
    variables = tuple(pattern.variables[column] for column in free)
    return Given(variables, tuple(dict.fromkeys(tuple(row[column] for column in free) for row in rows)))


def needed_rows(conjunction: Conjunction) -> Iterator[Pair]:
    """Yield the heads and relations whose missing links are needed for a conjunction with values in place."""
    for pattern in conjunction:
        match pattern:
            case LinkPattern(source, Relation(number), int(target)):
                yield (target, number ^ 1) if not isinstance(source, int) else (source, number)
            case LinkPattern(int(source), Relation(number), _):
                yield source, number
            case Exclusion(parts):
                for part in parts:
                    yield from needed_rows(part)
