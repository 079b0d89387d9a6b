"""Small random graphs and queries for hypothesis."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.rewriting import rewrite
from halfgraph.query.tree import Anchor, Intersect, Negate, Project, Query, Union
from query_oracles import Plain, Triple, graph_of, type_list


@dataclass(frozen=True)
class Small:
    """A small graph, as the room takes it and plain."""

    triples: tuple[Triple, ...]
    sizes: tuple[int, ...]
    relation_count: int  # both directions

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph."""
        return graph_of(self.triples, self.sizes, self.relation_count)

    @property
    def plain(self) -> Plain:
        """The same graph, plain."""
        return Plain.of(self.triples, type_list(self.sizes))

    def part(self, triples: list[Triple]) -> "Small":
        """A graph of some of the triples."""
        return Small(tuple(triples), self.sizes, self.relation_count)


@st.composite
def smalls(draw, most_entities: int = 12, most_triples: int = 40) -> Small:
    """A graph of 2 to 12 entities of 1 to 3 types (some may be empty) and 1 to 4 relations, with self-loops."""
    entity_count = draw(st.integers(2, most_entities))
    cuts = sorted(draw(st.lists(st.integers(0, entity_count), max_size=2)))
    bounds = [0, *cuts, entity_count]
    sizes = tuple(last - first for first, last in pairwise(bounds))
    relations = draw(st.integers(1, 4))
    entity = st.integers(0, entity_count - 1)
    triple = st.tuples(entity, st.integers(0, relations - 1).map(lambda number: 2 * number), entity)
    triples = draw(st.lists(triple, max_size=most_triples, unique=True))
    return Small(tuple(triples), sizes, 2 * relations)


@dataclass(frozen=True)
class Split:
    """A small graph in parts: what is trained on, what is known (validation too), and all of it."""

    train: Small
    known: Small
    whole: Small


@st.composite
def splits(draw, most_entities: int = 8) -> Split:
    """A small graph with some of its triples held out."""
    whole = draw(smalls(most_entities))
    parts = draw(st.lists(st.sampled_from("ttvh"), min_size=len(whole.triples), max_size=len(whole.triples)))

    def some(letters: str) -> Small:
        return whole.part([triple for triple, part in zip(whole.triples, parts, strict=True) if part in letters])

    return Split(some("t"), some("tv"), whole)


@st.composite
def queries(
    draw, small: Small, most_nodes: int = 6, unions: bool = True, types: bool = True, negations: bool = True
) -> Query:
    """A query with variables that may be shared, made from its anchors on."""
    entity = st.integers(0, len(small.plain.types) - 1)
    type_id = st.one_of(st.none(), st.none(), st.integers(0, len(small.sizes) - 1)) if types else st.none()
    pool: list[Query] = [Anchor(draw(entity))]
    operations = ["anchor", *["project"] * 3, *["intersect"] * 2, *["union"] * unions, *["negate"] * negations]
    for _ in range(draw(st.integers(1, most_nodes))):
        operation = draw(st.sampled_from(operations))
        if operation == "anchor":
            pool.append(Anchor(draw(entity)))
        elif operation == "project":
            relation = draw(st.integers(0, small.relation_count - 1))
            pool.append(Project(draw(st.sampled_from(pool[-3:])), relation, draw(type_id)))
        elif operation == "negate":
            some, negated = (draw(st.lists(st.sampled_from(pool[-4:]), min_size=1, max_size=2)) for _ in range(2))
            parts = draw(st.permutations([*some, *(Negate(made_anew(part)) for part in negated)]))
            pool.append(Intersect(tuple(parts), draw(type_id)))
        else:
            parts = draw(st.lists(st.sampled_from(pool[-4:]), min_size=1, max_size=3))
            pool.append((Intersect if operation == "intersect" else Union)(tuple(parts), draw(type_id)))
    return pool[-1]


@st.composite
def graphs_and_queries(draw, most_entities: int = 12, most_nodes: int = 6, **choices) -> tuple[Small, Query]:
    """A graph with a query."""
    small = draw(smalls(most_entities))
    return small, draw(queries(small, most_nodes, **choices))


def made_anew(query: Query) -> Query:
    """The same query with other nodes, those shared in it shared."""
    return rewrite(query, lambda _, node: node)


def unshared(query: Query) -> Query:
    """The query as a tree: every node once for each use."""
    match query:
        case Anchor():
            return Anchor(query.entity)
        case Project():
            return Project(unshared(query.source), query.relation, query.type_id)
        case Intersect() | Union():
            return type(query)(tuple(map(unshared, query.parts)), query.type_id)
        case Negate():
            return Negate(unshared(query.part))


@st.composite
def reordered(draw, query: Query) -> Query:
    """Rebuild a query from new nodes in another order; shared nodes stay shared, anchors may be copied."""
    made: dict[int, Query] = {}

    def again(node: Query) -> Query:
        if isinstance(node, Anchor):
            return Anchor(node.entity) if draw(st.booleans()) else made.setdefault(id(node), Anchor(node.entity))
        if id(node) not in made:
            if isinstance(node, Project):
                made[id(node)] = Project(again(node.source), node.relation, node.type_id)
            elif isinstance(node, Negate):
                made[id(node)] = Negate(again(node.part))
            else:
                made[id(node)] = type(node)(tuple(map(again, draw(st.permutations(node.parts)))), node.type_id)
        return made[id(node)]

    return again(query)
