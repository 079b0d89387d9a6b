"""ASK, CONSTRUCT and DESCRIBE: the exact answer, and what predictions add to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from halfgraph.answering.cells import Cell
from halfgraph.answering.predicted_rows import rounded
from halfgraph.answering.row_answers import RowAnswers
from halfgraph.answering.schema import AnswerTriple
from halfgraph.prediction.lineage import Way
from halfgraph.query.rows import AnyRelation, LinkPattern, RowQuery
from halfgraph.sparql import syntax_tree as tree
from halfgraph.sparql.results import Binding, Term, entity_term, literal_term
from halfgraph.sparql.row_reading import RowReading
from halfgraph.sparql.syntax_tree import BlankNode, Construct, Describe, Iri, Literal, Triple, Variable

DESCRIBED = 10  # entities whose missing links are predicted
RELATION, OBJECT = "p", "o"
TripleCells = tuple[Cell, Cell, Cell]


@dataclass(frozen=True)
class TripleAnswers:
    """Predicts the triples of CONSTRUCT and DESCRIBE."""

    rows: RowAnswers

    def constructed(
        self, query: Construct, reading: RowReading, known: Sequence[TripleCells], top: int
    ) -> tuple[list[AnswerTriple], list[str]]:
        """Return the best triples that predicted rows make of the template and that are not known."""
        solutions = self.rows.solutions(reading, top)
        template = query.template if query.template is not None else _triples(query.where.elements)
        ways: dict[TripleCells, list[Way]] = {}
        for number, row in enumerate(solutions.rows):
            for triple in self._filled(template, row.binding, number):
                ways.setdefault(triple, []).extend(row.ways)
        predicted = [
            AnswerTriple(*triple, known=False, confidence=rounded(solutions.lineage.probability(some)))
            for triple, some in ways.items()
            if triple not in set(known)
        ]
        return sorted(predicted, key=lambda one: -(one.confidence or 0.0))[:top], solutions.notes

    def described(self, entities: Sequence[int], top: int) -> list[AnswerTriple]:
        """Return the most likely missing triples whose subject is one of some entities."""
        predicted = []
        for entity in entities[:DESCRIBED]:
            pattern = LinkPattern(entity, AnyRelation(RELATION), OBJECT)
            query = RowQuery(((pattern,),), (RELATION, OBJECT), {RELATION: "relation"})
            subject = self._cell(self.rows.names.iri(entity, "entity"))
            for row in self.rows.executor.rows(query, top).rows:
                relation, tail = row.values
                ends = self.rows.names.iri(relation, "relation"), self.rows.names.iri(tail, "entity")
                cells = subject, self._cell(ends[0]), self._cell(ends[1])
                predicted.append(AnswerTriple(*cells, known=False, confidence=rounded(row.probability)))
        return sorted(predicted, key=lambda one: -(one.confidence or 0.0))[:top]

    def _cell(self, iri: str | None) -> Cell:
        assert iri is not None, "links have two ends"
        return self.rows.names.cell(entity_term(iri))

    def _filled(self, template: Sequence[Triple], binding: Binding, number: int) -> Iterator[TripleCells]:
        """Yield the triples that a row makes of the template; one with an unbound variable makes none."""
        for triple in template:
            subject, predicate, object_ = (
                _term(part, binding, number) for part in (triple.subject, triple.predicate, triple.object)
            )
            if subject is None or predicate is None or object_ is None:
                continue
            if subject["type"] != "literal" and predicate["type"] == "uri":
                cell = self.rows.names.cell
                yield cell(subject), cell(predicate), cell(object_)


def _triples(elements: Sequence[object]) -> list[Triple]:
    return [element for element in elements if isinstance(element, Triple)]


def _term(term: tree.Term | tree.Path, binding: Binding, number: int) -> Term | None:
    """Return a term of the template for a row, or None for an unbound variable; blank nodes are new in each row."""
    match term:
        case Variable(name):
            return binding.get(name)
        case Iri(value):
            return entity_term(value)
        case Literal(value, datatype, language):
            return literal_term(value, language, datatype)
        case BlankNode(label):
            return entity_term(f"_:{label}_{number}")
    return None


def described_names(query: Describe) -> tuple[list[str], list[str]]:
    """Return the IRIs and the variables that DESCRIBE names."""
    iris = [subject.value for subject in query.subjects if isinstance(subject, Iri)]
    return iris, [subject.name for subject in query.subjects if isinstance(subject, Variable)]
