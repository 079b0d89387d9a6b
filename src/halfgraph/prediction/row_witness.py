"""Witness of a row: a value for every variable, and the facts that they need."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from halfgraph.prediction.partial_rows import UNBOUND
from halfgraph.prediction.row_ways import ConjunctionRows, RowContext, Values
from halfgraph.query.rows import AnyRelation, LinkPattern, Path, Relation, RowQuery, Term, Value

TRIED = 64  # assignments that are compared exactly


@dataclass(frozen=True)
class LinkStep:
    """A link of a witness, in the direction of the triples."""

    head: int
    relation: int
    tail: int
    known: bool
    probability: float  # 1 if known
    negated: bool = False  # the query excludes it


@dataclass(frozen=True)
class MembershipStep:
    """A class of an entity of a witness."""

    entity: int
    iri: str
    known: bool
    probability: float
    negated: bool = False


RowStep = LinkStep | MembershipStep


@dataclass(frozen=True)
class RowWitness:
    """The conjunction that holds, by its number, the value of every variable, and the facts, excluded ones last."""

    conjunction: int
    values: Mapping[str, Value]
    steps: tuple[RowStep, ...]
    probability: float  # of these facts together


def best_witness(context: RowContext, query: RowQuery, values: tuple[Value, ...]) -> RowWitness | None:
    """Return the most probable witness of a row over all conjunctions."""
    found = (_witness(context, query, number, values) for number in range(len(query.conjunctions)))
    return max(filter(None, found), key=lambda witness: witness.probability, default=None)


def _witness(context: RowContext, query: RowQuery, number: int, values: tuple[Value, ...]) -> RowWitness | None:
    rows = ConjunctionRows.of(context, query.conjunctions[number], query.selected, fold=False)
    selected = dict(zip(query.selected, values, strict=True))
    bound = {name: _code(context, value) for name, value in selected.items() if value is not None}
    own = {name for name in query.selected if name in rows.plan.variables}
    if set(bound) - own or own - set(bound) - rows.plan.given_only or UNBOUND in bound.values():
        return None
    best = _best(rows, bound)
    if best is None:
        return None
    assignment, probability = best
    steps = (*_steps(rows, assignment, negated=False), *_excluded_steps(rows, assignment))
    known = {
        name: _decoded(context, rows, name, value) for name, value in assignment.items() if not name.startswith("/")
    }
    return RowWitness(number, known, steps, probability)


def _code(context: RowContext, value: Value) -> int:
    if isinstance(value, str):
        return context.facts.classes.index(value) if value in context.facts.classes else UNBOUND
    return UNBOUND if value is None else value


def _decoded(context: RowContext, rows: ConjunctionRows, name: str, value: int) -> Value:
    if value == UNBOUND:
        return None
    return context.facts.classes[value] if rows.plan.domains[name] == "class" else value


def _best(rows: ConjunctionRows, bound: Values) -> tuple[dict[str, int], float] | None:
    """Return the values of all variables with the most probable way."""
    table, best = rows.search.rows(bound), None
    columns = {name: column[:TRIED].tolist() for name, column in table.columns.items()}
    for row in range(min(TRIED, len(table))):
        assignment = {name: column[row] for name, column in columns.items()}
        likely = max(map(rows.context.lineage.way_probability, rows.ways(assignment)), default=0.0)
        if likely > 0 and (best is None or likely > best[1]):
            best = assignment, likely
    return best


def _steps(rows: ConjunctionRows, values: Values, *, negated: bool) -> Iterator[RowStep]:
    """Yield the facts of bound variables, in the order of the query."""
    for pattern in rows.plan.facts:
        if isinstance(pattern, LinkPattern):
            ends = _value(pattern.source, values), pattern.path, _value(pattern.target, values)
            yield from _link_steps(rows, *ends, values, negated)
        else:
            iri = pattern.iri or rows.facts.classes[values[str(pattern.variable)]]
            yield _member(rows, _value(pattern.term, values), iri, pattern.subclasses, negated)


def _value(term: Term, values: Values) -> int:
    return term if isinstance(term, int) else values[term]


def _link_steps(
    rows: ConjunctionRows, head: int, path: Path, tail: int, values: Values, negated: bool
) -> Iterator[LinkStep]:
    match path:
        case AnyRelation(variable=str(name), inverse=inverse):
            path = Relation(values[name] ^ int(inverse))
    for start, relation, end in rows.context.paths.best_links(path, head, tail):
        likely = rows.facts.link(start, relation, end)
        forward = (start, relation, end) if relation % 2 == 0 else (end, relation ^ 1, start)
        yield LinkStep(*forward, likely == 1, likely, negated)


def _member(rows: ConjunctionRows, entity: int, iri: str, subclasses: bool, negated: bool) -> MembershipStep:
    likely = float(rows.facts.members(iri, subclasses)[entity])
    return MembershipStep(entity, iri, likely == 1, likely, negated)


def _excluded_steps(rows: ConjunctionRows, values: Values) -> Iterator[RowStep]:
    """Yield the facts of the most probable way in which each excluded part could hold."""
    for exclusion in rows.plan.exclusions:
        for part in exclusion.parts:
            bound = rows.bound_in(part, values)
            inner = ConjunctionRows.of(rows.context, part, bound, fold=False)
            best = _best(inner, {name: value for name, value in bound.items() if name in inner.plan.variables})
            if best is not None:
                yield from _steps(inner, {**bound, **best[0]}, negated=True)
