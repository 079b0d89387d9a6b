"""Questions with several variables or a variable relation, drawn from held-out triples.

A question is a list of links between an entity and variables, with one row that is true in the whole graph and needs
the drawn held-out triple. All relations are in the direction of the triples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.graph.knowledge_graph import KnowledgeGraph
from halfgraph.query.rows import AnyRelation, LinkPattern, Relation, RowQuery, Term
from halfgraph.query.tree import Anchor, Project, Query

Ids = NDArray[np.int64]
Rows = NDArray[np.int64]  # (rows, columns)
Mask = NDArray[np.bool_]
PREDICATE = "p"  # the variable that stands for a relation
SHAPES: dict[str, tuple[tuple[str, str], ...]] = {  # links from one variable to another; "a" is an entity
    "a r ?x . ?x r ?y": (("a", "x"), ("x", "y")),
    "?x r a . ?x r ?y": (("x", "a"), ("x", "y")),
    "a r ?x . ?x r ?y . ?y r ?z": (("a", "x"), ("x", "y"), ("y", "z")),
    "?x r a . ?x r ?y . ?x r ?z": (("x", "a"), ("x", "y"), ("x", "z")),
}
TO_TAIL, TO_ANY = "h ?p t", "h ?p ?o"  # with a variable relation
FORMS = (*SHAPES, TO_TAIL, TO_ANY)


@dataclass(frozen=True)
class Question:
    """Links with a relation each, None for the variable one; the columns, and the right row."""

    links: tuple[tuple[Term, int | None, Term], ...]
    columns: tuple[str, ...]
    row: tuple[int, ...]

    @property
    def query(self) -> RowQuery:
        """The question as a query for rows."""
        paths = [AnyRelation(PREDICATE) if relation is None else Relation(relation) for _, relation, _ in self.links]
        patterns = [LinkPattern(head, path, tail) for (head, _, tail), path in zip(self.links, paths, strict=True)]
        domains = {PREDICATE: "relation"} if PREDICATE in self.columns else {}
        return RowQuery((tuple(patterns),), self.columns, domains)  # type: ignore[arg-type]

    def marginals(self) -> Iterator[Query]:
        """Yield for each column the query for this variable alone: the path to it from the entity."""
        trees: dict[Term, Query] = {}
        for head, relation, tail in self.links:
            assert relation is not None, "a variable relation has no query tree"
            for term in (head, tail):
                if isinstance(term, int):
                    trees[term] = Anchor(term)
            if head in trees:
                trees[tail] = Project(trees[head], relation)
            else:
                trees[head] = Project(trees[tail], relation ^ 1)
        yield from (trees[name] for name in self.columns)


@dataclass(frozen=True)
class Triples:
    """Membership of triples in a graph."""

    graph: KnowledgeGraph
    keys: Ids

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "Triples":
        pairs = graph.heads().astype(np.int64) * graph.relation_count + graph.relations
        return cls(graph, pairs * graph.entity_count + graph.tails)

    def has(self, heads: Ids, relations: Ids, tails: Ids) -> Mask:
        """Whether the graph has each of some triples."""
        wanted = (heads * self.graph.relation_count + relations) * self.graph.entity_count + tails
        found: Mask = self.keys[np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)] == wanted
        return found

    def hold(self, question: Question, rows: Rows) -> Mask:
        """Whether the graph has all links of each row."""
        held = np.ones(len(rows), dtype=bool)
        for head, relation, tail in question.links:
            terms = (head, PREDICATE if relation is None else relation, tail)
            held &= self.has(*(_column(question, rows, term) for term in terms))
        return held


def _column(question: Question, rows: Rows, term: Term) -> Ids:
    """Return the values of a term in each row."""
    return rows[:, question.columns.index(term)] if isinstance(term, str) else np.full(len(rows), term)


@dataclass(frozen=True)
class Drawing:
    """Draws questions of any form."""

    held_out: Rows  # triples
    whole: KnowledgeGraph
    rng: np.random.Generator

    def questions(self, form: str, count: int) -> list[Question]:
        """Draw different questions, each from a held-out triple."""
        draw = self._joint if form in SHAPES else self._relation
        drawn: dict[Question, None] = {}
        while len(drawn) < count:
            triple = self.held_out[self.rng.integers(len(self.held_out))]
            question = draw(form, triple)
            if question is not None:
                drawn[question] = None
        return list(drawn)

    def _relation(self, form: str, triple: Rows) -> Question:
        head, relation, tail = map(int, triple)
        if form == TO_TAIL:
            return Question(((head, None, tail),), (PREDICATE,), (relation,))
        return Question(((head, None, "o"),), (PREDICATE, "o"), (relation, tail))

    def _joint(self, form: str, triple: Rows) -> Question | None:
        """Put a held-out triple in a random place of a shape, and fill the other places by a random walk."""
        shape = SHAPES[form]
        first = int(self.rng.integers(len(shape)))
        values = dict(zip(shape[first], map(int, triple[[0, 2]]), strict=True))
        relations = {first: int(triple[1])}
        while len(relations) < len(shape):
            place = next(n for n, ends in enumerate(shape) if n not in relations and not values.keys().isdisjoint(ends))
            if (relation := self._extend(shape[place], values)) is None:
                return None
            relations[place] = relation
        terms: dict[str, Term] = {name: values[name] if name == "a" else name for name in values}
        links = tuple((terms[head], relations[n], terms[tail]) for n, (head, tail) in enumerate(shape))
        columns = tuple(name for name in "xyz" if name in values)
        return (
            Question(links, columns, tuple(values[name] for name in columns)) if len(set(links)) == len(links) else None
        )

    def _extend(self, ends: tuple[str, str], values: dict[str, int]) -> int | None:
        """Choose a random triple of the whole graph at the bound end; return its relation, None if there is none."""
        backwards = ends[1] in values
        bound, free = ends[::-1] if backwards else ends
        relations, others = self.whole.neighbours(values[bound])
        places = np.flatnonzero((relations & 1) == int(backwards))
        if not len(places):
            return None
        chosen = int(self.rng.choice(places))
        values[free] = int(others[chosen])
        return int(relations[chosen]) ^ int(backwards)


def held_out(graph: KnowledgeGraph, known: Triples) -> Rows:
    """Return the triples of a graph that are not known."""
    triples = graph.triples().astype(np.int64)
    return triples[~known.has(triples[:, 0], triples[:, 1], triples[:, 2])]
