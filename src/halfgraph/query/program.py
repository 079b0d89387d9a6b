"""A query as a short program for the compiled kernels: its nodes in the order of the walk, as arrays."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from halfgraph.query.structures import Shape
from halfgraph.query.tree import Anchor, Column, Intersect, Negate, Project, Query, Union, children, nodes, type_of

# What a step does. The kernels read these numbers.
ANCHOR, PROJECT, INTERSECT, UNION, NEGATE = 0, 1, 2, 3, 4
OPERATIONS: dict[type, int] = {Anchor: ANCHOR, Project: PROJECT, Intersect: INTERSECT, Union: UNION, Negate: NEGATE}


@dataclass(frozen=True)
class Program:
    """Steps in the order of the walk; step i uses the steps children[child_starts[i]:child_starts[i + 1]].

    A step uses negated steps after all others.
    """

    operations: NDArray[np.int32]
    places: NDArray[np.int32]  # the column of anchors or relations that a step reads
    types: NDArray[np.int32]  # the type that a variable is restricted to, or -1
    child_starts: NDArray[np.int32]
    children: NDArray[np.int32]

    @cached_property
    def joins(self) -> bool:
        """Whether a variable is used twice: then the sets that lead to it do not tell the answers."""
        used = Counter(child for step in range(len(self.operations)) for child in set(self.children_of(step)))
        shared = [child for child, count in used.items() if count > 1 and self.operations[child] != NEGATE]
        return any(self.children_of(child) for child in shared)

    @cached_property
    def longest(self) -> int:
        """How many relations the longest path has."""
        lengths: list[int] = []
        for step, operation in enumerate(self.operations.tolist()):
            below = max((lengths[child] for child in self.children_of(step)), default=0)
            lengths.append(below + (operation == PROJECT))
        return lengths[-1]

    def children_of(self, step: int) -> list[int]:
        """The steps that a step uses."""
        below: list[int] = self.children[self.child_starts[step] : self.child_starts[step + 1]].tolist()
        return below


@dataclass(frozen=True)
class Batch:
    """Queries of one form: a program with its columns (n, anchors) and (n, relations)."""

    program: Program
    anchors: NDArray[np.int32]
    relations: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.anchors)

    def query(self, row: int) -> Query:
        """One of the queries."""
        program, built = self.program, list[Query]()
        for step, (operation, place, type_id) in enumerate(
            zip(program.operations.tolist(), program.places.tolist(), program.types.tolist(), strict=True)
        ):
            parts = tuple(built[child] for child in program.children_of(step))
            its_type = None if type_id < 0 else type_id
            if operation == ANCHOR:
                built.append(Anchor(int(self.anchors[row, place])))
            elif operation == PROJECT:
                built.append(Project(parts[0], int(self.relations[row, place]), its_type))
            elif operation == NEGATE:
                built.append(Negate(parts[0]))
            else:
                built.append((Intersect if operation == INTERSECT else Union)(parts, its_type))
        return built[-1]


def compile_shape(shape: Shape) -> Program:
    """The program of a structure; its ids are places of columns already."""
    return _program(nodes(shape.query), shared=False)


def compile_query(query: Query) -> Batch:
    """The program of one query, or of a batch, with its ids as columns."""
    order = nodes(query)
    anchors = [node.entity for node in order if isinstance(node, Anchor)]
    relations = [node.relation for node in order if isinstance(node, Project)]
    shape = np.broadcast_shapes(*map(np.shape, [*anchors, *relations]))
    rows = shape[0] if shape else 1  # a single id among columns stands for a column of it
    return Batch(_program(order, shared=True), _stacked(anchors, rows), _stacked(relations, rows))


def _program(order: list[Query], shared: bool) -> Program:
    """The steps of some nodes; `shared`: number the columns by the walk instead of reading them off the nodes."""
    number = {id(node): place for place, node in enumerate(order)}
    operations, places, types, below = [], [], [], []
    counts = dict.fromkeys(OPERATIONS, 0)
    for node in order:
        operations.append(OPERATIONS[type(node)])
        own = node.entity if isinstance(node, Anchor) else node.relation if isinstance(node, Project) else 0
        places.append(counts[type(node)] if shared else int(own))
        counts[type(node)] += 1
        type_id = type_of(node)
        types.append(-1 if type_id is None else type_id)
        below.append([number[id(child)] for child in sorted(children(node), key=_is_negation)])
    starts = np.cumsum([0, *map(len, below)])
    flat = [child for some in below for child in some]
    return Program(*(np.array(column, dtype=np.int32) for column in (operations, places, types, starts, flat)))


def _is_negation(node: Query) -> bool:
    return isinstance(node, Negate)


def _stacked(columns: list[Column], rows: int) -> NDArray[np.int32]:
    """The columns side by side (rows, columns)."""
    table = np.empty((rows, len(columns)), dtype=np.int32)
    for place, column in enumerate(columns):
        table[:, place] = column
    return table
