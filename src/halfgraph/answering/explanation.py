"""Explanations: the query as it was understood, and the witness of an answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from halfgraph.answering.schema import (
    ExplainedAnswer,
    LikelyEntity,
    QueryEdge,
    QueryNode,
    VariableBinding,
    Witness,
    WitnessTriple,
)
from halfgraph.answering.store_rows import EntityNames
from halfgraph.model.encoder import Encoder
from halfgraph.model.intersection import Attention
from halfgraph.prediction.calibration import Calibration
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.witness import BoundWitness, Step
from halfgraph.query.patterns import variable_names
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, children, edges, has_choice, nodes

LIKELY = 3  # entities shown for a variable
NONE = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class EncodedVariables:
    """The variables of a query as the model sees them; the target is the last."""

    query: Query
    names: Mapping[int, str]  # the variable of each node, by the node's id
    nodes: Mapping[str, Query]  # of each variable
    embeddings: Mapping[str, Tensor]  # (disjuncts, d)
    attention: Mapping[int, Tensor]  # (heads,) of each part of an intersection, by its id

    @classmethod
    @torch.no_grad()
    def of(cls, encoder: Encoder, query: Query) -> "EncodedVariables":
        """Encode all variables of a query in one pass."""
        names = variable_names(query)
        variables = {names[id(node)]: node for node in nodes(query) if id(node) in names}
        target = names[id(query)]
        variables[target] = variables.pop(target)
        parts = {name: _parts(node) for name, node in variables.items() if _has_attention(encoder, node)}
        queries = {name: disjuncts(without_negation(node)) for name, node in variables.items()}
        inputs = [query for some in queries.values() for query in some]
        inputs += [without_negation(part) for some in parts.values() for part in some]
        vectors = iter(encoder.encode(inputs))
        embeddings = {name: torch.cat([next(vectors) for _ in some]) for name, some in queries.items()}
        attention: dict[int, Tensor] = {}
        for name, some in parts.items():
            stacked = torch.stack([next(vectors) for _ in some], dim=1)  # (1, parts, d)
            attention |= zip(map(id, some), _attention(encoder, variables[name], stacked), strict=True)
        return cls(query, names, variables, embeddings, attention)

    @property
    def target(self) -> Tensor:
        """The embeddings of the query itself: (disjuncts, d)."""
        return self.embeddings[self.names[id(self.query)]]


def _has_attention(encoder: Encoder, node: Query) -> bool:
    """Whether several paths meet at a node, each with one embedding, in a model with attention."""
    one_embedding = not has_choice(node, negated=False)
    return isinstance(encoder.intersection, Attention) and one_embedding and len(_parts(node)) > 1


def _parts(node: Query) -> list[Query]:
    """The parts of an intersection that are not negated."""
    parts = node.parts if isinstance(node, Intersect) else ()
    return [part for part in parts if not isinstance(part, Negate)]


def _attention(encoder: Encoder, node: Query, parts: Tensor) -> Tensor:
    """The attention of each head to each part: (parts, heads)."""
    attention = encoder.intersection
    assert isinstance(attention, Attention)
    assert isinstance(node, Intersect)
    return attention.coefficients(parts, attention.centre(parts), encoder.types_of(node, 1))[0]


@dataclass(frozen=True)
class Explainer:
    """Explains queries and answers in the words of the schema."""

    index: EmbeddingIndex
    names: EntityNames
    calibration: Calibration

    def graph(self, encoded: EncodedVariables) -> tuple[list[QueryNode], list[QueryEdge]]:
        """Return the query as nodes and edges, with likely entities and attention."""
        ids: dict[str | int, int] = {}
        described: list[QueryNode] = []
        for edge in edges(encoded.query):
            if isinstance(edge.source, Anchor) and int(edge.source.entity) not in ids:
                ids[int(edge.source.entity)] = len(described)
                described.append(self._anchor(len(described), int(edge.source.entity)))
        for name in encoded.nodes:
            ids[name] = len(described)
            described.append(self._variable(len(described), name, encoded))
        negated, alternative = (
            _only_below(encoded.query, lambda node: isinstance(node, Negate)),
            _only_below(encoded.query, lambda node: node.is_choice),
        )
        links = [
            self._edge(edge, encoded, ids, negated=id(edge) in negated, alternative=id(edge) in alternative)
            for edge in edges(encoded.query)
        ]
        return described, links

    def _anchor(self, number: int, entity: int) -> QueryNode:
        named = self.names.entity(entity)
        return QueryNode(number, "anchor", named.label, named.entity, self.names.type_of(entity))

    def _variable(self, number: int, name: str, encoded: EncodedVariables) -> QueryNode:
        node, starts = encoded.nodes[name], self.names.graph.types.starts
        type_id = None if isinstance(node, Anchor | Negate) else int(self.index.encoder.types_of(node, 1)[0])
        among = slice(0, int(starts[-1])) if type_id is None else slice(*map(int, starts[type_id : type_id + 2]))
        nearest = self.index.nearest(encoded.embeddings[name], LIKELY, among=among, without=NONE)
        likely = [LikelyEntity(*self._named(entity), round(score, 4)) for entity, score in nearest]
        type_name = None if type_id is None else self.names.type_name(type_id)
        is_target = name == encoded.names[id(encoded.query)]
        return QueryNode(number, "target" if is_target else "variable", f"?{name}", None, type_name, likely)

    def _edge(
        self,
        edge: Project,
        encoded: EncodedVariables,
        ids: Mapping[str | int, int],
        *,
        negated: bool,
        alternative: bool,
    ) -> QueryEdge:
        source = int(edge.source.entity) if isinstance(edge.source, Anchor) else encoded.names[id(edge.source)]
        relation, attention = self.names.relation(int(edge.relation)), encoded.attention.get(id(edge))
        return QueryEdge(
            source=ids[source],
            target=ids[encoded.names[id(edge)]],
            relation=relation.entity,
            label=relation.label,
            inverse=bool(int(edge.relation) & 1),
            attention=None if attention is None else round(float(attention.mean()), 4),
            heads=None if attention is None else [round(share, 4) for share in attention.tolist()],
            negated=negated,
            alternative=alternative,
        )

    def witness(self, query: Query, answer: ExplainedAnswer, bound: BoundWitness, mode: str) -> Witness:
        """Return the witness of an answer with names and confidences."""
        names = variable_names(query)
        entities = {names[node]: entity for node, entity in bound.entities.items() if node in names}
        order = dict.fromkeys(names[id(node)] for node in nodes(query) if id(node) in names)
        bindings = [
            VariableBinding(f"?{name}", *self._named(entities[name]), self.names.type_of(entities[name]))
            for name in order
            if name in entities and name != names[id(query)]
        ]
        return Witness(answer, bindings, [self._triple(step, mode) for step in bound.steps])

    def _named(self, entity: int) -> tuple[str, str]:
        named = self.names.entity(entity)
        return named.entity, named.label

    def _triple(self, step: Step, mode: str) -> WitnessTriple:
        """A step as a triple, in the direction of the graph's triples."""
        relation = int(step.node.relation)
        ends = [self.names.entity(step.head), self.names.entity(step.tail)]
        subject, object_ = reversed(ends) if relation & 1 else ends
        confidence = None if step.known else self.calibration.link_confidence(mode, step.probability)
        confidence = None if confidence is None else round(confidence, 4)
        return WitnessTriple(subject, self.names.relation(relation), object_, step.known, confidence, step.negated)


def _only_below(query: Query, matches: Callable[[Query], bool]) -> set[int]:
    """The nodes, by their ids, that are only used below nodes that match."""
    order = nodes(query)
    free = {id(query)}
    for node in reversed(order):
        if id(node) in free and not matches(node):
            free.update(map(id, children(node)))
    return {id(node) for node in order} - free
