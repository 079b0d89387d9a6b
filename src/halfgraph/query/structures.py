"""Query structures as data: the paper's seven, unions, negations and neighbourhoods."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from halfgraph.errors import SettingError
from halfgraph.query.canonical import structure_formula
from halfgraph.query.program import Program, compile_query
from halfgraph.query.rewriting import fill, rewrite
from halfgraph.query.tree import (
    Anchor,
    Intersect,
    Negate,
    Project,
    Query,
    Union,
    anchors,
    children,
    edges,
    has_intersection,
    has_negation,
    nodes,
    rebuild,
    type_of,
)


@dataclass(frozen=True)
class Structure:
    """A query structure: a query whose ids are column numbers, counted in the order of the walk."""

    name: str  # the paper's: 3-inter_chain
    short: str  # the newer literature's: pi
    query: Query

    @cached_property
    def program(self) -> Program:
        return compile_query(self.query).program

    @cached_property
    def anchor_count(self) -> int:
        return len(anchors(self.query))

    @cached_property
    def relation_count(self) -> int:
        return len(edges(self.query))

    @cached_property
    def has_intersection(self) -> bool:
        """Whether paths meet, so that there are hard negatives."""
        return has_intersection(self.query)

    @cached_property
    def has_negation(self) -> bool:
        """Whether a path is negated, so that a missing triple can give a wrong answer."""
        return has_negation(self.query)

    def fill(self, anchors: NDArray[np.int32], relations: NDArray[np.int32]) -> Query:
        """Return the query of (anchors,), (relations,), or the batch of (n, anchors), (n, relations)."""
        return fill(self.query, anchors, relations)


def inter(*parts: Query) -> Query:
    """Return the intersection of the paths."""
    return Intersect(tuple(parts))


def path(anchor: int, *relations: int) -> Query:
    """Return a chain of relations from an anchor."""
    query: Query = Anchor(anchor)
    for relation in relations:
        query = Project(query, relation)
    return query


def neighbourhood(size: int) -> Structure:
    """Return the structure of an entity's neighbourhood: one-edge paths that meet in it."""
    return Structure(f"{size}-inter", f"{size}i", inter(*(path(column, column) for column in range(size))))


# The paper's Figure 3, in its order.
STRUCTURES = (
    Structure("1-chain", "1p", path(0, 0)),
    Structure("2-chain", "2p", path(0, 0, 1)),
    Structure("3-chain", "3p", path(0, 0, 1, 2)),
    neighbourhood(2),
    neighbourhood(3),
    Structure("3-inter_chain", "pi", inter(path(0, 0), path(1, 1, 2))),
    Structure("3-chain_inter", "ip", Project(inter(path(0, 0), path(1, 1)), 2)),
)
NEIGHBOURHOODS = tuple(neighbourhood(size) for size in (4, 5, 6, 7))

# Unions are future work in the paper and part of newer benchmarks.
UNIONS = (
    Structure("2-union", "2u", Union((path(0, 0), path(1, 1)))),
    Structure("3-chain_union", "up", Project(Union((path(0, 0), path(1, 1))), 2)),
)
# The five structures with negation of newer benchmarks; negated parts come last.
NEGATIONS = (
    Structure("2-inter_not", "2in", inter(path(0, 0), Negate(path(1, 1)))),
    Structure("3-inter_not", "3in", inter(path(0, 0), path(1, 1), Negate(path(2, 2)))),
    Structure("3-chain_inter_not", "inp", Project(inter(path(0, 0), Negate(path(1, 1))), 2)),
    Structure("3-inter_chain_not", "pin", inter(path(0, 0, 1), Negate(path(1, 2)))),
    Structure("3-inter_not_chain", "pni", inter(path(0, 0), Negate(path(1, 1, 2)))),
)
DRAWN = (*STRUCTURES, *UNIONS, *NEGATIONS)
NAMED = (*DRAWN, *NEIGHBOURHOODS)

_BY_NAME = {name: structure for structure in NAMED for name in (structure.name, structure.short)}
_BY_FORMULA = {structure_formula(structure.query): structure for structure in NAMED}


def structure_named(name: str) -> Structure:
    """Return the structure with this name or short name."""
    if name not in _BY_NAME:
        known = ", ".join(f"{structure.name} ({structure.short})" for structure in DRAWN)
        raise SettingError("structure", f'there is none named "{name}"', advice=f"Known: {known}.")
    return _BY_NAME[name]


def structure_name(query: Query) -> str:
    """Return the name of the query's structure, or its formula if it has no name."""
    formula = structure_formula(query)
    return _BY_FORMULA[formula].name if formula in _BY_FORMULA else formula


def match_structure(query: Query) -> tuple[Structure, Sequence[int], Sequence[int]] | None:
    """Return the named structure of a query and its anchors and relations as columns of the structure, or None."""
    structure = _BY_FORMULA.get(structure_formula(query))
    if structure is None or any(type_of(node) is not None for node in nodes(query)):
        return None
    arranged = rewrite(query, _arrange)
    columns = [int(anchor.entity) for anchor in anchors(arranged)]
    return structure, columns, [int(edge.relation) for edge in edges(arranged)]


def _arrange(_: Query, node: Query) -> Query:
    """Sort the parts of a node by their structure, and give every projection an anchor of its own."""
    if isinstance(node, Project):
        return replace(node, source=replace(node.source)) if isinstance(node.source, Anchor) else node
    return rebuild(node, sorted(children(node), key=structure_formula))
