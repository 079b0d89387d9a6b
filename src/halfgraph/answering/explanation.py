"""The query as it was understood: its variables, the likeliest entities for each, and what each path counts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from halfgraph.answering.schema import LikelyEntity, QueryEdge, QueryNode
from halfgraph.answering.store_rows import Names
from halfgraph.model.encoder import Encoder
from halfgraph.model.intersection import Attention
from halfgraph.prediction.embedding import EmbeddingIndex
from halfgraph.query.canonical import identity
from halfgraph.query.rewriting import disjuncts, without_negation
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, children, nodes
from halfgraph.sparql.read import Reading

LIKELY = 3  # entities shown for a variable


@dataclass(frozen=True)
class Laid:
    """A query as variables and edges: nodes of the tree that meet are one variable."""

    variables: Mapping[str, Query]  # by name, in the order of the walk; the target is the last
    names: Mapping[int, str]  # of the variable that a node of the tree (by its id) is
    edges: Sequence[Project]
    target: str

    @classmethod
    def of(cls, reading: Reading) -> "Laid":
        """The variables and edges of what a text asks, by the names that the text gives them."""
        order = nodes(reading.query)
        names = _names(order, {id(node): name for name, node in reading.variables.items()})
        variables: dict[str, Query] = {names[id(node)]: node for node in order if not isinstance(node, Anchor)}
        variables[reading.target] = variables.pop(reading.target, reading.query)
        return cls(variables, names, [node for node in order if isinstance(node, Project)], reading.target)

    def term(self, node: Query) -> str | int:
        """The name of a node's variable, or the number of a known entity."""
        return int(node.entity) if isinstance(node, Anchor) else self.names[id(node)]


def _names(order: Sequence[Query], given: Mapping[int, str]) -> dict[int, str]:
    """The name of the variable that each node (by its id) is; nodes that meet are one, the nameless get numbers."""
    above: dict[int, int] = {}
    for node in reversed(order):
        if not isinstance(node, Anchor | Project):  # an intersection, a union or a negation is what its parts are
            above |= {id(part): above.get(id(node), id(node)) for part in children(node)}
    tops = {id(node): above.get(id(node), id(node)) for node in order if not isinstance(node, Anchor)}
    named = {tops[one]: name for one, name in given.items() if one in tops}
    numbered = {top: f"/{number}" for number, top in enumerate(dict.fromkeys(tops.values()), 1)}
    return {one: named.get(top, numbered[top]) for one, top in tops.items()}


@dataclass(frozen=True)
class Looked:
    """What the model makes of a query: vectors of each variable (ways, d), by name, and shares of parts by id."""

    vectors: Mapping[str, Tensor]
    shares: Mapping[int, Tensor]  # (heads,)


@torch.no_grad()
def look(encoder: Encoder, laid: Laid) -> Looked:
    """What the model makes of a query, all of it in one walk."""
    ways = {name: disjuncts(without_negation(node)) for name, node in laid.variables.items()}
    met = {id(node): _meeting(node) for node in laid.variables.values() if _is_attended(encoder, node)}
    asked = [way for some in ways.values() for way in some]
    asked += [without_negation(part) for parts in met.values() for part in parts]
    found = iter(encoder.encode(asked))
    vectors = {name: torch.cat([next(found) for _ in some]) for name, some in ways.items()}
    shares: dict[int, Tensor] = {}
    for node in laid.variables.values():
        if id(node) in met:
            parts = torch.stack([next(found) for _ in met[id(node)]], dim=1)  # (1, parts, d)
            shares.update(zip(map(id, met[id(node)]), _shares(encoder, node, parts), strict=True))
    return Looked(vectors, shares)


def _is_attended(encoder: Encoder, node: Query) -> bool:
    """Whether attention shares can be told at a node: some paths meet there, and each has one vector."""
    plain = not any(isinstance(below, Union) for below in nodes(node, negated=False))
    return isinstance(encoder.intersection, Attention) and plain and len(_meeting(node)) > 1


