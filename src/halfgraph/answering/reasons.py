"""Why an entity is an answer: the triples of its best witness, known or missing."""

from collections.abc import Mapping
from dataclasses import dataclass

from halfgraph.answering.explanation import Laid, shown
from halfgraph.answering.schema import ExplainedAnswer, VariableBinding, Witness, WitnessTriple
from halfgraph.answering.store_rows import Names
from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.witness import Step
from halfgraph.prediction.witness import Witness as Bound


@dataclass(frozen=True)
class Reasons:
    """Names the entities and triples of witnesses."""

    names: Names
    calibration: Calibration

    def witness(self, laid: Laid, answer: ExplainedAnswer, bound: Bound, mode: str) -> Witness:
        """Return the witness of an answer with names and confidences."""
        entities = {laid.names[node]: entity for node, entity in bound.entities.items() if node in laid.names}
        return Witness(answer, self._bindings(laid, entities), [self._triple(step, mode) for step in bound.steps])

    def _bindings(self, laid: Laid, entities: Mapping[str, int]) -> list[VariableBinding]:
        """Return the entity of each variable except the target."""
        return [
            VariableBinding(shown(name), *self._named(entities[name]), self.names.type_of(entities[name]))
            for name in laid.variables
            if name in entities and name != laid.target
        ]

    def _named(self, entity: int) -> tuple[str, str]:
        named = self.names.entity(entity)
        return named.entity, named.label

    def _triple(self, step: Step, mode: str) -> WitnessTriple:
        """Return a step as a triple, in the direction of the triples of the graph."""
        relation = int(step.node.relation)
        ends = [self.names.entity(step.head), self.names.entity(step.tail)]
        subject, object_ = reversed(ends) if relation & 1 else ends
        confidence = None if step.known else self.calibration.link_confidence(mode, step.probability)
        confidence = None if confidence is None else round(confidence, 4)
        return WitnessTriple(subject, self.names.relation(relation), object_, step.known, confidence, step.negated)
