"""Why an entity is an answer: the triples of its best witness, those of the graph and those that are missing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from halfgraph.answering.explanation import Laid, shown
from halfgraph.answering.schema import ExplainedAnswer, VariableBinding, Witness, WitnessTriple
from halfgraph.answering.store_rows import Facts, Names
from halfgraph.answering.witness import Bound, Seeker, choices
from halfgraph.prediction.link_executor import Scored
from halfgraph.prediction.link_executor import Witness as ScoredWitness
from halfgraph.query.tree import Anchor, Negate, Project, Query, nodes, type_of


@dataclass(frozen=True)
class Reasons:
    """What finds witnesses and names them."""

    facts: Facts
    names: Names
    seeker: Seeker
    measured: bool = False  # whether what the seeker says of single edges was measured
    sure: Callable[[float], float] = float  # how sure a triple is, by its probability edge by edge

    def witness(self, laid: Laid, answer: ExplainedAnswer, entity: int, scored: Scored | None = None) -> Witness:
        """The best witness of an answer: a certain one if it is known, else by edges if `scored`, else by vectors."""
        bound = self._certain(laid, entity) if answer.known else None
        if bound is None and scored is not None:
            return self._by_edges(laid, answer, scored.witness(laid.variables[laid.target], entity))
        bound = bound or self.seeker.best(laid, entity)
        triples = [self._stated(laid, edge, bound.entities) for edge in bound.edges]
        denied = [self._stated(laid, edge, bound.entities, negated=True) for edge in self._denied(laid, bound.entities)]
        return Witness(answer, self._standing(laid, bound.entities), triples + denied)

    def _by_edges(self, laid: Laid, answer: ExplainedAnswer, found: ScoredWitness) -> Witness:
        """A witness that was found edge by edge."""
        entities = {laid.names[one]: number for one, number in found.entities.items() if one in laid.names}
        triples = [
            self._triple(
                step.head,
                int(step.node.relation),
                step.tail,
                step.known,
                None if step.known else round(self.sure(step.probability), 4),
                step.negated,
            )
            for step in reversed(found.steps)
        ]
        return Witness(answer, self._standing(laid, entities), triples)

    def _standing(self, laid: Laid, entities: Mapping[str, int]) -> list[VariableBinding]:
        """What stands for each variable but the target."""
        return [
            VariableBinding(shown(name), *self._named(entities[name]), self.names.type_of(entities[name]))
            for name in laid.variables
            if name in entities and name != laid.target
        ]

    def _named(self, entity: int) -> tuple[str, str]:
        found = self.names.entity(entity)
        return found.entity, found.label

    def _stated(
        self, laid: Laid, edge: Project, entities: Mapping[str, int], *, negated: bool = False
    ) -> WitnessTriple:
        """The triple of an edge, in the direction of the triples."""
        relation = int(edge.relation)
        head, tail = (_value(laid, end, entities) for end in (edge.source, edge))
        known = tail in self.seeker.known.tails_of(head, relation)
        sure = None
        if self.measured and not known:
            sure = round(float(self.seeker.edges_from([(head, relation)])[0, tail]), 4)
        return self._triple(head, relation, tail, known, sure, negated)

    def _triple(
        self, head: int, relation: int, tail: int, known: bool, confidence: float | None, negated: bool
    ) -> WitnessTriple:
        """A triple in the direction of the triples."""
        ends = [self.names.entity(head), self.names.entity(tail)]
        subject, object_ = reversed(ends) if relation & 1 else ends
        return WitnessTriple(subject, self.names.relation(relation), object_, known, confidence, negated)

    def _denied(self, laid: Laid, entities: Mapping[str, int]) -> Iterator[Project]:
        """The edges of negations that the witness has both ends of; a longer path is no one triple to deny."""
        for node in nodes(laid.variables[laid.target]):
            if isinstance(node, Negate) and isinstance(node.part, Project):
                edge = node.part
                if isinstance(edge.source, Anchor) and laid.term(edge) in entities:
                    yield edge

    def _certain(self, laid: Laid, entity: int) -> Bound | None:
        """A witness all of whose triples are known, from the store; None where there is none."""
        for edges in choices(laid):
            text = self._text(laid, edges, entity)
            rows = self.facts.rows(text).bindings if text else []
            if rows:
                order = list(laid.variables)
                found = {order[int(name[1:])]: self.names.find(term["value"]) for name, term in rows[0].items()}
                numbers = {name: number for name, number in found.items() if number is not None}
                return Bound(numbers | {laid.target: entity}, edges, 0.0)
        return None

    def _text(self, laid: Laid, edges: Sequence[Project], entity: int) -> str | None:
        """The query for one witness, its variables numbered; None where it would have to name a blank node."""
        place = {name: f"?v{number}" for number, name in enumerate(laid.variables)}
        lines = [f"VALUES {place[laid.target]} {{ <{self.names.entity(entity).entity}> }}"]
        used = dict.fromkeys(str(laid.term(edge)) for edge in edges)
        for edge in edges:
            ends = [place.get(str(term)) or f"<{self._named(int(term))[0]}>" for term in _ends(laid, edge)]
            subject, object_ = reversed(ends) if int(edge.relation) & 1 else ends
            lines.append(f"{subject} <{self.names.relation(int(edge.relation)).entity}> {object_} .")
        for name in used:
            type_id = type_of(laid.variables[name])
            if type_id is not None:
                lines.append(f"{place[name]} a <{self.names.graph.namer.iri(self.names.graph.types.names[type_id])}> .")
        return None if any("<_:" in line for line in lines) else f"SELECT * {{ {' '.join(lines)} }} LIMIT 1"


def _ends(laid: Laid, edge: Project) -> list[str | int]:
    """The terms at both ends of an edge, in the direction of the walk."""
    return [laid.term(edge.source), laid.term(edge)]


def _value(laid: Laid, node: Query, entities: Mapping[str, int]) -> int:
    """The entity that a node stands for in a witness."""
    term = laid.term(node)
    return entities[term] if isinstance(term, str) else term
