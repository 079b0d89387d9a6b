"""The structures of queries, as data: the paper's seven, neighbourhoods, and a name for any other tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError
from halfgraph.query.tree import (
    Anchor,
    Column,
    Intersect,
    Negate,
    Project,
    Query,
    Rebuilt,
    Union,
    edges,
    fold,
    identity,
    nodes,
    shared_variables,
    type_of,
)


@dataclass(frozen=True)
class Shape:
    """A structure: a query whose ids are the places of columns of anchors and relations."""

    name: str  # the paper's name: 3-inter_chain
    short: str  # the newer literature's: pi
    query: Query

    @cached_property
    def anchor_count(self) -> int:
        """How many anchors it has."""
        return sum(isinstance(node, Anchor) for node in nodes(self.query))

    @cached_property
    def relation_count(self) -> int:
        """How many edges it has."""
        return len(list(edges(self.query)))

    @cached_property
    def has_intersection(self) -> bool:
        """Whether paths meet, so that there are hard negatives."""
        return any(isinstance(node, Intersect) for node in nodes(self.query))

    @cached_property
    def has_negation(self) -> bool:
        """Whether a path must not be there, so that a missing triple can make a wrong answer."""
        return any(isinstance(node, Negate) for node in nodes(self.query))

    def fill(self, anchors: NDArray[np.int32], relations: NDArray[np.int32]) -> Query:
        """The query, or batch of queries, with these ids (anchors,), (relations,) or (n, anchors), (n, relations)."""
        return fold(self.query, _Filled(anchors, relations))


@dataclass(frozen=True)
class _Filled(Rebuilt):
    """Ids from columns in place of their places."""

    anchors: NDArray[np.int32]
    relations: NDArray[np.int32]

    def anchor(self, node: Anchor) -> Query:
        return Anchor(_ids(self.anchors, node.entity))

    def project(self, node: Project, source: Query) -> Query:
        return Project(source, _ids(self.relations, node.relation), node.type_id)


def _ids(columns: NDArray[np.int32], place: Column) -> Column:
    """One column of several, or one id of several."""
    return int(columns[place]) if columns.ndim == 1 else columns[:, place]


def inter(*parts: Query) -> Query:
    """Paths that meet."""
    return Intersect(tuple(parts))


def path(anchor: int, *relations: int) -> Query:
    """A chain of relations from an anchor; all by the places of their columns."""
    query: Query = Anchor(anchor)
    for relation in relations:
        query = Project(query, relation)
    return query


def neighbourhood(size: int) -> Shape:
    """The shape of an entity's neighbourhood: as many one-edge paths that meet in it."""
    return Shape(f"{size}-inter", f"{size}i", inter(*(path(place, place) for place in range(size))))


# The paper's Figure 3, in its order.
STRUCTURES = (
    Shape("1-chain", "1p", path(0, 0)),
    Shape("2-chain", "2p", path(0, 0, 1)),
    Shape("3-chain", "3p", path(0, 0, 1, 2)),
    neighbourhood(2),
    neighbourhood(3),
    Shape("3-inter_chain", "pi", inter(path(0, 0), path(1, 1, 2))),
    Shape("3-chain_inter", "ip", Project(inter(path(0, 0), path(1, 1)), 2)),
)
NEIGHBOURHOODS = tuple(neighbourhood(size) for size in (4, 5, 6, 7))

# Disjunctions, which the paper leaves to the future and the newer benchmarks ask.
UNIONS = (
    Shape("2-union", "2u", Union((path(0, 0), path(1, 1)))),
    Shape("3-chain_union", "up", Project(Union((path(0, 0), path(1, 1))), 2)),
)
# What must not be: the five structures of the newer benchmarks, those parts last that are negated.
NEGATIONS = (
    Shape("2-inter_not", "2in", inter(path(0, 0), Negate(path(1, 1)))),
    Shape("3-inter_not", "3in", inter(path(0, 0), path(1, 1), Negate(path(2, 2)))),
    Shape("3-chain_inter_not", "inp", Project(inter(path(0, 0), Negate(path(1, 1))), 2)),
    Shape("3-inter_chain_not", "pin", inter(path(0, 0, 1), Negate(path(1, 2)))),
    Shape("3-inter_not_chain", "pni", inter(path(0, 0), Negate(path(1, 1, 2)))),
)
DRAWN = (*STRUCTURES, *UNIONS, *NEGATIONS)
NAMED = (*DRAWN, *NEIGHBOURHOODS)

_BY_NAME = {name: shape for shape in NAMED for name in (shape.name, shape.short)}


def shape_named(name: str) -> Shape:
    """The structure of a name, of either family."""
    if name not in _BY_NAME:
        known = ", ".join(f"{shape.name} ({shape.short})" for shape in DRAWN)
        raise SettingError("structure", f'there is none named "{name}"', advice=f"Known: {known}.")
    return _BY_NAME[name]


