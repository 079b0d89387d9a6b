"""Answers to queries that are no query tree: rows of several variables, aggregates, ASK, CONSTRUCT and DESCRIBE."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from halfgraph.answering.aggregates import aggregate
from halfgraph.answering.explanation_schema import Explanation, Witness
from halfgraph.answering.filling import LEFT_OPEN, MOST_FILLED, Filling
from halfgraph.answering.forms import TripleAnswers, described_names
from halfgraph.answering.reasons import why_not_predicted
from halfgraph.answering.row_answers import RowAnswers
from halfgraph.answering.row_drawing import draw
from halfgraph.answering.row_explanation import RowExplainer
from halfgraph.answering.schema import Answers, AnswerTriple, Truth
from halfgraph.answering.unknown_names import unknown_names
from halfgraph.errors import QueryError, SparqlError, UnknownName
from halfgraph.prediction.modes import LINKS
from halfgraph.sparql.parse import Request
from halfgraph.sparql.prefixes import Prefixes
from halfgraph.sparql.row_groups import CandidateRows
from halfgraph.sparql.row_reading import RowReading, read_rows
from halfgraph.sparql.syntax_tree import Ask, Construct, Describe, Select, SyntaxNode, Variable, walk
from halfgraph.sparql.writer import write

NO_RUN = "a graph is served without a trained run"


@dataclass(frozen=True)
class RowEngine:
    """Answers any query: the store's answer, and what predictions by links add to it."""

    rows: RowAnswers
    mode: str = LINKS
    fills: bool = False  # whether empty cells of OPTIONAL parts get their most likely value

    def answer(self, request: Request, top: int) -> Answers:
        """Return the exact answer to a query of any form, and predictions."""
        tree = request.tree
        match tree:
            case Select():
                return self._select(request, tree, top)
            case Ask():
                return self._ask(request, tree)
            case Construct():
                return self._construct(request, tree, top)
            case Describe():
                return self._describe(tree, top)
        raise TypeError(f"{type(tree).__name__} is no query")

    def _reading(self, request: Request, *, has_rows: bool) -> RowReading | str:
        """Read a query, or say why nothing can be predicted."""
        if self.rows.search is None:
            return NO_RUN
        try:
            reading = read_rows(request, self.rows.names.graph)
        except (SparqlError, UnknownName) as error:
            return why_not_predicted(error, self.rows.store, has_rows=has_rows)
        if self.mode != LINKS:
            return f"the mode {self.mode} predicts one variable that paths from entities lead to. Use the mode {LINKS}."
        return reading

    def _select(self, request: Request, tree: Select, top: int) -> Answers:
        found = self.rows.store.rows(tree)
        known = self.rows.names.known(found)
        answers = Answers(found.variables, known, [], mode=self.mode)
        reading = self._reading(request, has_rows=bool(known))
        if isinstance(reading, str):
            return replace(answers, notes=[f"No predictions: {reading}"])
        target = next((name for name in found.variables if _is_core(reading, name)), "")
        answers = replace(answers, target=target, explanation=self.explanation(reading))
        if reading.is_aggregated:
            more = aggregate(self.rows, reading, found.variables, known, top)
            notes = [*self._notes(request, reading), *more.notes]
            return replace(
                answers, known=more.known, predicted=more.predicted, missing_rows=more.missing_rows, notes=notes
            )
        predicted, notes = self.rows.predict(reading, found.variables, known, top)
        answers = replace(answers, predicted=predicted, notes=[*self._notes(request, reading), *notes])
        return self._filled(answers, Filling.of(self.rows, request, tree)) if self.fills else answers

    def _filled(self, answers: Answers, filling: Filling) -> Answers:
        """Fill empty cells; the known rows themselves are not changed by it, only completed."""
        known = filling.fill(answers.known, answers.variables)
        predicted = filling.fill(answers.predicted, answers.variables)
        is_cut = max(len(known), len(predicted)) > MOST_FILLED
        return replace(answers, known=known, predicted=predicted, notes=[*answers.notes, *[LEFT_OPEN] * is_cut])

    def _notes(self, request: Request, reading: RowReading) -> list[str]:
        """Return the notes of a reading, and the names that neither the graph nor the store has."""
        unknown = unknown_names(request, self.rows.names.graph, self.rows.store.local)
        return list(dict.fromkeys([*map(str, unknown), *reading.notes]))

    def short(self, iri: str) -> str:
        """Return an IRI as a query can write it."""
        return Prefixes.of(self.rows.names.graph).short(iri)

    def explanation(self, reading: RowReading) -> Explanation:
        """Return the drawing of the first branch, and the conditions that it does not show."""
        branch = reading.branches[0]
        nodes, edges = draw(self.rows.names, branch.conjunction, branch.variables)
        elements = (element for element in branch.rest.elements if not _has_candidates(element))
        return Explanation(nodes, edges, None, [write(element, self.short) for element in elements])

    def _ask(self, request: Request, tree: Ask) -> Answers:
        is_known = self.rows.store.holds(tree)
        answers = Answers([], [], [], mode=self.mode, truth=Truth(is_known, float(is_known)))
        reading = self._reading(request, has_rows=is_known)
        if isinstance(reading, str):
            return replace(answers, notes=[f"No predictions: {reading}"])
        truth, notes = self.rows.truth(reading, is_known=is_known)
        explanation = self.explanation(reading)
        return replace(answers, truth=truth, explanation=explanation, notes=[*self._notes(request, reading), *notes])

    def explain(self, request: Request, answer: str | Mapping[str, str]) -> Witness:
        """Explain the best row with an entity, or a row with the entity of each variable, by its best way."""
        reading = self._reading(request, has_rows=False)
        if isinstance(reading, str):
            raise QueryError(f"this query has no predictions to explain: {reading}")
        columns = [part.name for part in reading.select.projection if isinstance(part, Variable)]
        return RowExplainer(self.rows).explain(reading, columns, answer)

    def _known_triples(self, tree: Construct | Describe) -> list[AnswerTriple]:
        cell = self.rows.names.cell
        triples = self.rows.store.triples(tree)
        return [AnswerTriple(cell(subject), cell(verb), cell(object_), True) for subject, verb, object_ in triples]

    def _construct(self, request: Request, tree: Construct, top: int) -> Answers:
        known = self._known_triples(tree)
        answers = Answers([], [], [], mode=self.mode, triples=known)
        reading = self._reading(request, has_rows=bool(known))
        if isinstance(reading, str):
            return replace(answers, notes=[f"No predictions: {reading}"])
        before = [(one.subject, one.predicate, one.object) for one in known]
        predicted, notes = TripleAnswers(self.rows).constructed(tree, reading, before, top)
        explanation = self.explanation(reading)
        return replace(
            answers,
            triples=[*known, *predicted],
            explanation=explanation,
            notes=[*self._notes(request, reading), *notes],
        )

    def _describe(self, tree: Describe, top: int) -> Answers:
        known = self._known_triples(tree)
        iris, variables = described_names(tree)
        if tree.where is not None:
            query = Select(
                tuple(map(Variable, variables)), tree.where, "DISTINCT", graphs=tree.graphs, modifiers=tree.modifiers
            )
            rows = self.rows.store.rows(query)
            iris += [row[name]["value"] for row in rows.bindings for name in rows.variables if name in row]
        entities = [number for iri in dict.fromkeys(iris) if (number := self.rows.names.find(iri)) is not None]
        predicted = TripleAnswers(self.rows).described(entities, top) if self.mode == LINKS else []
        reason = "no entity of the graph is described" if self.mode == LINKS else f"the mode is not {LINKS}"
        notes = [] if predicted else [f"No predictions: {NO_RUN if self.rows.search is None else reason}"]
        return Answers([], [], [], mode=self.mode, triples=[*known, *predicted], notes=notes)


def _has_candidates(element: SyntaxNode) -> bool:
    return any(isinstance(node, CandidateRows) for node in walk(element))


def _is_core(reading: RowReading, name: str) -> bool:
    return any(name in branch.variables for branch in reading.branches)
