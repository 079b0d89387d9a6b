"""The witness of a row: an entity for each variable of its most probable way, and the triples that this needs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from halfgraph.answering.cells import NamedEntity
from halfgraph.answering.explanation_schema import ExplainedAnswer, VariableBinding, Witness, WitnessTriple
from halfgraph.answering.predicted_rows import rounded
from halfgraph.answering.row_answers import RowAnswers
from halfgraph.errors import QueryError, UnknownName
from halfgraph.graph.vocabulary import local_name
from halfgraph.prediction.row_witness import MembershipStep, RowStep, RowWitness
from halfgraph.query.rows import Domain, Given, Value
from halfgraph.sparql.results import entity_term
from halfgraph.sparql.row_reading import Branch, RowReading
from halfgraph.sparql.syntax_tree import RDF_TYPE

IS_A = NamedEntity(RDF_TYPE, "type")
MOST_WAYS = 256  # rows over other variables, whose ways make up a row


@dataclass(frozen=True)
class RowExplainer:
    """Explains rows."""

    rows: RowAnswers

    def explain(self, reading: RowReading, columns: Sequence[str], answer: str | Mapping[str, str]) -> Witness:
        """Return the witness of a row, or of the best row with an entity."""
        found = [
            (witness, replace(branch, conjunction=(*branch.conjunction, given)), given)
            for branch in reading.branches
            for given in self._givens(reading, branch, answer)
            if (witness := self._best(reading, branch, given)) is not None
        ]
        if not found:
            raise QueryError("no row of the query has this answer", advice="Explain a row that `ask` shows.")
        witness, branch, given = max(found, key=lambda one: one[0].probability)
        probability = self._probability(reading, branch, columns, witness)
        return self._described(reading, witness, given, probability)

    def _probability(self, reading: RowReading, branch: Branch, columns: Sequence[str], witness: RowWitness) -> float:
        """Return the probability of the row with the values of a witness, over all its ways."""
        names = [name for name in columns if name in branch.variables]
        given = Given(tuple(names), (tuple(witness.values[name] for name in names),))
        limited = (
            replace(one, conjunction=(*one.conjunction, given))
            for one in reading.branches
            if set(names) <= set(one.variables)
        )
        solutions = self.rows.solutions(replace(reading, branches=tuple(limited)), MOST_WAYS)
        ways = [way for row in solutions.rows for way in row.ways]
        return max(witness.probability, solutions.lineage.probability(ways))

    def _givens(self, reading: RowReading, branch: Branch, answer: str | Mapping[str, str]) -> Iterator[Given]:
        """Yield the values that the row must have: those of a row, or an entity for one variable after another."""
        if isinstance(answer, str):
            number = self.rows.names.resolve(answer)
            names = [name for name in branch.variables if reading.domains.get(name, "entity") == "entity"]
            yield from (Given((name,), ((number,),)) for name in names)
            return
        pairs = {name: text for name, text in answer.items() if name in branch.variables}
        if pairs:
            values = tuple(self._value(text, reading.domains.get(name, "entity")) for name, text in pairs.items())
            yield Given(tuple(pairs), (values,))

    def _value(self, text: str, domain: Domain) -> Value:
        names, iris = self.rows.names, self.rows.names.iris_of(text)
        match domain:
            case "entity":
                return names.resolve(text)
            case "class":
                return iris[0]
        relation = next((number for iri in iris if (number := names.graph.find_relation(iri)) is not None), None)
        if relation is None:
            raise UnknownName(text, what="relation")
        return relation

    def _best(self, reading: RowReading, branch: Branch, given: Given) -> RowWitness | None:
        values = dict(zip(given.variables, given.rows[0], strict=True))
        return self.rows.executor.witness(reading.query(branch), tuple(map(values.get, branch.variables)))

    def _described(self, reading: RowReading, witness: RowWitness, given: Given, probability: float) -> Witness:
        domains = reading.domains
        values = {name: value for name, value in witness.values.items() if value is not None}
        bindings = [
            VariableBinding(f"?{name}", *self._name(value, domains.get(name, "entity")))
            for name, value in values.items()
            if name not in given.variables
        ]
        triples = list(map(self._triple, witness.steps))
        known = all(triple.known or triple.negated for triple in triples)
        first = next(iter(given.variables))
        head = self._name(values[first], domains.get(first, "entity"))
        shown = (1.0, None) if known else (rounded(probability), rounded(probability))
        return Witness(ExplainedAnswer(*head, known, *shown), bindings, triples)

    def _name(self, value: Value, domain: Domain) -> tuple[str, str, str | None]:
        """Return IRI, label and type of a value."""
        iri = self.rows.names.iri(value, domain) or ""
        return self.rows.names.head_of({"": self.rows.names.cell(entity_term(iri))})

    def _triple(self, step: RowStep) -> WitnessTriple:
        names, confidence = self.rows.names, None if step.known else rounded(step.probability)
        if isinstance(step, MembershipStep):
            ends = names.entity(step.entity), IS_A, NamedEntity(step.iri, local_name(step.iri))
        else:
            ends = names.entity(step.head), names.relation(step.relation), names.entity(step.tail)
        return WitnessTriple(*ends, step.known, confidence, step.negated)
