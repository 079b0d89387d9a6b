"""Explanations: the query as it was understood, and the witness of an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from halfgraph.answering import explanation_schema as schema
from halfgraph.answering.cells import NamedEntity, percent
from halfgraph.answering.entity_names import EntityNames
from halfgraph.answering.predicted_rows import rounded
from halfgraph.model.encoder import Encoder
from halfgraph.model.intersection import Attention
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.prediction.predictors import Predictors
from halfgraph.prediction.witness import BoundWitness, Step
from halfgraph.query.patterns import variable_names
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import (
    Anchor,
    Project,
    Query,
    children,
    has_choice,
    is_negated,
    is_variable,
    nodes,
    positive_parts,
    type_of,
)
from halfgraph.sparql.syntax_tree import RDF_TYPE

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
        parts = {name: positive_parts(node) for name, node in variables.items() if _has_attention(encoder, node)}
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
        return self.embeddings[self.names[id(self.query)]]


def _has_attention(encoder: Encoder, node: Query) -> bool:
    """Whether several paths meet at a node, each with one embedding, in a model with attention."""
    is_meeting = len(positive_parts(node)) > 1 and not has_choice(node, negated=False)
    return is_meeting and isinstance(encoder.intersection, Attention)


def _attention(encoder: Encoder, node: Query, parts: Tensor) -> Tensor:
    """The attention of each head to each part: (parts, heads)."""
    attention = encoder.intersection
    assert isinstance(attention, Attention)
    return attention.coefficients(parts, attention.centre(parts), encoder.types_of(node, 1))[0]


@dataclass(frozen=True)
class Explainer:
    """Explains queries and answers in the words of the schema."""

    index: EmbeddingIndex
    names: EntityNames
    predictors: Predictors

    def graph(self, encoded: EncodedVariables) -> tuple[list[schema.QueryNode], list[schema.QueryEdge]]:
        """Return the query as nodes and edges, with likely entities and attention."""
        ids: dict[str | int, int] = {}
        described: list[schema.QueryNode] = []
        links = [node for node in nodes(encoded.query) if isinstance(node, Project)]
        for entity in (int(link.source.entity) for link in links if isinstance(link.source, Anchor)):
            if entity not in ids:
                ids[entity] = len(described)
                iri, label, type_name = self.names.described(entity)
                described.append(schema.QueryNode(ids[entity], "anchor", label, iri, type_name))
        for name in encoded.nodes:
            ids[name] = len(described)
            described.append(self._variable(ids[name], name, encoded))
        return described, self._edges(encoded, ids)

    def _variable(self, number: int, name: str, encoded: EncodedVariables) -> schema.QueryNode:
        node = encoded.nodes[name]
        type_id = int(self.index.encoder.types_of(node, 1)[0]) if is_variable(node) else None
        among = self.names.of_type(type_id)
        nearest = self.index.nearest(encoded.embeddings[name], LIKELY, among=among, without=NONE)
        likely = [schema.LikelyEntity(*self.names.described(entity)[:2], round(score, 4)) for entity, score in nearest]
        stated = type_of(node)  # the drawing shows what was asked, not what the model expects
        type_name = None if stated is None else self.names.type_name(stated)
        role: Literal["target", "variable"] = "target" if name == encoded.names[id(encoded.query)] else "variable"
        return schema.QueryNode(number, role, f"?{name}", None, type_name, likely)

    def _edges(self, encoded: EncodedVariables, ids: Mapping[str | int, int]) -> list[schema.QueryEdge]:
        order = nodes(encoded.query)
        negated, alternative = _only_below(order, is_negated), _only_below(order, lambda node: node.is_choice)
        described = []
        for edge in (node for node in order if isinstance(node, Project)):
            source = int(edge.source.entity) if isinstance(edge.source, Anchor) else encoded.names[id(edge.source)]
            relation, attention = self.names.relation(int(edge.relation)), encoded.attention.get(id(edge))
            described.append(
                schema.QueryEdge(
                    source=ids[source],
                    target=ids[encoded.names[id(edge)]],
                    relation=relation.entity,
                    label=relation.label,
                    inverse=bool(int(edge.relation) & 1),
                    attention=None if attention is None else round(float(attention.mean()), 4),
                    heads=None if attention is None else [round(share, 4) for share in attention.tolist()],
                    negated=id(edge) in negated,
                    alternative=id(edge) in alternative,
                )
            )
        return described

    def witness(self, query: Query, answer: schema.ExplainedAnswer, bound: BoundWitness) -> schema.Witness:
        """Return the witness of an answer with names and confidences."""
        names = variable_names(query)
        entities = {names[node]: entity for node, entity in bound.entities.items() if node in names}
        order = dict.fromkeys(names[id(node)] for node in nodes(query) if id(node) in names)
        bindings = [
            schema.VariableBinding(f"?{name}", *self.names.described(entities[name]))
            for name in order
            if name in entities and name != names[id(query)]
        ]
        triples = [*map(self._triple, bound.steps), *self._types(query, bound)]
        return schema.Witness(answer, bindings, triples, [] if answer.known else self._other_ways(names, bound))

    def _types(self, query: Query, bound: BoundWitness) -> list[schema.WitnessTriple]:
        """The type statements that the query asks for, of the entities of the witness."""
        triples = []
        for node in nodes(query, negated=False):
            type_id, entity = type_of(node), bound.entities.get(id(node))
            if type_id is not None and entity is not None:
                probability = float(self.predictors.types.probabilities(type_id)[entity])
                known = probability >= 1
                ends = (
                    self.names.entity(entity),
                    NamedEntity(RDF_TYPE, "type"),
                    self.names.type_entity(type_id),
                )
                triples.append(schema.WitnessTriple(*ends, known, None if known else self._shown(probability)))
        return triples

    def _other_ways(self, names: Mapping[int, str], bound: BoundWitness) -> list[str]:
        """Say which other entities a variable may stand for, since their ways add to the confidence."""
        notes = []
        for node, ways in bound.others.items():
            listed = [f"{self.names.entity(entity).label} ({percent(way)})" for entity, way in ways]
            notes += [f"?{names[node]} may also be {', '.join(listed)}."] if listed and node in names else []
        return notes

    def _shown(self, probability: float) -> float | None:
        return None if self.predictors.models is None else rounded(probability)

    def _triple(self, step: Step) -> schema.WitnessTriple:
        """A step as a triple, in the direction of the graph's triples."""
        relation = int(step.node.relation)
        ends = [self.names.entity(step.head), self.names.entity(step.tail)]
        subject, object_ = reversed(ends) if relation & 1 else ends
        confidence = None if step.known else self._shown(step.probability)
        return schema.WitnessTriple(
            subject, self.names.relation(relation), object_, step.known, confidence, step.negated
        )


def _only_below(order: Sequence[Query], matches: Callable[[Query], bool]) -> set[int]:
    """The nodes, by their ids, that are only used below nodes that match; the target is last in the order."""
    free = {id(order[-1])}
    for node in reversed(order):
        if id(node) in free and not matches(node):
            free.update(map(id, children(node)))
    return {id(node) for node in order} - free
