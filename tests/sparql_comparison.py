"""Compare the predictions for a SPARQL text with all possible worlds of a graph that fits the text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from unittest.mock import patch

import pyoxigraph as ox

from fitting_graphs import FittingGraph
from halfgraph.answering.row_answers import key_of
from halfgraph.answering.schema import Answers
from halfgraph.errors import SparqlError, UnknownName
from halfgraph.graph.statements import TYPE
from halfgraph.query.rows import Exclusion
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.label_service import with_labels
from halfgraph.sparql.parse import Request, parse
from halfgraph.sparql.prefixes import COMMON, Prefixes
from halfgraph.sparql.read import request_of
from halfgraph.sparql.results import store_term
from halfgraph.sparql.row_reading import RowReading, read_rows
from halfgraph.sparql.scopes import is_aggregated, mentioned, projected, scope_of
from halfgraph.sparql.syntax_tree import (
    Call,
    Clause,
    Exists,
    Group,
    Iri,
    Modifiers,
    Named,
    Select,
    Triple,
    Variable,
    walk,
)
from halfgraph.sparql.writer import write
from imported_graphs import short_lived
from sparql_worlds import Row, Worlds, answer_key, ask, predicted_rows, solutions, unrounded

MOST_UNCERTAIN = 6  # links
TOP = 400
ERROR = 1e-6
ROUNDED = 1e-3  # expected values have four digits
RANDOM = {"RAND", "UUID", "STRUUID", "BNODE", "NOW"}
UNORDERED = {"SAMPLE", "GROUP_CONCAT"}  # aggregates whose value depends on the order of rows
CUTS = ("may be missing", "were counted", "at most", "among the first", "too many", "for the best")  # in notes
PREFIXES = Prefixes({"": "http://halfgraph.local/", **COMMON}, "http://halfgraph.local/")


@dataclass
class Comparison:
    """What was compared for a text, and what was wrong."""

    rows: int = 0  # predicted rows, triples and expected values that were compared
    is_predicted: bool = False
    wrong: list[str] = field(default_factory=list)

    def add(self, what: str, *details: object) -> None:
        self.wrong.append(f"{what}: {' '.join(map(str, details))}"[:1500])


def compare(text: str, seed: int) -> Comparison | None:
    """Compare a text on two graphs that fit it; None if it cannot be predicted.

    On the second one, nothing that the store decides depends on uncertain links, so that probabilities are exact.
    """
    try:
        query = with_labels(parse(text, PREFIXES).tree)
    except SparqlError:
        return None
    if isinstance(query, tree.Update):
        return None
    found = Comparison()
    with unrounded():
        decided = _compare_on_graph(text, query, Random(seed), frozenset(), found)
        if decided:
            _compare_on_graph(text, query, Random(seed), decided, found)
    return None if decided is None else found


def _compare_on_graph(
    text: str, query: tree.Query, random: Random, excluded: frozenset[str], found: Comparison
) -> frozenset[str] | None:
    """Compare a text on one graph; return the relations that only the store sees, or None if there is no reading."""
    fitting = FittingGraph(query, random)
    fitting.fill()
    known, uncertain = fitting.split(excluded, MOST_UNCERTAIN)
    with short_lived("".join(f"{triple} .\n" for triple in known), "nt") as graph:
        try:
            request = request_of(text, graph)
            reading = read_rows(request, graph)
        except (SparqlError, UnknownName):
            return None
        decided = frozenset(iri for iri in store_relations(reading) if graph.find_relation(iri) is not None)
        likely = {
            triple: p
            for triple, p in uncertain.items()
            if graph.find_relation(triple.predicate.value) is not None
            and all(graph.find_entity(end.value) is not None for end in (triple.subject, triple.object))
        }
        worlds = Worlds(graph, likely, [ox.Quad(*triple) for triple in known])
        is_exact = not decided & {triple.predicate.value for triple in likely} and not _names_graphs(request.tree)
        check = _Check(worlds, request, reading, found, is_exact)
        try:
            with patch("halfgraph.prediction.row_ways.ENUMERATED", 10**12):  # nothing is folded
                check.run()
            check.sound_rows()
        except (SparqlError, UnknownName) as error:
            found.add("error", error)
    return decided


def store_relations(reading: RowReading) -> Iterator[str]:
    """Yield the relations of patterns that only the store sees; a variable predicate is any relation of the text."""
    for branch in reading.branches:
        negations = sum(isinstance(pattern, Exclusion) for pattern in branch.conjunction)
        negated = [node for node in branch.rest.elements if _is_negation(node)]
        is_counted = negations >= len(negated) and not reading.is_aggregated
        for element in branch.rest.elements:
            if not (is_counted and _is_negation(element)):
                yield from _predicates(element, reading)


def _is_negation(node: object) -> bool:
    match node:
        case tree.Filter(Exists(negated=True)) | Clause("MINUS"):
            return True
    return False


def _predicates(node: object, reading: RowReading) -> Iterator[str]:
    triples = [part for part in walk(node) if isinstance(part, Triple)]
    is_any = any(isinstance(triple.predicate, Variable) or "!" in write(triple) for triple in triples)
    source = (reading.select.where,) if is_any else tuple(triple.predicate for triple in triples)
    yield from (part.value for part in walk(source) if isinstance(part, Iri) and part.value != TYPE)


def _names_graphs(query: tree.Query) -> bool:
    return bool(query.graphs) or any(isinstance(node, Clause) and node.keyword == "GRAPH" for node in walk(query))


def calls(query: tree.Query) -> set[str]:
    return {node.function for node in walk(query) if isinstance(node, Call) and isinstance(node.function, str)}


def unlimited(query: tree.Query) -> tree.Query:
    """Return a query without LIMIT, OFFSET and ORDER BY."""
    return replace(query, modifiers=replace(query.modifiers, limit=None, offset=None, order_by=()))


@dataclass(frozen=True)
class _Check:
    """Compares the answers to a text on one graph."""

    worlds: Worlds
    request: Request
    reading: RowReading
    found: Comparison
    is_exact: bool

    def run(self) -> None:
        query = self.request.tree
        answers = ask(self.worlds, self.request, TOP)
        self.found.is_predicted |= bool(answers.predicted)
        if isinstance(query, Select):
            self._known_rows(query, answers)
            if self.is_comparable(query):
                self._predicted(query, answers)
        self._forms(query)

    def is_comparable(self, query: tree.Query) -> bool:
        """Whether the result of a query is determined by the graph."""
        inner = [node for node in walk(query) if isinstance(node, Select) and node is not query]
        is_cut = any(node.modifiers.limit is not None or node.modifiers.offset for node in inner)
        return not (is_cut or calls(query) & RANDOM or any(calls(node) & UNORDERED for node in inner))

    # Known rows

    def _known_rows(self, query: Select, answers: Answers) -> None:
        if not self.is_comparable(query):
            return
        columns = [name for name in answers.variables if name not in self._unordered(query)]
        own = [answer_key(one.row, columns) for one in answers.known]
        store, _ = self.worlds.stores[0]
        _, bindings = solutions(store, write(query))
        expected = [key_of(row, columns) for row in bindings]
        if query.modifiers.limit is None and not query.modifiers.offset:
            if Counter(own) != Counter(expected):
                self.found.add("known rows", Counter(own) - Counter(expected), Counter(expected) - Counter(own))
        elif len(own) != len(expected):
            self.found.add("number of known rows", len(own), len(expected))
        sorted_by = [term.name for term, _ in query.modifiers.order_by if isinstance(term, Variable)]
        if sorted_by and len(sorted_by) == len(query.modifiers.order_by):
            places = [columns.index(name) for name in sorted_by if name in columns][:1]
            first = sorted_by[0] in columns
            if first and [row[places[0]] for row in own] != [row[places[0]] for row in expected]:
                self.found.add("order of known rows", sorted_by)

    def _unordered(self, query: Select) -> set[str]:
        named = (part for part in query.projection if isinstance(part, Named))
        functions = {part.variable.name: {n.function for n in walk(part) if isinstance(n, Call)} for part in named}
        return {name for name, used in functions.items() if used & UNORDERED}

    # Predicted rows

    def _predicted(self, query: Select, answers: Answers) -> None:
        if is_aggregated(query):
            if self.is_exact:
                self._aggregates(query, answers)
        elif self.is_exact:
            self._rows(query, answers, list(answers.variables))
        else:
            self._unknown_rows(query, answers)
            required = without_optional(query)
            if required is not None and self._sees_all(required):
                self._rows(required, answers, list(projected(required)))

    def _sees_all(self, required: Select) -> bool:
        """Whether nothing but OPTIONAL was decided by the store."""
        reading = read_rows(replace(self.request, tree=required), self.worlds.graph)
        uncertain = {triple.predicate.value for triple in self.worlds.uncertain}
        return not uncertain & set(store_relations(reading)) and not _names_graphs(required)

    def _unknown_rows(self, query: Select, answers: Answers) -> None:
        store, _ = self.worlds.stores[0]
        columns = list(answers.variables)
        known = {key_of(row, columns) for row in solutions(store, write(unlimited(query)))[1]}
        for row in predicted_rows(answers):
            if row in known:
                self.found.add("a known row is predicted", row)

    def sound_rows(self) -> None:
        """Check that each predicted row is in some world, where variables may be folded."""
        query = self.request.tree
        if not isinstance(query, Select) or is_aggregated(query) or not self.is_exact or not self.is_comparable(query):
            return
        answers = ask(self.worlds, self.request, TOP)
        _, likely, known = self.worlds.expected(write(unlimited(query)), list(answers.variables))
        for row in predicted_rows(answers):
            if row in known or likely.get(row, 0.0) == 0:
                self.found.add("known" if row in known else "impossible", row)

    def _rows(self, query: Select, answers: Answers, columns: list[str]) -> None:
        """Compare the rows of all worlds with predicted ones."""
        _, likely, known = self.worlds.expected(write(unlimited(query)), columns)
        rows = {row: p for row, p in self._projected(answers, columns).items() if row not in known}
        is_cut = self._is_cut(answers) or len(answers.predicted) >= TOP
        self.found.rows += len(rows)
        if self.is_exact and len(rows) < len(answers.predicted):
            self.found.add("a known row is predicted", len(answers.predicted) - len(rows))
        expected = {row: p for row, p in likely.items() if row not in known and p > ERROR}
        for row in rows.keys() | expected.keys():
            own, right = rows.get(row, 0.0), expected.get(row, 0.0)
            if own > right + ERROR or (own < right - ERROR and not is_cut):
                self.found.add(
                    "probability", dict(zip(columns, row, strict=True)), own, "expected", right, answers.notes
                )

    def _projected(self, answers: Answers, columns: list[str]) -> dict[Row, float]:
        """Return the probability of some cells of predicted rows; rows that share them have the same one."""
        rows: dict[Row, float] = {}
        for one in answers.predicted:
            key = answer_key(one.row, columns)
            rows[key] = max(rows.get(key, 0.0), one.score)
        return rows

    def _is_cut(self, answers: Answers) -> bool:
        return any(words in note for note in answers.notes for words in CUTS)

    def _aggregates(self, query: Select, answers: Answers) -> None:
        """Compare expected values of groups with their means, and the probability of new groups."""
        modifiers = query.modifiers
        if modifiers.having or modifiers.limit is not None or modifiers.offset or self._is_cut(answers):
            return
        keys = [part.name for part in query.projection if isinstance(part, Variable)]
        means, likely = self._means(query, keys)
        for one in (*answers.known, *answers.predicted):
            key = answer_key(one.row, keys)
            for name, value in (one.expected or {}).items():
                self.found.rows += 1
                if abs(value - means.get((key, name), 0.0)) > ROUNDED:
                    self.found.add("expected value", key, name, value, "mean", means.get((key, name)), answers.notes)
        for one in answers.predicted:
            key = answer_key(one.row, keys)
            if abs(one.score - likely.get(key, 0.0)) > ERROR:
                self.found.add("probability of a group", key, one.score, "expected", likely.get(key))

    def _means(self, query: Select, keys: list[str]) -> tuple[dict[tuple[Row, str], float], dict[Row, float]]:
        means: dict[tuple[Row, str], float] = {}
        likely: dict[Row, float] = {}
        for store, share in self.worlds.stores:
            for row in solutions(store, write(unlimited(query)))[1]:
                key = key_of(row, keys)
                likely[key] = likely.get(key, 0.0) + share
                for name, term in row.items():
                    if term["type"] == "literal":
                        means[key, name] = means.get((key, name), 0.0) + share * _number(term["value"])
        return means, likely

    # Other forms

    def _forms(self, query: tree.Query) -> None:
        where = query.where or Group(())
        values = Modifiers(values=query.modifiers.values)
        if not is_aggregated(query):
            self._ask(tree.Ask(where, modifiers=values, graphs=query.graphs, base=query.base))
        template = query.template if isinstance(query, tree.Construct) else _template(where)
        if template and not is_aggregated(query):
            self._construct(tree.Construct(template, where, modifiers=values, graphs=query.graphs, base=query.base))
        names = sorted(scope_of(where).certain)[:1]
        if names and not is_aggregated(query):
            ask(self.worlds, self._other(tree.Describe((Variable(names[0]),), where, graphs=query.graphs)), 10)

    def _other(self, query: tree.Query) -> Request:
        return replace(self.request, tree=query)

    def _ask(self, query: tree.Ask) -> None:
        answers = ask(self.worlds, self._other(query), TOP)
        if answers.truth is None or not self.is_exact or not self.is_comparable(query):
            return
        holds = [(bool(store.query(write(query))), share) for store, share in self.worlds.stores]
        right = sum(share for yes, share in holds if yes)
        self.found.rows += 1
        if answers.truth.known != holds[0][0]:
            self.found.add("ASK", answers.truth, holds[0])
        elif not holds[0][0]:
            own = answers.truth.probability
            if own > right + ERROR or (own < right - ERROR and not self._is_cut(answers)):
                self.found.add("probability of ASK", own, "expected", right, answers.notes)

    def _construct(self, query: tree.Construct) -> None:
        answers = ask(self.worlds, self._other(query), TOP)
        if not self.is_exact or not self.is_comparable(query):
            return
        own = {
            tuple(
                key_of({"t": cell.term()}, ["t"]) for cell in (one.subject, one.predicate, one.object)
            ): one.confidence
            for one in answers.triples or []
            if not one.known
        }
        likely = Counter[Row]()
        first: set[Row] | None = None
        for store, share in self.worlds.stores:
            triples = {
                tuple(key_of({"t": store_term(t)}, ["t"]) for t in triple) for triple in store.query(write(query))
            }
            first = triples if first is None else first
            likely.update(dict.fromkeys(triples, share))
        is_cut = self._is_cut(answers) or len(own) >= TOP
        self.found.rows += len(own)
        for triple in own.keys() | likely.keys():
            if triple not in (first or ()):
                mine, right = own.get(triple) or 0.0, likely[triple]
                if mine > right + ERROR or (mine < right - ERROR and not is_cut):
                    self.found.add("probability of a triple", triple, mine, "expected", right, answers.notes)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _template(where: Group) -> tuple[Triple, ...]:
    """Return the plain triples of a pattern as a template."""
    triples = (node for node in where.elements if isinstance(node, Triple))
    return tuple(one for one in triples if isinstance(one.predicate, Iri | Variable) and "_:" not in write(one))


def without_optional(query: Select) -> Select | None:
    """Return a query without OPTIONAL and its columns; None if its other parts use them or nothing is left."""
    kept = tuple(node for node in query.where.elements if not _is_optional(node))
    if len(kept) == len(query.where.elements):
        return None
    certain = scope_of(Group(kept)).possible
    binds = {node.variable.name for node in kept if isinstance(node, tree.Bind)}
    dropped = scope_of(query.where).possible - certain
    used = [node for node in kept if mentioned(node) & dropped]
    labels = [node for node in used if isinstance(node, tree.Bind)]
    if len(used) > len(labels) or any(_is_optional(node) for node in walk(Group(kept))):
        return None
    kept = tuple(node for node in kept if node not in labels)
    bound = certain - {node.variable.name for node in labels}
    if mentioned(kept) & (binds - bound):
        return None
    columns = tuple(part for part in _columns(query) if mentioned(part) <= bound or _name(part) in bound)
    return replace(unlimited(query), where=Group(kept), projection=columns) if columns else None


def _columns(query: Select) -> tuple[Variable | Named, ...]:
    return query.projection or tuple(map(Variable, projected(query)))


def _name(part: Variable | Named) -> str:
    return part.name if isinstance(part, Variable) else part.variable.name


def _is_optional(node: object) -> bool:
    return isinstance(node, Clause) and node.keyword in ("OPTIONAL", "LATERAL")