class _Form:
    """A meaning: a text of the form alone; a is an anchor, p a projection, (x&~y) an intersection, # a shared node."""

    def __init__(self, query: Query) -> None:
        self.shared = {id(node) for node in shared_variables(query)}

    def anchor(self, node: Anchor) -> str:  # noqa: ARG002
        return "a"

    def project(self, node: Project, source: str) -> str:
        return self._marked(node, source + "p")

    def intersect(self, node: Intersect, parts: list[str]) -> str:
        return self._marked(node, f"({'&'.join(_each_once(node, parts))})")

    def union(self, node: Union, parts: list[str]) -> str:
        return self._marked(node, f"({'|'.join(_each_once(node, parts))})")

    def negate(self, node: Negate, part: str) -> str:  # noqa: ARG002
        return f"~{part}"  # sorted after all others

    def _marked(self, node: Query, form: str) -> str:
        return f"#{form}" if id(node) in self.shared else form


def _each_once(node: Intersect | Union, forms: list[str]) -> list[str]:
    """The forms of the parts in order; the same part twice counts once."""
    return sorted({identity(part): form for part, form in zip(node.parts, forms, strict=True)}.values())


def form_of(query: Query) -> str:
    """The form of a query as a text, the same for every order of its parts: (ap&app)p."""
    return fold(query, _Form(query))


_BY_FORM = {form_of(shape.query): shape for shape in NAMED}


def shape_of(query: Query) -> str:
    """The paper's name of the query's structure, or its form if it has none."""
    form = form_of(query)
    return _BY_FORM[form].name if form in _BY_FORM else form


def columns_of(query: Query) -> tuple[list[int], list[int]]:
    """The anchors and the relations of one query, in the order of the walk."""
    anchors = [int(node.entity) for node in nodes(query) if isinstance(node, Anchor)]
    return anchors, [int(node.relation) for node in edges(query)]


def named_shape(query: Query) -> tuple[Shape, Sequence[int], Sequence[int]] | None:
    """The structure that a query is of, with its anchors and relations in the order of the structure's columns."""
    shape = _BY_FORM.get(form_of(query))
    if shape is None or any(type_of(node) is not None for node in nodes(query)):
        return None
    anchors, relations = columns_of(_arranged(query))
    return shape, anchors, relations


def _arranged(query: Query) -> Query:
    """The query with the parts of each intersection in the order of the structures, by form; an anchor for each use."""
    return fold(query, _Arranged())


class _Arranged(Rebuilt):
    """Parts sorted by form, and anchors not shared."""

    def project(self, node: Project, source: Query) -> Query:
        start = Anchor(source.entity) if isinstance(source, Anchor) else source
        return Project(start, node.relation, node.type_id)

    def intersect(self, node: Intersect, parts: list[Query]) -> Query:
        return Intersect(tuple(sorted(parts, key=form_of)), node.type_id)

    def union(self, node: Union, parts: list[Query]) -> Query:
        return Union(tuple(sorted(parts, key=form_of)), node.type_id)


def keys_of(shape: Shape, anchors: NDArray[np.int32], relations: NDArray[np.int32]) -> NDArray[np.int32]:
    """A row of numbers for each query (n, anchors), (n, relations): equal just if the queries are."""
    return fold(shape.query, _Keys(anchors, relations))


@dataclass(frozen=True)
class _Keys:
    """A meaning: the ids of a batch in the order of the walk, parts of one form put in the order of their ids."""

    anchors: NDArray[np.int32]
    relations: NDArray[np.int32]

    def anchor(self, node: Anchor) -> NDArray[np.int32]:
        return self.anchors[:, int(node.entity), None]

    def project(self, node: Project, source: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.hstack([source, self.relations[:, int(node.relation), None]])

    def intersect(self, node: Intersect, parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        return _in_order(node, parts)

    def union(self, node: Union, parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        return _in_order(node, parts)

    def negate(self, node: Negate, part: NDArray[np.int32]) -> NDArray[np.int32]:  # noqa: ARG002
        return part


def _in_order(node: Intersect | Union, parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The columns of the parts side by side, those of one form in each row by their ids."""
    forms = [form_of(part) for part in node.parts]
    groups = [[keys for keys, its in zip(parts, forms, strict=True) if its == form] for form in sorted(set(forms))]
    return np.hstack([_sorted_rows(np.stack(group, axis=1)) for group in groups])


def _sorted_rows(keys: NDArray[np.int32]) -> NDArray[np.int32]:
    """The keys (n, parts, width) with the parts of each row in order, side by side (n, parts * width)."""
    count, parts, width = keys.shape
    ranks = np.empty(count * parts, dtype=np.int64)
    ranks[np.lexsort(keys.reshape(-1, width).T[::-1])] = np.arange(count * parts)
    order = np.argsort(ranks.reshape(count, parts), axis=1)
    return np.take_along_axis(keys, order[:, :, None], axis=1).reshape(count, parts * width)