def _meeting(node: Query) -> list[Query]:
    """The paths that meet at a node, without those that must not lead there."""
    parts = node.parts if isinstance(node, Intersect) else ()
    return [part for part in parts if not isinstance(part, Negate)]


def _shares(encoder: Encoder, node: Query, parts: Tensor) -> Tensor:
    """What each head gives to each part: (parts, heads)."""
    attention = encoder.intersection
    assert isinstance(attention, Attention)
    assert isinstance(node, Intersect)
    return attention.coefficients(parts, attention.centre(parts), encoder.types_of(node, 1))[0]


def drawn_edges(laid: Laid, looked: Looked, names: Names, ids: Mapping[str | int, int]) -> list[QueryEdge]:
    """The edges of the query, with their attention."""
    negated, alternative = _below(laid, Negate), _below(laid, Union)
    found = []
    for edge in laid.edges:
        relation, shares = names.relation(int(edge.relation)), looked.shares.get(id(edge))
        found.append(
            QueryEdge(
                source=ids[laid.term(edge.source)],
                target=ids[laid.term(edge)],
                relation=relation.entity,
                label=relation.label,
                inverse=bool(int(edge.relation) & 1),
                attention=None if shares is None else round(float(shares.mean()), 4),
                heads=None if shares is None else [round(share, 4) for share in shares.tolist()],
                negated=id(edge) in negated,
                alternative=id(edge) in alternative,
            )
        )
    return found


def _below(laid: Laid, what: type) -> set[int]:
    """The nodes (by their ids) that are only used below nodes of a class."""
    order = nodes(laid.variables[laid.target])
    free = {id(order[-1])}
    for node in reversed(order):
        if id(node) in free and not isinstance(node, what):
            free.update(map(id, children(node)))
    return {id(node) for node in order} - free


def type_range(index: EmbeddingIndex, node: Query, starts: Sequence[int]) -> tuple[int | None, slice]:
    """The type of a variable, as the query says or as its relations usually end, and the range of its entities."""
    if isinstance(node, Negate):
        return type_range(index, node.part, starts)
    if isinstance(node, Anchor):
        return None, slice(0, int(starts[-1]))
    type_id = int(index.encoder.types_of(node, 1)[0])
    return type_id, slice(int(starts[type_id]), int(starts[type_id + 1]))


def drawn_nodes(
    laid: Laid, looked: Looked, names: Names, index: EmbeddingIndex
) -> tuple[list[QueryNode], dict[str | int, int]]:
    """The known entities and the variables of the query, and the id of each by its number or name."""
    anchors = {identity(node): node for edge in laid.edges for node in (edge.source,) if isinstance(node, Anchor)}
    found, ids = list[QueryNode](), dict[str | int, int]()
    for anchor in anchors.values():
        number = int(anchor.entity)
        ids[number] = len(found)
        entity = names.entity(number)
        found.append(QueryNode(len(found), "anchor", entity.label, entity.entity, names.type_of(number)))
    for name, node in laid.variables.items():
        ids[name] = len(found)
        type_id, among = type_range(index, node, names.graph.types.starts.tolist())
        likely = [
            LikelyEntity(*_named(names, entity), round(score, 4))
            for entity, score in index.nearest(looked.vectors[name], LIKELY, among=among, without=_NONE)
        ]
        type_name = None if type_id is None else names.type_name(type_id)
        is_target = name == laid.target
        found.append(QueryNode(len(found), "target" if is_target else "variable", shown(name), None, type_name, likely))
    return found, ids


_NONE = np.empty(0, dtype=np.int32)


def _named(names: Names, number: int) -> tuple[str, str]:
    entity = names.entity(number)
    return entity.entity, entity.label


def shown(name: str) -> str:
    """How to speak of a variable; blank nodes and the middles of paths have no name of their own, only a number."""
    if name[0] in "[/":
        return "?_" + re.sub(r"\W", "_", name.strip("[]/"))
    return name if name.startswith("_:") else f"?{name}"
