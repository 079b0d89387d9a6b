"""Why an entity is an answer: the triples of its best witness, those of the graph and those that are missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from halfgraph.answering.answers import Answer, Standing, Stated, Witness
from halfgraph.answering.explanation import Laid, Looked, shown
from halfgraph.answering.facts import Facts, Names
from halfgraph.answering.witness import Bound, Seeker, choices
from halfgraph.query.patterns import flatten, variable_names
from halfgraph.query.prefixes import Prefixes
from halfgraph.query.spelled import Sparql
from halfgraph.query.tree import Project, Query


@dataclass(frozen=True)
class Reasons:
    """What finds witnesses and names them."""

    facts: Facts
    names: Names
    seeker: Seeker

    def witness(self, laid: Laid, looked: Looked, entity: int) -> Witness:
        """The best witness of an entity."""
        certain = self._certain(laid, entity)
        bound = certain or self.seeker.best(laid, entity)
        answer = Answer(
            *self._named(entity), self.names.kind_of(entity), certain is not None, self._score(laid, looked, entity)
        )
        standing = [
            Standing(shown(name), *self._named(number), self.names.kind_of(number))
            for name, number in bound.entities.items()
            if name != laid.target
        ]
        return Witness(answer, standing, [self._stated(laid, edge, bound.entities) for edge in bound.edges])

    def _score(self, laid: Laid, looked: Looked, entity: int) -> float:
        """The cosine of the answer."""
        return round(float(self.seeker.index.scores(looked.vectors[laid.target], slice(entity, entity + 1))[0]), 4)

    def _named(self, entity: int) -> tuple[str, str]:
        found = self.names.entity(entity)
        return found.entity, found.label

    def _stated(self, laid: Laid, edge: Project, entities: Mapping[str, int]) -> Stated:
        """The triple of an edge, in the direction of the triples."""
        relation = int(edge.relation)
        head, tail = (_value(laid, end, entities) for end in (edge.source, edge))
        known = tail in self.seeker.known.tails_of(head, relation)
        ends = [self.names.entity(head), self.names.entity(tail)]
        subject, object_ = reversed(ends) if relation & 1 else ends
        return Stated(subject, self.names.relation(relation), object_, known)

    def _certain(self, laid: Laid, entity: int) -> Bound | None:
        """A witness all of whose triples are known, from the store; None where there is none."""
        query = laid.variables[laid.target]
        writer = Sparql(self.names.graph, Prefixes.of(self.names.graph), [])
        body = writer.block(flatten(query, laid.target))
        this = f"<{self.names.entity(entity).entity}>"
        rows = self.facts.rows(f"SELECT * {{ VALUES ?{laid.target} {{ {this} }} {body} }} LIMIT 1").bindings
        if not rows:
            return None
        return self._bound(laid, query, rows[0], entity)

    def _bound(self, laid: Laid, query: Query, row: Mapping[str, Mapping[str, str]], entity: int) -> Bound | None:
        """The entities of a row of the store by the names of the variables."""
        numbered = variable_names(query, laid.target)
        own = {numbered[one]: name for one, name in laid.names.items()}
        found = {own[name]: self.names.find(term["value"]) for name, term in row.items() if name in own}
        entities = {name: number for name, number in found.items() if number is not None} | {laid.target: entity}
        for edges in choices(laid):
            if self._all_known(laid, edges, entities):
                return Bound(entities, edges, 0.0)
        return None

    def _all_known(self, laid: Laid, edges: Sequence[Project], entities: Mapping[str, int]) -> bool:
        """Whether the graph has the triples of all edges."""
        known = self.seeker.known
        ends = [[laid.term(end) for end in (edge.source, edge)] for edge in edges]
        if any(isinstance(end, str) and end not in entities for pair in ends for end in pair):
            return False
        return all(
            _value(laid, edge, entities) in known.tails_of(_value(laid, edge.source, entities), int(edge.relation))
            for edge in edges
        )


def _value(laid: Laid, node: Query, entities: Mapping[str, int]) -> int:
    """The entity that a node stands for in a witness."""
    term = laid.term(node)
    return entities[term] if isinstance(term, str) else term
