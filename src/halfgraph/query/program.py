"""A query as a short program for the compiled kernels: its nodes in the order of the walk, as arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfgraph.query.shapes import Shape
from halfgraph.query.tree import Anchor, Column, Intersect, Project, Query, Union, children, nodes

# What a step does. The kernels read these numbers.
ANCHOR, PROJECT, INTERSECT, UNION = 0, 1, 2, 3
OPERATIONS: dict[type, int] = {Anchor: ANCHOR, Project: PROJECT, Intersect: INTERSECT, Union: UNION}


@dataclass(frozen=True)
class Program:
    """Steps in the order of the walk; step i uses the steps children[child_starts[i]:child_starts[i + 1]]."""

    operations: NDArray[np.int32]
    places: NDArray[np.int32]  # the column of anchors or relations that a step reads
    kinds: NDArray[np.int32]  # the kind that a variable is restricted to, or -1
    child_starts: NDArray[np.int32]
    children: NDArray[np.int32]


@dataclass(frozen=True)
class Batch:
    """Queries of one form: a program with its columns (n, anchors) and (n, relations)."""

    program: Program
    anchors: NDArray[np.int32]
    relations: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.anchors)


def compile_shape(shape: Shape) -> Program:
    """The program of a structure; its ids are places of columns already."""
    return _program(nodes(shape.query), shared=False)


def compile_query(query: Query) -> Batch:
    """The program of one query, or of a batch, with its ids as columns."""
    order = nodes(query)
    anchors = [_column(node.entity) for node in order if isinstance(node, Anchor)]
    relations = [_column(node.relation) for node in order if isinstance(node, Project)]
    return Batch(_program(order, shared=True), _stacked(anchors), _stacked(relations))


def _program(order: list[Query], shared: bool) -> Program:
    """The steps of some nodes; `shared`: number the columns by the walk instead of reading them off the nodes."""
    number = {id(node): place for place, node in enumerate(order)}
    operations, places, kinds, below = [], [], [], []
    counts = dict.fromkeys(OPERATIONS, 0)
    for node in order:
        operations.append(OPERATIONS[type(node)])
        own = node.entity if isinstance(node, Anchor) else node.relation if isinstance(node, Project) else 0
        places.append(counts[type(node)] if shared else int(own))
        counts[type(node)] += 1
        kind = None if isinstance(node, Anchor) else node.kind
        kinds.append(-1 if kind is None else kind)
        below.append([number[id(child)] for child in children(node)])
    starts = np.cumsum([0, *map(len, below)])
    flat = [child for some in below for child in some]
    return Program(*(np.array(column, dtype=np.int32) for column in (operations, places, kinds, starts, flat)))


def _column(ids: Column) -> NDArray[np.int32]:
    return np.atleast_1d(np.asarray(ids, dtype=np.int32))


def _stacked(columns: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.ascontiguousarray(np.stack(columns, axis=1))
