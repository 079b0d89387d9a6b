"""Slow, plain answers to what the query room computes quickly: a graph is a set of edges, a query is tried out."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from halfgraph.graph.knowledge_graph import EntityTypes, KnowledgeGraph
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union, children, nodes

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Plain:
    """A graph as a set of edges, both directions of each triple; `types` has the type of each entity."""

    edges: frozenset[Triple]
    types: tuple[int, ...]

    @classmethod
    def of(cls, triples: Iterable[Triple], types: tuple[int, ...]) -> "Plain":
        """The plain graph of some triples with even relations."""
        both = {edge for h, r, t in triples for edge in ((h, r, t), (t, r ^ 1, h))}
        return cls(frozenset(both), types)

    @property
    def entities(self) -> range:
        """All entities."""
        return range(len(self.types))

    def is_of(self, entity: int, type_id: int | None) -> bool:
        """Whether an entity is of a type; None stands for any."""
        return type_id is None or self.types[entity] == type_id

    def heads(self, relation: int, tail: int) -> list[int]:
        """The entities that a relation leads from to a tail."""
        return [head for head in self.entities if (head, relation, tail) in self.edges]


def types_of(sizes: Iterable[int]) -> EntityTypes:
    """Types of these sizes."""
    starts = np.cumsum([0, *sizes]).astype(np.int64)
    return EntityTypes(tuple(f"type{number}" for number in range(len(starts) - 1)), starts)


def type_list(sizes: Iterable[int]) -> tuple[int, ...]:
    """The type of each entity."""
    return tuple(type_id for type_id, size in enumerate(sizes) for _ in range(size))


def graph_of(triples: Iterable[Triple], sizes: Iterable[int], relation_count: int) -> KnowledgeGraph:
    """The graph of some triples; relation_count counts both directions."""
    rows = np.array(sorted(set(triples)), dtype=np.int32).reshape(-1, 3)
    return KnowledgeGraph.of(rows, types_of(sizes), relation_count)


Values = Mapping[int, int]  # the entity of each node, by its id()


def ways(plain: Plain, node: Query, entity: int, values: Values, relaxed: bool = False) -> Iterator[Values]:
    """The ways to give a node an entity, each as the entities of the nodes that it takes; earlier nodes keep theirs."""
    if id(node) in values:
        if values[id(node)] == entity:
            yield values
        return
    values = {**values, id(node): entity}
    match node:
        case Anchor():
            if node.entity == entity:
                yield values
        case Project():
            if plain.is_of(entity, node.type_id):
                for head in plain.heads(node.relation, entity):
                    yield from ways(plain, node.source, head, values, relaxed)
        case Intersect() if not relaxed:
            if plain.is_of(entity, node.type_id) and not _is_ruled_out(plain, node, entity):
                parts = tuple(part for part in node.parts if not isinstance(part, Negate))
                yield from _ways_of_all(plain, parts, entity, values)
        case Intersect() | Union():
            if plain.is_of(entity, node.type_id):
                for part in node.parts:
                    yield from ways(plain, part, entity, values, relaxed)
        case Negate():
            assert relaxed


def _is_ruled_out(plain: Plain, node: Intersect, entity: int) -> bool:
    """Whether a negated part has the entity."""
    return any(is_answer(plain, part.part, entity) for part in node.parts if isinstance(part, Negate))


def _ways_of_all(plain: Plain, parts: tuple[Query, ...], entity: int, values: Values) -> Iterator[Values]:
    if not parts:
        yield values
        return
    for found in ways(plain, parts[0], entity, values):
        yield from _ways_of_all(plain, parts[1:], entity, found)


def is_answer(plain: Plain, query: Query, entity: int, relaxed: bool = False) -> bool:
    """Return whether there is a path."""
    return next(ways(plain, query, entity, {}, relaxed), None) is not None


def answers(plain: Plain, query: Query, relaxed: bool = False) -> list[int]:
    """All answers, one entity tried after another."""
    return [entity for entity in plain.entities if is_answer(plain, query, entity, relaxed)]


def answers_by_assignment(plain: Plain, query: Query, relaxed: bool = False) -> list[int]:
    """The same, all entities tried for all nodes at once; a node's claim counts only where the target needs it."""
    order = nodes(query, negated=False)
    place = {id(node): number for number, node in enumerate(order)}

    def holds(node: Query, values: tuple[int, ...]) -> bool:
        value = values[place[id(node)]]
        below = children(node)
        if isinstance(node, Anchor):
            return node.entity == value
        if isinstance(node, Negate):
            return value not in answers_by_assignment(plain, node.part)
        if not plain.is_of(value, node.type_id):
            return False
        if isinstance(node, Project):
            source = values[place[id(node.source)]]
            return (source, node.relation, value) in plain.edges and holds(node.source, values)
        if relaxed:
            below = tuple(part for part in below if not isinstance(part, Negate))
        found = (values[place[id(part)]] == value and holds(part, values) for part in below)
        return any(found) if relaxed or isinstance(node, Union) else all(found)

    assignments = product(plain.entities, repeat=len(order))
    return sorted({values[-1] for values in assignments if holds(query, values)})


def triples_of(query: Query, values: Values) -> list[Triple]:
    """The triple behind each edge of a query, with an even relation, when its nodes have these entities."""
    found = []
    for node in nodes(query):
        if isinstance(node, Project):
            head, tail = values[id(node.source)], values[id(node)]
            relation = int(node.relation)
            found.append((tail, relation ^ 1, head) if relation & 1 else (head, relation, tail))
    return found


def clean_paths(plain: Plain, query: Query, answer: int) -> Iterator[list[Triple]]:
    """The triples of each way to an answer that uses no triple twice."""
    for values in ways(plain, query, answer, {}):
        triples = triples_of(query, values)
        if len(set(triples)) == len(triples):
            yield triples


def as_graph(query: Query) -> tuple[list[object], set[tuple[int, int]]]:
    """Label of each node and the edges between nodes; anchors of one entity are one node, the target is last."""
    order = {node.entity if isinstance(node, Anchor) else id(node): node for node in nodes(query)}
    place = {
        id(node): list(order).index(node.entity if isinstance(node, Anchor) else id(node)) for node in nodes(query)
    }
    says: list[object] = []
    for node in order.values():
        own = node.entity if isinstance(node, Anchor) else getattr(node, "relation", None)
        says.append((type(node).__name__, own, getattr(node, "type", None)))
    links = {(place[id(child)], number) for number, node in enumerate(order.values()) for child in children(node)}
    return says, links


def is_same(one: Query, other: Query) -> bool:
    """Return whether two queries are isomorphic, by trying every permutation of the nodes."""
    (says, links), (other_says, other_links) = as_graph(one), as_graph(other)
    if sorted(map(repr, says)) != sorted(map(repr, other_says)) or len(links) != len(other_links):
        return False
    return any(
        renamed[-1] == len(says) - 1
        and all(says[i] == other_says[renamed[i]] for i in range(len(says)))
        and {(renamed[lower], renamed[upper]) for lower, upper in links} == other_links
        for renamed in permutations(range(len(says)))
    )


def is_likely(counts: Iterable[int], weights: Iterable[float] | None = None) -> bool:
    """Return whether counts fit their weights (default: equal) by chi-square, within five standard deviations."""
    found = np.array(list(counts), dtype=float)
    shares = np.ones(len(found)) if weights is None else np.array(list(weights), dtype=float)
    expected = found.sum() * shares / shares.sum()
    freedom = len(found) - 1
    return bool(((found - expected) ** 2 / expected).sum() <= freedom + 5 * (2 * freedom) ** 0.5)
