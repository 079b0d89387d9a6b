"""Predicted rows: candidates by their probability, tested and completed by the store, merged by selected columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from halfgraph.answering.cells import Cell
from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.predicted_rows import rounded
from halfgraph.answering.schema import KnownAnswer, PredictedAnswer, Truth
from halfgraph.answering.store_rows import GraphStore
from halfgraph.prediction.lineage import Lineage, Way
from halfgraph.prediction.row_executor import CandidateRow, RowExecutor
from halfgraph.query.rows import Value
from halfgraph.sparql.filters import AT_ONCE
from halfgraph.sparql.results import Binding, Term, entity_term
from halfgraph.sparql.row_completion import completed, known_rows
from halfgraph.sparql.row_reading import Branch, RowReading
from halfgraph.sparql.syntax_tree import Iri, Literal, Variable

SPARE = 32  # candidates beyond those wanted, since rows may merge and exclusions change their order
TESTED = 4 * AT_ONCE  # candidates of a branch that the store tests at most

Key = tuple[tuple[str, ...] | None, ...]  # the cells of a row, comparable


@dataclass(frozen=True)
class Solution:
    """A row that the store has completed, and the ways in which it can hold."""

    binding: Binding
    ways: Sequence[Way]
    probability: float  # of any of the ways


@dataclass
class Solutions:
    """Completed rows of all branches, with the probabilities of the facts that they need."""

    rows: list[Solution] = field(default_factory=list)
    lineage: Lineage = field(default_factory=Lineage)
    notes: list[str] = field(default_factory=list)

    def merged(self, columns: Sequence[str]) -> dict[Key, tuple[Binding, float]]:
        """Return the rows by some columns with the probability of each, the most probable first."""
        ways: dict[Key, tuple[Binding, list[Way]]] = {}
        for row in self.rows:
            ways.setdefault(key_of(row.binding, columns), (row.binding, []))[1].extend(row.ways)
        merged = {key: (binding, self.lineage.probability(some)) for key, (binding, some) in ways.items()}
        return dict(sorted(merged.items(), key=lambda item: -item[1][1]))


def binding_of(row: Mapping[str, Cell]) -> Binding:
    """Return the cells of a row as in SPARQL's JSON results."""
    return {name: cell.term() for name, cell in row.items()}


def key_of(binding: Binding, columns: Iterable[str]) -> Key:
    """Return some cells of a row in a comparable form; an unbound one is None."""
    return tuple(_term_key(binding[name]) if name in binding else None for name in columns)


def _term_key(term: Term) -> tuple[str, ...]:
    if term["type"] == "triple":
        return "triple", repr(term["value"])
    return term["type"], term["value"], term.get("datatype") or "", term.get("xml:lang") or ""


