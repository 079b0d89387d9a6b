"""A query compiled to a short program for the kernels: its nodes in the order of the walk, as arrays."""

from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from halfgraph.query.rewriting import fill, map_ids
from halfgraph.query.tree import NODE_TYPES, Anchor, Project, Query, children, nodes, shared_variables, type_of

# The operation of a step: the position of its node's class in NODE_TYPES. The kernels read these numbers.
ANCHOR, PROJECT, INTERSECT, UNION, NEGATE = range(len(NODE_TYPES))


@dataclass(frozen=True)
class Program:
    """Steps in the order of the walk; step i uses the steps children[child_starts[i]:child_starts[i + 1]].

    Among the children of a step the negated ones come last. The arrays are read-only, as the kernels are compiled for.
    """

    query: Query  # the source of the program, whatever its ids
    operations: NDArray[np.int32]
    columns: NDArray[np.int32]  # the column of anchors or relations that a step reads
    types: NDArray[np.int32]  # the type that a variable is restricted to, or -1
    child_starts: NDArray[np.int32]
    children: NDArray[np.int32]

    @cached_property
    def template(self) -> Query:
        """The query with column numbers as ids."""
        anchors, relations = count(), count()
        return map_ids(self.query, lambda _: next(anchors), lambda _: next(relations))

    @cached_property
    def has_shared_variables(self) -> bool:
        """Whether a variable is used twice, so that the sets of its paths do not determine the answers."""
        return bool(shared_variables(self.query))

    @property
    def arrays(self) -> tuple[NDArray[np.int32], ...]:
        """The arrays that the kernels read; equal for two programs exactly if they compute the same."""
        return self.operations, self.columns, self.types, self.child_starts, self.children


@dataclass(frozen=True)
class QueryBatch:
    """Queries of one structure: a program with its columns (n, anchors) and (n, relations)."""

    program: Program
    anchors: NDArray[np.int32]
    relations: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.anchors)

    def query(self, row: int) -> Query:
        return fill(self.program.template, self.anchors[row], self.relations[row])

    def tree(self) -> Query:
        """Return all queries as one tree with columns of ids."""
        return fill(self.program.template, self.anchors, self.relations)


def compile_query(query: Query) -> QueryBatch:
    """Compile one query or a batch, with its ids as columns."""
    order = nodes(query)
    entities = [node.entity for node in order if isinstance(node, Anchor)]
    relations = [node.relation for node in order if isinstance(node, Project)]
    shape = np.broadcast_shapes(*map(np.shape, [*entities, *relations]))
    tables = []
    for columns in (entities, relations):
        # A single id among columns stands for a column of it.
        table = np.empty((shape[0] if shape else 1, len(columns)), dtype=np.int32)
        for number, column in enumerate(columns):
            table[:, number] = column
        tables.append(table)
    return QueryBatch(_compile(query, order), *tables)


def _compile(query: Query, order: list[Query]) -> Program:
    number = {id(node): position for position, node in enumerate(order)}
    operations = [NODE_TYPES.index(type(node)) for node in order]
    unsorted = [[number[id(child)] for child in children(node)] for node in order]
    steps = [sorted(step, key=lambda child: operations[child] == NEGATE) for step in unsorted]
    columns = {Anchor: count(), Project: count()}
    lists = (
        operations,
        [next(columns[type(node)]) if type(node) in columns else 0 for node in order],
        [-1 if (type_id := type_of(node)) is None else type_id for node in order],
        np.cumsum([0, *map(len, steps)]),
        [child for step in steps for child in step],
    )
    arrays = [np.array(values, dtype=np.int32) for values in lists]
    for array in arrays:
        array.flags.writeable = False
    return Program(query, *arrays)