@dataclass(frozen=True)
class RowAnswers:
    """Predicts the rows of queries with any number of variables; without an executor there are exact rows only."""

    search: RowExecutor | None
    store: GraphStore
    names: EntityNames

    @property
    def executor(self) -> RowExecutor:
        assert self.search is not None, "nothing is predicted without an executor"
        return self.search

    def predict(
        self, reading: RowReading, columns: Sequence[str], known: Sequence[KnownAnswer], top: int
    ) -> tuple[list[PredictedAnswer], list[str]]:
        """Return the best rows that are not known, and notes on what was cut off."""
        solutions = self.solutions(reading, top + SPARE)
        merged = solutions.merged(columns)
        merged = self._unknown(reading, merged, columns, known)
        best = list(merged.values())[:top]
        return [self.answer(columns, binding, probability) for binding, probability in best], solutions.notes

    def answer(self, columns: Sequence[str], binding: Binding, probability: float) -> PredictedAnswer:
        """Return a row with labels and its confidence."""
        row, confidence = self.names.row(columns, binding), rounded(probability)
        return PredictedAnswer(*self.names.head_of(row), confidence, confidence, row)

    def truth(self, reading: RowReading, *, is_known: bool) -> tuple[Truth, list[str]]:
        """Return whether a pattern has a match, and the probability that it has one."""
        if is_known:
            return Truth(True, 1.0), []
        solutions = self.solutions(reading, AT_ONCE)
        probability = solutions.lineage.probability(way for row in solutions.rows for way in row.ways)
        return Truth(False, rounded(probability)), solutions.notes

    def solutions(self, reading: RowReading, count: int) -> Solutions:
        """Return the best rows of every branch that the store confirms, completed."""
        solutions = Solutions()
        for branch in reading.branches:
            wanted = count if is_free(reading, branch) else max(count, AT_ONCE)
            result = self.executor.rows(reading.query(branch), wanted)
            solutions.notes += [note for note in result.notes if note not in solutions.notes]
            solutions.lineage.probabilities.update(result.lineage.probabilities)
            solutions.rows += self._completed(reading, branch, result.rows)
        return solutions

    def _completed(self, reading: RowReading, branch: Branch, candidates: Sequence[CandidateRow]) -> Iterator[Solution]:
        """Yield the rows that the store confirms, with all their columns."""
        rows = {self._terms(reading, branch, row.values): row for row in candidates}
        if is_free(reading, branch):
            for terms, row in rows.items():
                pairs = zip(branch.variables, terms, strict=True)
                yield Solution(
                    {name: entity_term(value) for name, value in pairs if value is not None}, row.ways, row.probability
                )
            return
        named = [terms for terms in rows if not any(value and value.startswith("_:") for value in terms)]
        for first in range(0, len(named), AT_ONCE):
            values = [tuple(map(_iri, terms)) for terms in named[first : first + AT_ONCE]]
            for binding in self.store.rows(completed(reading, branch, values)).bindings:
                terms = tuple(binding[name]["value"] if name in binding else None for name in branch.variables)
                yield Solution(binding, rows[terms].ways, rows[terms].probability)

    def _terms(self, reading: RowReading, branch: Branch, values: Sequence[Value]) -> tuple[str | None, ...]:
        domains = (reading.domains.get(name, "entity") for name in branch.variables)
        return tuple(self.names.iri(value, domain) for value, domain in zip(values, domains, strict=True))

    def _unknown(
        self,
        reading: RowReading,
        rows: dict[Key, tuple[Binding, float]],
        columns: Sequence[str],
        known: Sequence[KnownAnswer],
    ) -> dict[Key, tuple[Binding, float]]:
        """Return the rows that are not known, not even beyond LIMIT and OFFSET."""
        modifiers = reading.select.modifiers
        if modifiers.offset or len(known) == modifiers.limit:
            bindings = self.known_among(reading, columns, rows)
        else:
            bindings = [binding_of(answer.row) for answer in known]
        keys = {key_of(binding, columns) for binding in bindings}
        return {key: row for key, row in rows.items() if key not in keys}

    def known_among(
        self, reading: RowReading, columns: Sequence[str], rows: Mapping[Key, tuple[Binding, float]]
    ) -> Sequence[Binding]:
        """Return known rows, those among some rows included."""
        values = [tuple(_syntax(binding.get(name)) for name in columns) for binding, _ in rows.values()]
        return self.store.rows(known_rows(reading, values)).bindings


def _syntax(term: Term | None) -> Iri | Literal | None:
    """Return a term for VALUES; a blank node cannot be named and is left open."""
    if term is None or term["type"] not in ("uri", "literal"):
        return None
    value = str(term["value"])
    return Iri(value) if term["type"] == "uri" else Literal(value, term.get("datatype"), term.get("xml:lang"))


def _iri(value: str | None) -> Iri | None:
    return None if value is None else Iri(value)


def is_free(reading: RowReading, branch: Branch) -> bool:
    """Whether the store has nothing to decide or to add."""
    columns = completed(reading, branch, []).projection
    return not branch.rest.elements and all(isinstance(column, Variable) for column in columns)
